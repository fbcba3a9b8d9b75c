"""Rolling a panel: a day out and a day in, by a certified step and exactly; and a thousand rolls without drift."""

from __future__ import annotations

import time

import numpy as np

import strikeout as so
from benchmarks.rows import Result, Row
from benchmarks.timing import interleave, same
from strikeout.forgetting.online import begin, update

DAYS = 250
TOLERANCE = 0.05


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """The exchange of two states, the public call with its certified error, and a calibration; then the drift."""
    days = 30 if is_quick else DAYS
    rows = _one_roll(days, rounds=3 if is_quick else 41)
    return Result("roll", is_quick, tuple(rows), _drift(20 if is_quick else 1000))


def _one_roll(days: int, *, rounds: int) -> list[Row]:
    quotes = so.synthetic.panel_quotes(days + 1, seed=3)
    dates = np.unique(quotes.labels["date"])
    part = {date: quotes[quotes.labels["date"] == date] for date in dates}
    old, new = part[dates[0]], part[dates[-1]]
    panel = so.calibrate(quotes[quotes.labels["date"] != dates[-1]], so.Heston(), panel="date", starts=1)
    start = begin(panel, TOLERANCE)
    done = update(start, new, old.ids, TOLERANCE)
    block = done.system.blocks[dates[-1]]
    reference = dict(zip(block.schema.parameters, block.schema.reference, strict=True))

    def inner() -> object:
        step = start.system.exchanged([dates[0]], {dates[-1]: panel.footprints_of(new, reference).total()}).step()
        return step.parameters, step.latent

    timed = interleave(
        {
            "strikeout, state": same(inner),
            "strikeout": same(lambda: update(start, new, old.ids, TOLERANCE).parameters),
            "exact": same(lambda: so.roll(panel, new, forget=old.ids).parameters),
        },
        rounds=rounds,
    )
    notes = {
        "strikeout, state": "footprints of the new day, exchanged exactly, and the step of all parameters",
        "strikeout": f"so.roll(tolerance={TOLERANCE:g}): also the new day's variance and the certified error "
        f"({done.error:.1e} standard errors)",
        "exact": "so.roll: all quotes calibrated from cold starts",
    }
    task = f"a day out of a panel of {days} days and a day in, {len(new)} quotes each"
    return [Row(task, name, t.seconds, t.ratio, None, note=notes[name]) for name, t in timed.items()]


def _drift(rolls: int) -> dict[str, object]:
    """Return how far the answers are from exact ones over many rolls, and how many were exact."""
    days = 30
    quotes = so.synthetic.panel_quotes(2 * days, seed=5)
    dates = np.unique(quotes.labels["date"])
    part = [quotes[quotes.labels["date"] == date] for date in dates]
    held = list(range(days))
    now = so.calibrate(quotes[np.isin(quotes.labels["date"], dates[:days])], so.Heston(), panel="date", starts=1)
    exact_answers, worst, certified, begun = 0, 0.0, 0.0, time.process_time()
    for n in range(rolls):
        new = (days + n) % (2 * days)
        now = so.roll(now, part[new], forget=part[held.pop(0)].ids, tolerance=0.001)
        held.append(new)
        exact_answers += now.is_exact
        certified = max(certified, now.error)
        if n % max(rolls // 20, 1) == 0:
            exact = so.calibrate(now.quotes, so.Heston(), panel="date", starts=1)
            apart = [abs(now.parameters[m] - v) / exact.standard_errors[m] for m, v in exact.parameters.items()]
            worst = max(worst, *apart)
    final = so.calibrate(now.quotes, so.Heston(), panel="date", starts=1)
    return {
        "rolls": rolls,
        "tolerance": 0.001,
        "exact answers": exact_answers,
        "largest certified error, SE": f"{certified:.2g}",
        "largest distance from the exact answer, SE": f"{worst:.2g}",
        "bits of the exact answer at the end": now.calibration.parameters == final.parameters,
        "processor time, s": round(time.process_time() - begun, 1),
    }
