"""Which conclusions of the tutorials and of the real panels change with the unit of the errors. No timing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import strikeout as so
from benchmarks.chains import DATA
from benchmarks.rows import Result
from strikeout.results import Calibration
from strikeout.synthetic.heston_quotes import TRUTH
from strikeout.synthetic.sample_files import SAMPLE_TRUTH

FAR = 3.0  # errors: nearer than this counts as the same number
PANELS = ("panel_spx_weekly_2011_h1", "panel_spx_2026-07-22_08-05", "panel_deribit_btc_2025-12_2026-04")

Distance = Callable[[Mapping[str, float]], float]  # given standard errors, in these


def errors_of(found: Calibration, unit: str) -> so.results.StandardErrors:
    """Return the standard errors of a calibration in another unit."""
    return replace(found, settings=replace(found.settings, errors=unit)).errors


def judged(found: Calibration, apart: Distance, *, near: str, far: str, unit: str = "auto") -> str:
    """Return a distance in independent and in clustered errors, and whether the conclusion changes."""
    clustered = errors_of(found, unit)
    plain, wide = (apart(one.standard_errors) for one in (errors_of(found, "independent"), clustered))
    says = [far if x > FAR else near for x in (plain, wide)]
    basis = f"{clustered.clusters[0]} by {clustered.labels[0]}" if clustered.basis.corrections else "not clustered"
    change = f"CHANGES: {says[0]} -> {says[1]}" if says[0] != says[1] else says[0]
    return f"{plain:.3g} independent, {wide:.3g} clustered ({basis}); {change}"


def from_truth(found: Calibration, truth: Mapping[str, float]) -> Distance:
    """Return the distance of the worst parameter from the truth."""
    apart = {name: abs(value - truth[name]) for name, value in found.parameters.items()}
    return lambda errors: max(far / errors[name] for name, far in apart.items())


def first_calibration() -> str:
    found = so.calibrate(so.paper.quotes("large", seed=42), so.Heston())
    return judged(found, from_truth(found, TRUTH), near="right", far="wrong")


def index_options() -> str:
    with TemporaryDirectory() as folder:
        so.synthetic.write_sample(Path(folder) / "chain.csv")
        quotes = so.inspect_quotes(Path(folder) / "chain.csv").quotes
    found = so.calibrate(quotes, so.Heston(), select="otm", weights="spread")
    return judged(found, from_truth(found, SAMPLE_TRUTH), near="right", far="wrong")


def bad_feed() -> tuple[str, str]:
    with TemporaryDirectory() as folder:
        so.synthetic.write_sample(Path(folder) / "week.csv", "feeds")
        quotes = so.inspect_quotes(Path(folder) / "week.csv").quotes
    found = so.calibrate(quotes, so.Heston(), weights="spread")
    mended = so.forget(found, where="source = 'south' AND date = '2024-03-13'").calibration
    before, after = (
        judged(one, from_truth(one, SAMPLE_TRUTH), near="right", far="wrong", unit="cluster:expiry")
        for one in (found, mended)
    )
    return before, after


def first_forgetting() -> tuple[str, str]:
    quotes = so.paper.quotes("large", seed=42)
    prices = quotes.observed.copy()
    prices[quotes.labels["date"] == "2024-03-05"] *= 1.01
    found = so.calibrate(quotes.with_observed(prices), so.Heston())
    left = so.forget(found, where="date = '2024-03-05'").calibration
    apart, words = from_truth(found, left.parameters), {"near": "within the errors", "far": "the day moves them far"}
    return judged(found, apart, **words), judged(left, apart, **words)


def panel() -> str:
    found = so.calibrate(so.synthetic.panel_quotes(30, seed=7), so.Heston(), panel="date")
    return judged(found, from_truth(found, TRUTH), near="right", far="wrong")


def influential() -> str:
    quotes = so.paper.quotes("small", seed=5)
    observed = quotes.observed.copy()
    observed[217] *= 0.1
    found = so.calibrate(quotes.with_observed(observed), so.Heston())
    worst = so.robustness(found, "mean_reversion", count=5)
    apart = max(abs(one.value - found.parameters["mean_reversion"]) for one in (worst.lowering, worst.raising))
    near, far = "five quotes move mean_reversion by little", "five quotes move mean_reversion far"
    return judged(found, lambda errors: apart / errors["mean_reversion"], near=near, far=far)


def signs(name: str) -> str:
    """Return how far the parameter that is nearest to zero is from it, in a real panel."""
    quotes = so.read_quotes(DATA / f"{name}.parquet", max_reject=1.0)
    found = so.calibrate(quotes, so.Heston(), panel="date", select="otm")
    free = errors_of(found, "independent").names
    nearest = min(free, key=lambda n: abs(found.parameters[n]) / errors_of(found, "auto").standard_errors[n])
    value = abs(found.parameters[nearest])
    said = judged(found, lambda errors: value / errors[nearest], near="its sign is not known", far="its sign is known")
    return f"{nearest} from zero, {said}"


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Compute every conclusion in both units; without the real panels in quick mode."""
    facts: dict[str, float | str] = {
        "first calibration: the worst parameter from the truth": first_calibration(),
        "a day of index options: the worst parameter from the truth": index_options(),
    }
    before, after = bad_feed()
    facts["a bad feed: the worst parameter from the truth"] = before
    facts["a bad feed, struck out: the worst parameter from the truth"] = after
    before, after = first_forgetting()
    facts["first forgetting: the farthest move by the bad day, in errors before"] = before
    facts["first forgetting: the farthest move by the bad day, in errors after"] = after
    facts["calibrate a panel: the worst shared parameter from the truth"] = panel()
    facts["find influential quotes: the farthest move by five"] = influential()
    for name in () if is_quick else PANELS:
        facts[name] = signs(name)
    return Result("conclusions", is_quick, (), facts)
