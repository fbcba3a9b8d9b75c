"""What the compiled functions refuse: in a sentence, and never by reading or writing where nothing is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from strikeout.kernels import chebyshev, compiled, heston
from strikeout.kernels.heston_twin import Parts
from tests.kernels.kernel_choice import needs_native

BY_CELL = pytest.mark.parametrize("by_cell", [chebyshev.exact_cells, chebyshev.exact_cells_twin], ids=["used", "twin"])


def words(rows: int) -> np.ndarray:
    return np.zeros((rows, 3), np.uint64)


def rows(count: int, width: int) -> np.ndarray:
    return np.zeros((count, width), np.int64)


def parity_columns(s: int = 0, strikes: int = 3, numbers: int = 5) -> tuple:
    """Three quotes of one slice of five numbers, or almost."""
    columns = np.full(3, s), np.ones(strikes), np.ones(3, bool), np.ones(3), np.ones(3)
    return *columns, np.ones(numbers), (5, 20, 1e-5, 1.345, 1.4826)


def grid(*exponents: int) -> np.ndarray:
    return np.array(exponents, np.int32)


# 92,682 columns have a triangle of 2^32 + 55,607 sums, which an int takes for 55,607.
WIDE, TAKEN_FOR = 92_682, 55_607

REFUSED: dict[str, tuple[Callable, type[Exception], str]] = {
    "polynomials whose number wraps": (
        lambda m: m.chebyshev_polynomials(np.zeros(8), 2**61),
        ValueError,
        "4,096 at most",
    ),
    "more polynomials of no points than anyone waits for": (
        lambda m: m.chebyshev_polynomials(np.zeros(0), 2**61),
        ValueError,
        "4,096 at most",
    ),
    "a transform of other values": (
        lambda m: m.chebyshev_transform(np.zeros((2, 3)), np.zeros((1, 4, 1))),
        ValueError,
        "does not fit",
    ),
    "a transform without a column": (
        lambda m: m.chebyshev_transform(np.zeros((2, 0)), np.zeros((1, 0, 1))),
        ValueError,
        "does not fit",
    ),
    "cells whose polynomials wrap": (
        lambda m: m.exact_cells(np.zeros((1, 2)), np.zeros((2, 1)), np.zeros((4, 1)), 2**33, 2**31, 48, 72),
        ValueError,
        "4,096 at most",
    ),
    "a grid finer than any": (
        lambda m: m.exact_cells(np.zeros((1, 2)), np.zeros((1, 1)), np.zeros((4, 1)), 2, 1, 2**30, 72),
        ValueError,
        "grids",
    ),
    "a downdate of rows without a column": (
        lambda m: m.exact_downdate(words(0), rows(2, 0), None, grid()),
        ValueError,
        "of this width",
    ),
    "doubles for words": (
        lambda m: m.exact_downdate(np.zeros((3, 3)), rows(2, 2), None, grid(0, 0)),
        TypeError,
        "words are uint64",
    ),
    "doubles for rows": (
        lambda m: m.exact_downdate(words(3), np.zeros((2, 2)), None, grid(0, 0)),
        TypeError,
        "rows and picks int64",
    ),
    "doubles for a pick": (
        lambda m: m.exact_downdate(words(3), rows(2, 2), np.zeros(1), grid(0, 0)),
        TypeError,
        "rows and picks int64",
    ),
    "floats for exponents": (
        lambda m: m.exact_downdate(words(3), rows(2, 2), None, np.zeros(2, np.float32)),
        TypeError,
        "exponents int32",
    ),
    "words in another order of bytes": (
        lambda m: m.exact_downdate(words(3).astype(">u8"), rows(2, 2), None, grid(0, 0)),
        TypeError,
        "words are uint64",
    ),
    "a column of words": (
        lambda m: m.exact_downdate(np.zeros(9, np.uint64), rows(2, 2), None, grid(0, 0)),
        ValueError,
        "tables",
    ),
    "exponents whose sum overflows, downdated": (
        lambda m: m.exact_downdate(words(3), rows(2, 2), None, grid(2**31 - 1, 2**31 - 1)),
        ValueError,
        "between -1000 and 1000",
    ),
    "exponents whose sum overflows, read": (
        lambda m: m.exact_read(words(3), grid(-(2**31), -(2**31))),
        ValueError,
        "between -1000 and 1000",
    ),
    "a state too small for its exponents": (
        lambda m: m.exact_read(words(TAKEN_FOR), np.zeros(WIDE, np.int32)),
        ValueError,
        "of this width",
    ),
    "a state too small for its rows": (
        lambda m: m.exact_change(words(TAKEN_FOR), rows(1, WIDE), None, False),
        ValueError,
        "of this width",
    ),
    "a state too small for its downdate": (
        lambda m: m.exact_downdate(words(TAKEN_FOR), rows(1, WIDE), None, np.zeros(WIDE, np.int32)),
        ValueError,
        "of this width",
    ),
    "a triangle too small for its parameters": (
        lambda m: m.symmetric_solve(np.zeros(TAKEN_FOR), WIDE - 1),
        ValueError,
        "triangle",
    ),
    "limits of another number of parameters": (
        lambda m: m.judged(np.zeros(26), np.zeros(20), 3, 1e7, 0.3),
        ValueError,
        "five limits",
    ),
    "limits that are not five of each": (lambda m: m.judged(np.zeros(4), np.zeros(6), 3, 1e7, 0.3), ValueError, "five"),
    "a step of no parameter": (lambda m: m.judged(np.zeros(1), np.zeros(0), 3, 1e7, 0.3), ValueError, "five limits"),
    "text for limits": (lambda m: m.judged(np.zeros(4), "abcde", 3, 1e7, 0.3), TypeError, "numbers"),
    "second-order sums of other groups": (
        lambda m: m.arrow_missed(np.zeros(8), np.zeros(8), np.zeros(8), np.zeros(4), np.zeros(2), 1.0, 2, np.zeros(1)),
        ValueError,
        "every group",
    ),
    "groups without a shared parameter": (
        lambda m: m.arrow_missed(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2), 1.0, 1, np.zeros(0)),
        ValueError,
        "every group",
    ),
    "no column to sort by": (lambda m: m.sorted_rows(None), TypeError, "columns of doubles"),
    "a second column that is none": (lambda m: m.sorted_rows(np.arange(3.0), "abc"), TypeError, "columns of doubles"),
    "columns that do not go together": (
        lambda m: m.sorted_rows(np.arange(3.0), np.arange(2.0)),
        ValueError,
        "different lengths",
    ),
    "residuals of other quotes than the sensitivities": (
        lambda m: m.exact_footprints(np.zeros((2, 5)), np.zeros(4), np.zeros(4), grid(40, 40, 41)),
        ValueError,
        "same quotes",
    ),
    "footprints without an exponent for the residual": (
        lambda m: m.exact_footprints(np.zeros((2, 5)), np.zeros(5), np.zeros(5), grid(40, 40)),
        ValueError,
        "same quotes",
    ),
    "a quote of a slice that is not there": (lambda m: m.parity_lines(*parity_columns(s=2)), ValueError, "no slice"),
    "a quote of a slice below zero": (lambda m: m.parity_lines(*parity_columns(s=-1)), ValueError, "no slice"),
    "strikes of other quotes": (lambda m: m.parity_lines(*parity_columns(strikes=2)), ValueError, "different lengths"),
    "a slice without its prior": (lambda m: m.parity_lines(*parity_columns(numbers=4)), ValueError, "five numbers"),
    "slices that end beyond their rows": (
        lambda m: m.smooth_curves(np.zeros(3), np.array([0, 4]), np.zeros(3), np.zeros(3), 2),
        ValueError,
        "number of rows",
    ),
    "slices that fall": (
        lambda m: m.smooth_curves(np.zeros(3), np.array([0, 5, 1, 3]), np.zeros(3), np.zeros(3), 2),
        ValueError,
        "do not fall",
    ),
    "fewer weights than rows": (
        lambda m: m.smooth_curves(np.zeros(3), np.array([0, 3]), np.zeros(3), np.zeros(2), 2),
        ValueError,
        "different lengths",
    ),
    "fewer volatilities than prices": (
        lambda m: m.black_volatilities(
            np.ones(3), np.ones(3), np.ones(2), np.ones(3), np.ones(3), np.ones(3, bool), np.ones(4), 1.0, np.ones(3)
        ),
        ValueError,
        "different lengths",
    ),
    "instructions nobody has": (lambda m: m.use_instructions("abacus"), ValueError, "available"),
}


@needs_native
@pytest.mark.parametrize("case", REFUSED)
def test_arguments_without_a_meaning_are_refused_in_a_sentence(case):
    call, kind, says = REFUSED[case]
    with pytest.raises(kind, match=says):
        call(compiled.native())


@BY_CELL
@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("factor", [1e60, -1e60, np.inf, np.nan])
def test_a_factor_whose_sums_do_not_fit_is_refused(by_cell, factor, row):
    factors = np.ones((4, 3))
    factors[row, 1] = factor
    with pytest.raises(ValueError, match=r"too large|not finite"):
        by_cell(np.zeros((3, 2)), np.zeros((1, 3)), factors, along=2, across=1)


@BY_CELL
@pytest.mark.parametrize("place", [1e9, -1.5, np.nan])
def test_a_place_outside_its_cell_is_refused(by_cell, place):
    with pytest.raises(ValueError, match="between -1 and 1"):
        by_cell(np.zeros((1, 2)), np.full((1, 1), place), np.ones((4, 1)), along=2, across=1)


SHORT_OF_MEMORY = """
import resource
import numpy as np
from strikeout.kernels import _native
theta, parts = np.array([2.0, 0.04, 0.5, -0.6, 0.04]), 400
book = theta, np.linspace(0.1, 2.0, parts), np.arange(parts + 1) * 20, np.tile(np.linspace(-0.3, 0.3, 20), parts)
alone = _native.heston_rows(*book, None, 0.0, 1).tobytes()
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for room in (4, 12, 40, 150):  # MB: of a stack of eight, none, one, a few, many
    resource.setrlimit(resource.RLIMIT_AS, (taken + room * 2**20, resource.RLIM_INFINITY))
    try:
        print(room, _native.heston_rows(*book, None, 0.0, 64).tobytes() == alone)
    except MemoryError:
        print(room, "no memory for the prices themselves")
"""


@needs_native
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory the process has")
def test_where_no_more_threads_can_be_made_those_there_are_give_the_same_bits():
    done = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-3:-1] == ["40 True", "150 True"]
    assert "False" not in done.stdout


def parts(count: int, strikes: int, *, panels: bool) -> Parts:
    k = np.zeros(strikes)
    return Parts(np.ones(count), np.linspace(0, strikes, count + 1).astype(np.intp), k, k if panels else None, 0.25)


def test_a_book_takes_threads_by_its_strikes_and_expiries_and_a_panel_counts_as_eight(monkeypatch):
    monkeypatch.setenv("STRIKEOUT_THREADS", "3")
    assert heston.threads_for(parts(19, 40_000, panels=False)) == 1
    assert heston.threads_for(parts(19, 40_000, panels=True)) == 3
    assert heston.threads_for(parts(19, 50_000, panels=False)) == 3
    assert heston.threads_for(parts(170, 10, panels=False)) == 3
    assert heston.threads_for(parts(2, 40_000, panels=True)) == 1
