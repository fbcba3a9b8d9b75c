"""Normal equations gathered from a lake: the state of a calibration of the same quotes, plain and as a panel."""

from __future__ import annotations

from dataclasses import replace

import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from strikeout.scale import At, Processes
from strikeout.scale.partition import seal, unseal
from tests.scale.conftest import DAYS, day_of_quotes
from tests.scale.test_gather import Shuffled

HESTON = so.Heston()
PANELS = pytest.mark.parametrize("panel", [None, "date"], ids=["plain", "panel"])


def all_of(days):
    """Return the quotes of all days as one book."""
    names = ("underlying", "date", "licence")
    columns = {name: [value for day in days for value in day.labels[name].tolist()] for name in names}
    whole = {
        name: [value for day in days for value in getattr(day.contracts, name).tolist()]
        for name in ("forward", "strike", "expiry", "discount", "is_call")
    }
    return so.Quotes(
        ids=[name for day in days for name in day.ids.tolist()],
        contracts=so.Contracts(**whole),
        observed=[price for day in days for price in day.observed.tolist()],
        labels=columns,
    )


@PANELS
def test_the_sum_is_the_state_of_a_calibration(lake, days, panel):
    gathered = so.scale.gather(lake, tags="licence", at=At(HESTON, panel=panel), engine="here")
    calibration = so.calibrate(all_of(days), HESTON, panel=panel)
    assert gathered.total() == calibration.state
    assert gathered.total().digest() == calibration.state.digest()
    assert gathered.count == sum(map(len, days))
    assert gathered.total().groups == (DAYS if panel else ())


@PANELS
@pytest.mark.parametrize("engine", [Shuffled(0), Processes(2)], ids=["order", "processes"])
def test_engine_order_and_repeats_change_no_bit(lake, panel, engine):
    here = so.scale.gather(lake, tags="licence", at=At(HESTON, panel=panel), engine="here")
    assert so.scale.gather(lake, tags="licence", at=At(HESTON, panel=panel), engine=engine).digest() == here.digest()


@PANELS
def test_a_licence_and_a_day_removed_were_never_seen(lake, days, panel):
    gathered = so.scale.gather(lake, tags=("licence", "date"), at=At(HESTON, panel=panel), engine="here")
    never = all_of([day[day.labels["licence"] != "L3"] for day in days])
    assert gathered.without(licence="L3").total() == so.calibrate(never, HESTON, panel=panel).state
    fewer = all_of([day for day in days if day.labels["date"][0] != DAYS[1]])
    left = gathered.without(date=DAYS[1]).total()
    assert left == so.calibrate(fewer, HESTON, panel=panel).state
    assert gathered.only(date=DAYS[1]).total() == gathered.total() - left


@PANELS
def test_states_come_from_the_cache_and_are_found_again(lake, panel, tmp_path):
    at = At(HESTON, panel=panel)
    first = so.scale.gather(lake, at=at, cache=tmp_path, engine="here")
    again = so.scale.gather(lake, at=at, cache=tmp_path, engine="here")
    assert (first.reused, again.reused) == (0, len(DAYS))
    assert again.total() == first.total()
    assert again.verify(1.0).is_equal
    other = so.scale.gather(lake, at=At(HESTON, [3.0, 0.05, 0.6, -0.6, 0.05], panel), cache=tmp_path, engine="here")
    assert other.reused == 0
    assert other.total() != first.total()
    assert so.scale.gather(lake, cache=tmp_path, engine="here").reused == 0  # moments


def test_a_changed_state_does_not_pass_for_the_gathered_one(lake):
    gathered = so.scale.gather(lake, tags="licence", at=At(HESTON, panel="date"), engine="here")
    part = replace(gathered.parts[0], begin=gathered.parts[1].begin, end=gathered.parts[1].end)
    assert replace(gathered, parts=(part, *gathered.parts[1:])).verify(1.0).wrong == (part.partition,)
    receipt, parts = unseal(seal(gathered.receipts[0], gathered.parts[:2]))
    assert (receipt, [one.state for one in parts]) == (gathered.receipts[0], [one.state for one in gathered.parts[:2]])


def test_quotes_too_large_for_the_grid_are_left_out_and_listed(tmp_path):
    quotes = day_of_quotes("2024-03-01", 1)
    prices = quotes.observed.copy()
    prices[5] = 3e6  # the grid of residuals ends at two million
    so.write_quotes(quotes.with_observed(prices), tmp_path / "one.parquet")
    gathered = so.scale.gather(so.scale.Lake(tmp_path), at=At(HESTON), engine="here")
    assert gathered.receipts[0].left_out_ids == (str(quotes.ids[5]),)
    assert gathered.total() == so.calibrate(quotes.without([quotes.ids[5]]), HESTON).state


def test_the_step_of_the_sum_is_that_of_the_quotes(lake, days):
    at = so.calibrate(all_of(days), HESTON).parameters
    step = so.scale.gather(lake, at=At(HESTON, at), engine="here").total().step()
    assert max(abs(step.change)) < 1e-6  # at the optimum there is nothing left to do


def test_what_normal_equations_cannot_do_is_refused(lake):
    gathered = so.scale.gather(lake, at=At(HESTON), engine="here")
    with pytest.raises(UsageError):
        so.calibrate(gathered, HESTON)
    with pytest.raises(UsageError):
        so.scale.gather(lake, at=At(so.VarianceGamma(), panel="date"), engine="here")
    with pytest.raises((UsageError, RefusedError)):
        so.scale.gather(lake, at=At(HESTON, panel="session"), engine="here")
