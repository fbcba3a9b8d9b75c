"""What holds for every panel state: sums, differences and steps in any order, and elimination without an error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from strikeout.errors import UnknownIdError, UsageError
from strikeout.kernels import exact
from strikeout.statistics.normal_equations import NormalEquations, Schema
from strikeout.statistics.schur import eliminate, pack, unpack
from strikeout.statistics.system import System
from tests.raising import raises

NAMES = ("slope", "level", "bend")
LATENT = "level"
numbers = st.integers(-(2**40), 2**40)
rows_of_a_group = st.lists(st.lists(numbers, min_size=4, max_size=4), min_size=1, max_size=6)
panels = st.dictionaries(st.integers(0, 50), rows_of_a_group, min_size=1, max_size=6)


def schema(latent: float) -> Schema:
    return Schema("line", NAMES, (1.0, latent, 2.0), exponents=(30, 33, 29, 31), residual="price", weights="none")


def equations(rows: list[list[int]], latent: float = 0.5) -> NormalEquations:
    table = np.array(rows, np.int64).reshape(-1, 4)
    return NormalEquations(schema(latent), exact.change(exact.zero(4), table), len(rows))


def panel(groups: dict[int, list[list[int]]]) -> System:
    return System({group: equations(rows, latent=0.1 + group) for group, rows in groups.items()}, LATENT)


@given(rows_of_a_group)
@example([[1, 1, 3, 0], [0, 1, 0, 0]])  # 1/2 goes to 0 and 9/2 to 4
@example([[1, 1, 3, 0], [0, 1, 0, 0], [1, 0, 1, 0]])  # 3/2 goes to 2 and 11/2 to 6
def test_elimination_is_the_exact_ratio_rounded_once(rows):
    sums = [[sum(row[i] * row[j] for row in rows) for j in range(4)] for i in range(4)]
    found = exact.to_integers(eliminate(equations(rows), LATENT).words)
    kept = (0, 2, 3)
    pivot = sums[1][1]
    wanted = [
        # Python rounds a fraction half to even, as the grid does.
        round(Fraction(sums[i][j]) - (Fraction(sums[i][1] * sums[j][1], pivot) if pivot else 0))
        for n, i in enumerate(kept)
        for j in kept[n:]
    ]
    assert found == wanted


@given(st.lists(numbers, min_size=4, max_size=4))
def test_one_quote_leaves_nothing_once_its_latent_parameter_is_free(row):
    left = eliminate(equations([row]), LATENT)
    if row[1]:
        assert not left.words.any()
    else:
        assert exact.to_integers(left.words)[0] == row[0] ** 2


@given(st.lists(st.integers(-(2**191) + 1, 2**191 - 1), min_size=1, max_size=15))
def test_sums_packed_into_one_integer_come_back(values):
    words = exact.from_integers(values)
    assert (unpack(pack(words), len(values)) == words).all()


@given(st.lists(st.tuples(st.integers(-(2**190), 2**190), st.integers(-(2**190), 2**190)), min_size=1, max_size=15))
def test_a_difference_of_packed_sums_is_the_packed_difference(pairs):
    a, b = (exact.from_integers([pair[n] for pair in pairs]) for n in (0, 1))
    assert (unpack(pack(a) - pack(b), len(pairs)) == exact.combine(a, b, subtract=True)).all()


@given(panels, st.randoms(use_true_random=False))
def test_the_order_of_the_groups_does_not_show(groups, random):
    shuffled = list(groups.items())
    random.shuffle(shuffled)
    one, other = panel(groups), panel(dict(shuffled))
    assert one == other
    assert one.digest() == other.digest()
    assert one.reduced() == other.reduced()


@given(panels, st.data())
def test_taking_a_group_away_is_never_having_seen_it(groups, data):
    group = data.draw(st.sampled_from(sorted(groups)))
    whole, fresh = panel(groups), panel({g: rows for g, rows in groups.items() if g != group})
    assert whole.without([group]) == fresh
    assert whole - panel({group: groups[group]}) == fresh
    assert fresh + panel({group: groups[group]}) == whole
    assert (whole.without([group])).digest() == fresh.digest()
    assume(fresh.blocks and group in whole.blocks)  # a panel of one group is left with nothing to step from
    assert whole.reduced() - whole.pieces[group] == fresh.reduced()
    quick, slow = whole.step_without(group), fresh.step()
    assert quick.change.tobytes() == slow.change.tobytes()
    assert quick.latent_changes.tobytes() == slow.latent_changes.tobytes()
    assert quick.groups == slow.groups
    assert np.array_equal(list(quick.parameters.values()), list(slow.parameters.values()), equal_nan=True)
    assert np.array_equal(list(quick.latent.values()), list(slow.latent.values()), equal_nan=True)


@given(panels, rows_of_a_group, st.data())
def test_quotes_come_and_go_within_a_group_without_touching_another(groups, more, data):
    group = data.draw(st.sampled_from(sorted(groups)))
    before = panel(groups)
    added = before + panel({group: more})
    assert added == panel({**groups, group: groups[group] + more})
    assert all(added.blocks[g] is before.blocks[g] for g in groups if g != group)
    assert added - panel({group: more}) == before


@given(panels)
def test_a_step_solves_the_equations_of_all_parameters_together(groups):
    # On a grid so fine that rounding a piece to it is nothing; so are the grids of real rows.
    state = panel({group: [[(x >> 20) << 24 for x in row] for row in rows] for group, rows in groups.items()})
    assume(state.count)
    step, names = state.step(), state.groups
    H, G = np.zeros((2 + len(names), 2 + len(names))), np.zeros(2 + len(names))
    for n, group in enumerate(names):
        rows = state.blocks[group].system().rows
        places = (0, 2 + n, 1)
        for i, a in enumerate(places):
            G[a] += rows[i][3]
            for j, b in enumerate(places):
                H[a, b] += rows[i][j]
    scale = np.sqrt(np.diag(H))
    assume(scale.all() and not np.isnan(step.change).any() and np.linalg.cond(H / np.outer(scale, scale)) <= 1e8)
    wanted = np.linalg.solve(H / np.outer(scale, scale), G / scale) / scale
    found = np.concatenate([step.change, step.latent_changes])
    # Both lose the digits of a condition number up to 1e8.
    np.testing.assert_allclose(found * scale, wanted * scale, atol=1e-7 * np.linalg.norm(wanted * scale))


@given(panels, st.data())
def test_a_held_group_keeps_its_latent_parameter(groups, data):
    group = data.draw(st.sampled_from(sorted(groups)))
    free = panel(groups)
    held = System(free.blocks, LATENT, frozenset([group]))
    assert (held == free) is (group not in free.blocks)
    assume(group in free.blocks)  # a group whose rows are all zero leaves nothing behind
    assert held.without([group]) == free.without([group])
    step = held.step()
    assume(not np.isnan(step.change).any())
    assert step.latent[group] == free.blocks[group].schema.reference[1]


def test_what_cannot_be_combined_is_refused():
    state = panel({1: [[1, 2, 3, 4]]})
    other = System({2: NormalEquations.zero(schema(0.5)), 3: equations([[1, 1, 1, 1]])}, LATENT)
    assert other.groups == (3,)  # a group of nothing is not there
    with raises(UnknownIdError, groups=[7]):
        state.without([7])
    with raises(UnknownIdError, groups=[7]):
        state.step_without(7)
    with pytest.raises(UsageError, match="not in the panel"):
        state - panel({2: [[1, 2, 3, 4]]})
    with pytest.raises(UsageError, match="by group"):
        state + System({1: equations([[1, 2, 3, 4]])}, "slope")
    moved = Schema("line", NAMES, (1.5, 0.5, 2.0), exponents=(30, 33, 29, 31), residual="price", weights="none")
    with raises(UsageError, differs=["reference"]):
        state + System({5: NormalEquations(moved, equations([[1, 2, 3, 4]]).words, 1)}, LATENT)
    with pytest.raises(UsageError, match="volume"):
        System(state.blocks, "volume")
    with pytest.raises(UsageError, match="no groups"):
        state.without([1]).step()
