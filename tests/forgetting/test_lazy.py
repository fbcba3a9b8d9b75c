"""What a forgetting computes when it is first asked for is what it would have been at once, in whatever order."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UnidentifiedError, UnknownIdError, UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.evidence import free_parameters
from strikeout.forgetting.step_error import step_error
from strikeout.statistics.system import WHOLE, FootprintBlocks
from tests.counting import calls
from tests.raising import raises

BOOK = so.paper.quotes("small", seed=7)
GONE = BOOK.ids[5::40].tolist()[::-1]  # not in the order of the book
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one fixed": {"fixed": {"mean_reversion": 2.0}},
    "bounds": {"bounds": {"vol_of_vol": (0.05, 0.6)}},
    "a part counts": {"select": "otm"},
    "some weigh nothing": {"weights": np.where(np.arange(len(BOOK)) % 5, 1.0, 0.0)},
}
SHOWN = (
    "ids", "forgotten", "parameters", "operator", "path", "step", "step_error", "tolerance", "refits", "count", "moved",
    "calibration", "certificate",
)  # fmt: skip


@pytest.fixture(scope="module")
def calibrations() -> dict[str, so.results.Calibration]:
    return {name: so.calibrate(BOOK, so.Heston(), **how) for name, how in OPTIONS.items()}


def told(done: so.results.Forgetting, order: tuple[str, ...] = SHOWN) -> dict[str, Any]:
    """Everything a forgetting shows, asked for in this order, as plain values."""
    found = {name: getattr(done, name) for name in order}
    assert found["step"] is not None
    assert isinstance(found["forgotten"], so.Quotes)
    plain = {
        "ids": found["ids"].tolist(),
        "forgotten": (found["forgotten"].ids.tolist(), found["forgotten"].observed.tobytes()),
        "step": (found["step"].parameters, found["step"].change.tobytes(), found["step"].equations.digest()),
        "calibration": found["calibration"].to_dict(),
        "certificate": found["certificate"].to_bytes(),
        "summary": done.summary(),
        "repr": repr(done),
        "html": done._repr_html_(),
    }
    return {name: plain.get(name, found.get(name)) for name in (*SHOWN, "summary", "repr", "html")}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_order_in_which_things_are_asked_for_changes_none_of_them(name, calibrations):
    wanted = told(so.forget(calibrations[name], ids=GONE, operator="downdate"))
    for seed in range(4):
        order = tuple(random.Random(seed).sample(SHOWN, len(SHOWN)))
        assert told(so.forget(calibrations[name], ids=GONE, operator="downdate"), order) == wanted


@pytest.mark.parametrize("name", OPTIONS)
def test_a_forgetting_shows_what_its_parts_give_when_made_at_once(name, calibrations):
    before = calibrations[name]
    done = so.forget(before, ids=GONE, operator="downdate")
    used = [each for each in BOOK.ids.tolist() if each in {*GONE} & {*before.quotes.ids.tolist()}]
    step = downdate(FootprintBlocks.of(before.footprints.whole), used, free=free_parameters(before))
    judged = step_error(step, before, ids=lambda: used)
    assert done.ids.tolist() == BOOK.only(GONE).ids.tolist()
    assert done.parameters == step.parameters
    assert done.step is not None
    assert done.step.equations == step.equations
    assert done.step_error == judged
    assert repr(done.step_error) == repr(judged)
    assert done.path == (f"downdate: as asked; {judged.sentence}",)
    assert done.count == len(GONE)


def test_a_certificate_is_the_same_bytes_however_the_ids_are_given(calibrations):
    ways: list[Any] = [GONE, GONE[::-1], tuple(GONE), np.array(GONE), {*GONE}]
    made = {so.forget(calibrations["plain"], ids=ids, operator="downdate").certificate.to_bytes() for ids in ways}
    made.add(so.forget(calibrations["plain"], quotes=BOOK.only(GONE), operator="downdate").certificate.to_bytes())
    assert len(made) == 1


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"ids": [*GONE, "no such quote"]}, UnknownIdError),
        ({"ids": [*GONE, GONE[0]]}, UnknownIdError),
        ({"ids": [7, 8]}, UsageError),
        ({"ids": [[name] for name in GONE]}, UsageError),
        ({"ids": [""]}, UsageError),
        ({"ids": BOOK.ids.tolist()}, RefusedError),
        ({"ids": BOOK.ids[5:].tolist()}, UnidentifiedError),
        ({"ids": BOOK.ids[BOOK.contracts.expiry != BOOK.contracts.expiry.max()].tolist()}, UnidentifiedError),
        ({"ids": GONE, "where": "strike > 1"}, UsageError),
        ({}, UsageError),
    ],
)
def test_what_is_refused_is_refused_by_the_call_itself(how, error, calibrations):
    with pytest.raises(error):
        so.forget(calibrations["plain"], operator="downdate", **how)


def test_a_step_out_of_the_bounds_is_refused_by_the_call_itself(calibrations):
    before = calibrations["plain"]
    after = so.forget(before, ids=GONE, operator="downdate").parameters["vol_of_vol"]
    narrow = tuple(
        sorted((before.references[WHOLE]["vol_of_vol"], 0.5 * (before.references[WHOLE]["vol_of_vol"] + after)))
    )
    kept = replace(before, settings=replace(before.settings, bounds={"vol_of_vol": narrow}))
    with raises(RefusedError, mentions={"operator"}, count=526, outside=["vol_of_vol"]) as refused:
        so.forget(kept, ids=GONE, operator="downdate")
    assert refused.value.facts["outside"] == ["vol_of_vol"]


def test_copies_are_equal_and_share_what_is_frozen(calibrations):
    done = so.forget(calibrations["plain"], ids=GONE, operator="downdate")
    wanted = told(so.forget(calibrations["plain"], ids=GONE, operator="downdate"))
    early = copy.copy(done)
    assert told(early) == told(done) == told(copy.copy(done)) == wanted
    assert (done == done, done == early) == (True, False)  # one forgetting is itself: results compare by identity
    with pytest.raises(AttributeError):
        done.operator = "other"  # type: ignore[misc]


def test_the_call_does_no_work_that_grows_with_the_book():
    """How long it takes is in benchmarks/forget.py."""
    counts = []
    for days in (300, 1200):
        quotes = so.synthetic.random_quotes(days, maturities=4, seed=1, noise=1e-3)
        before, gone = so.calibrate(quotes, so.Heston()), quotes.ids[3:30].tolist()
        counts.append(calls(lambda before=before, gone=gone: so.forget(before, ids=gone, operator="downdate")))
    assert counts[0] == counts[1] < 100  # 90 when this was written, the lookup of 27 ids included
