"""Everything strikeout computes, on one small book, as text in which every bit shows.

    python tests/laws/processor_program.py [--instructions plain|avx2|avx512] [--verify FILE] [--golden]

Prints one JSON object: ``results`` by name (floats in hexadecimal, digests, bytes of certificates), ``certificates`` to
be checked elsewhere, ``verified`` for those of FILE (an earlier output), and ``control``, which is computed by NumPy's
and the C library's own functions and so may differ between processors.

With ``--golden`` it writes golden/processors.json instead: the results that no machine may have otherwise. Make it
again where a change of bits was meant, and only then.

``test_processors.py`` runs it while NumPy, the C library and the BLAS are told to take the processor for another one.
Only the file book.csv goes in: contracts and prices are decimal numbers there, so that nothing is computed before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import strikeout as so
from strikeout.assurance.bounds import leverages
from strikeout.kernels.compiled import native
from strikeout.statistics.linearization import Linearization

BOOK = Path(__file__).parent / "golden" / "book.csv"
GOLDEN = BOOK.with_name("processors.json")
Found = Iterator[tuple[str, str]]

# Two markets are in the file: CALM on three days, which two variances explain, and LEAP, whose smiles need jumps.
ON = {"bates": "LEAP", "variance-gamma": "LEAP"}
MODELS: dict[str, Callable[[], Any]] = {
    "heston": so.Heston,
    "bates": so.Bates,
    "double-heston": so.DoubleHeston,
    "variance-gamma": so.VarianceGamma,
    "sabr": so.SABR,
    "normal-sabr": lambda: so.SABR(beta=0.5, volatility="normal"),
    "natural-svi": lambda: so.SVI("natural"),
    "ssvi": so.SSVI,
    "flat": so.BlackScholes,
    "term-structure": lambda: so.BlackScholes("quoted"),
}
PRICED = MODELS | {"svi": so.SVI}  # eight quotes an expiry are few for its five parameters
OBJECTIVES: dict[str, dict[str, Any]] = {
    "price": {},
    "relative": {"weights": "relative"},
    "vega": {"weights": "vega"},
    "spread": {"weights": "spread"},
    "implied volatility": {"residual": "implied_vol"},
    "vol-spread": {"residual": "implied_vol", "weights": "vol-spread"},
    "huber": {"loss": "huber"},
}
OPERATORS = ("downdate", "restep", "recompute", "resolve", "recalibrate", "refine")
ONE_START = ("bates", "double-heston")  # slow ones: one start is enough to show their bits


def bits(value: Any) -> str:
    """Plain values as text: floats in hexadecimal."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={bits(each)}" for name, each in value.items())
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        if array.dtype.kind == "f":
            return hashlib.sha256(np.ascontiguousarray(array, "<f8").tobytes()).hexdigest()[:32]
        return hashlib.sha256(json.dumps(array.tolist()).encode()).hexdigest()[:32]
    return float(value).hex() if isinstance(value, float | np.floating) else str(value)


# --- books ---------------------------------------------------------------------------------------------------------


@cache
def book(*without: str, calls: bool = False) -> so.Quotes:
    """The quotes of the file, without some of its columns, or its calls alone."""
    frame = pl.read_csv(BOOK).drop(without)
    return so.read_quotes(frame.filter(pl.col("right") == "C") if calls else frame)


@cache
def market(name: str) -> so.Quotes:
    """A day of one market, out of the money."""
    quotes = book()
    rows = (quotes.labels["underlying"] == name) & (quotes.labels["date"] == "2024-03-01")
    return quotes[rows & (quotes.contracts.is_call == (quotes.contracts.strike >= quotes.contracts.forward))]


@cache
def days() -> so.Quotes:
    """The three days of CALM, out of the money."""
    quotes = book()
    rows = quotes.labels["underlying"] == "CALM"
    return quotes[rows & (quotes.contracts.is_call == (quotes.contracts.strike >= quotes.contracts.forward))]


def quotes_for(model: str) -> so.Quotes:
    quotes = market(ON.get(model, "CALM"))
    # Variance Gamma has one smile for all expiries: it is held against one of them.
    return quotes[quotes.labels["expiry_date"] == "2024-06-21"] if model == "variance-gamma" else quotes


@cache
def calibrated(model: str, objective: str = "price") -> so.results.Calibration:
    starts = 1 if model in ONE_START else 4
    return so.calibrate(quotes_for(model), MODELS[model](), starts=starts, **OBJECTIVES[objective])


# --- results -------------------------------------------------------------------------------------------------------


def of_calibration(found: Any) -> Found:
    yield "termination", found.termination.name
    yield "parameters", bits(found.parameters)
    yield "standard errors", bits(found.standard_errors)
    yield "cost", bits(found.cost)
    yield "rmse", bits(found.rmse)
    yield "condition", bits(found.condition)
    yield "state", found.state.digest()
    yield "steps", bits([step.cost for step in found.history])
    if found.latent:
        yield "latent", bits(found.latent)
        yield "latent standard errors", bits(found.latent_standard_errors)


def of_columns(quotes: so.Quotes) -> Found:
    c = quotes.contracts
    for name in ("forward", "strike", "expiry", "discount"):
        yield name, bits(getattr(c, name))
    yield "observed", bits(quotes.observed)


def books() -> Found:
    """What reading derives, and what synthetic books hold."""
    made = {
        "given": book(),
        "discount from rates": book("discount"),
        "forward from dividends": book("forward", "discount", calls=True),  # calls alone have no parity
        "parity": book("forward", "discount", "spot", "rate", "dividend_yield"),
        "random": so.synthetic.random_quotes(300, maturities=300, seed=5),
        "paper": so.paper.quotes("small"),
        "panel": so.synthetic.panel_quotes(3, seed=2),
    }
    for name, quotes in made.items():
        yield from prefixed(name, of_columns(quotes))


def american() -> Found:
    """American prices and volatilities, and the same file read as American, with yields and with cash dividends."""
    given: dict[str, Any] = {"spot": 100.0, "strike": np.arange(70.0, 131.0, 5.0), "expiry": 0.75, "is_call": False}
    for name, market in {"one": (0.05, 0.02), "two": (-0.01, -0.03)}.items():
        how = {**given, "rate": market[0], "dividend_yield": market[1]}
        price = so.american.price(volatility=0.25, **how)
        yield f"{name} boundary", f"{bits(price)} {bits(so.american.vega(volatility=0.25, **how))}"
        yield f"{name} boundary, implied", bits(so.american.implied_volatility(price=price, **how))
    frame = pl.read_csv(BOOK).filter((pl.col("underlying") == "CALM") & (pl.col("quote_date") == "2024-03-01"))
    paid = {"2024-03-15": 0.5, "2024-06-14": 0.5, "2024-09-13": 0.5}
    ways: dict[str, dict[str, Any]] = {"yield": {}, "escrowed": {"dividends": paid}}
    ways["piecewise"] = {"dividends": so.american.Dividends.of(paid, "piecewise")}
    for name, how in ways.items():
        own = so.read_quotes(frame, exercise="american", max_reject=1.0, **how)
        yield from prefixed(f"{name}, given", of_columns(own))
        fitted = frame.drop("forward", "discount", "dividend_yield")
        quotes = so.read_quotes(fitted, exercise="american", max_reject=1.0, **how)
        yield from prefixed(f"{name}, parity", of_columns(quotes))
        before = so.calibrate(quotes, so.BlackScholes(), select="otm")
        yield from prefixed(f"{name}, forgetting", of_forgetting(lambda b=before: so.forget(b, ids=b.quotes.ids[3:5])))


def calibrations(model: str) -> Found:
    for objective in OBJECTIVES:
        yield from prefixed(objective, of_calibration(calibrated(model, objective)))


def pricing(model: str) -> Found:
    """Prices and sensitivities at every canonical start, in the wings too."""
    built, quotes = PRICED[model](), quotes_for(model)
    suited = built.suited(quotes.contracts) if hasattr(built, "suited") else built
    for number, start in enumerate(suited.parameters.starts):
        price, jacobian = suited.linearize(start, quotes.contracts)
        yield f"start {number}", f"{bits(price)} {bits(jacobian)}"


def threads() -> Found:
    """A book that is worth two threads: as many expiries as quotes, priced one by one."""
    quotes = so.synthetic.random_quotes(180, maturities=180, seed=1)
    model = so.Heston("native", "shared")
    price, jacobian = model.linearize(model.parameters.starts[0], quotes.contracts)
    yield "rows", f"{bits(price)} {bits(jacobian)}"
    yield from of_calibration(so.calibrate(quotes, model, starts=1))


def scattered() -> Found:
    """Expiries that no two quotes share, and moments of those."""
    quotes = so.synthetic.random_quotes(120, maturities=120, seed=4, noise=1e-3)
    yield from of_calibration(so.calibrate(quotes, so.Heston(expiries="scattered")))
    moments = so.states.moments_of(quotes, basis=so.states.Basis("scattered"))
    yield "moments", moments.digest()
    yield from prefixed("from moments", of_calibration(so.calibrate(moments, so.Heston())))


def moments(model: str) -> Found:
    quotes = quotes_for(model)
    for rule in ("given", "relative", "vega", "spread"):
        yield f"digest {rule}", so.states.moments_of(quotes, weights=rule).digest()
    found = so.calibrate(so.states.moments_of(quotes), MODELS[model]())
    yield from of_calibration(found)
    yield "interpolation bound", bits(so.states.interpolation_bound(found))
    yield "interpolation error", bits(so.states.interpolation_error(found, quotes))
    yield "certificate", bits(so.forget(found, quotes=quotes[3:5]).certificate.to_bytes())


def forgetting(model: str) -> Found:
    """Every operator, and one step that a tolerance is asked of."""
    before = calibrated(model)
    ids = before.quotes.ids[3:5]
    for operator in OPERATORS:
        yield from prefixed(operator, of_forgetting(lambda o=operator: so.forget(before, ids=ids, operator=o)))
    for tolerance in (0.5, 1e-6):
        yield from prefixed(
            f"tolerance {tolerance:g}", of_forgetting(lambda t=tolerance: so.forget(before, ids=ids, tolerance=t))
        )
    look = so.preview(before, ids=ids)
    yield "preview", f"{bits(look.parameters)} {bits(look.error)}"


def of_forgetting(made: Callable[[], Any]) -> Found:
    try:
        done = made()
    except so.errors.StrikeoutError as error:
        yield "refused", type(error).__name__
        return
    yield "operator", done.operator
    yield "parameters", bits(done.parameters)
    if done.step_error is not None:
        yield "trust", f"{bits(done.step_error.predicted)} {bits(done.step_error.indicator.value)}"
        yield "trusted errors", bits(done.step_error.standard_errors)
    yield "certificate", bits(done.certificate.to_bytes())


@cache
def panel_of(model: str) -> so.results.Calibration:
    return so.calibrate(days(), MODELS[model](), panel="date", starts=1 if model in ONE_START else 4)


def panels() -> Found:
    found = panel_of("heston")
    yield from of_calibration(found)
    smooth = so.calibrate(days(), MODELS["heston"](), panel="date", latent="smoothed")
    yield "smoothed", f"{bits(smooth.parameters)} {bits(list(smooth.latent.values()))}"
    ids = found.quotes.ids[[1, 2, 40]]
    for operator in ("downdate", "recalibrate"):
        yield from prefixed(operator, of_forgetting(lambda o=operator: so.forget(found, ids=ids, operator=o)))
    yield from prefixed("tolerance", of_forgetting(lambda: so.forget(found, ids=ids, tolerance=1.0)))
    yield from prefixed("day", of_forgetting(lambda: so.forget(found, where="date = '2024-03-04'")))
    yield from influences(found, "date")


def influences(found: Any, *labels: str) -> Found:
    for by in (None, *labels):
        columns = so.influence(found, by=by)
        yield f"influence by {by or 'quote'}", " ".join(map(bits, columns.values()))


def judging(model: str) -> Found:
    """Influence and leverages."""
    found = calibrated(model)
    yield from influences(found, "expiry_date")
    if not found.fixed and not found.on_bound:
        yield "leverages", bits(leverages(found.equations, _less(found)))


def _less(found: so.results.Calibration) -> Linearization:
    """The equations with half a quote's worth taken from them."""
    return Linearization(tuple(0.5 * x for x in found.equations.triangle), found.count - 1)


def prefixed(prefix: str, found: Found) -> Found:
    return ((f"{prefix}: {name}", value) for name, value in found)


def results() -> dict[str, str]:
    """Everything by name, in the order it is computed."""
    parts: dict[str, Callable[[], Found]] = {"books": books, "american": american}
    for model in PRICED:
        parts[f"{model} prices"] = lambda m=model: pricing(m)
    for model in MODELS:
        parts[model] = lambda m=model: calibrations(m)
        parts[f"{model} forgetting"] = lambda m=model: forgetting(m)
        parts[f"{model} judging"] = lambda m=model: judging(m)
    for model in ("heston", "variance-gamma", "flat"):
        parts[f"{model} moments"] = lambda m=model: moments(m)
    parts |= {"panel": panels, "scattered": scattered}
    if native() is not None:
        parts["threads"] = threads
    return {name: value for part, make in parts.items() for name, value in prefixed(part, make())}


# --- certificates --------------------------------------------------------------------------------------------------


def certificates() -> dict[str, str]:
    """One of every model, of moments and of a panel: all claim NEVER_SEEN."""
    made = {}
    for model in MODELS:
        before = calibrated(model)
        made[model] = so.forget(before, ids=before.quotes.ids[3:5]).certificate
    panel = panel_of("heston")
    made["panel"] = so.forget(panel, ids=panel.quotes.ids[[1, 2, 40]]).certificate
    return {name: certificate.to_bytes().decode() for name, certificate in made.items()}


def verified(issued: Mapping[str, str]) -> dict[str, dict[str, bool | None]]:
    """What becomes of certificates issued elsewhere, claim by claim."""
    found = {}
    for name, certificate in issued.items():
        quotes = days() if name == "panel" else quotes_for(name)
        gone = quotes.ids[[1, 2, 40]] if name == "panel" else quotes.ids[3:5]
        checks = so.verify(certificate.encode(), quotes.without(gone)).checks
        found[name] = {check.name: check.holds for check in checks}
    return found


def control() -> dict[str, str]:
    """What NumPy, the C library and the BLAS round as this processor makes them."""
    x = np.arange(1, 20_001) / 7_000.0
    z, A = x + 1j * x[::-1], x.reshape(100, 200)
    return {
        "numpy": bits(np.concatenate([np.sin(x), np.exp(x), np.log(x), (z * z[::-1]).real])),
        "libc": bits([math.exp(value) for value in x] + [math.pow(value, 1.1) for value in x]),
        "blas": bits(A @ A.T),
    }


def portable(results: Mapping[str, str]) -> dict[str, str]:
    """The results as they are on every machine: certificates by digest, without the build that each of them names."""
    out = {}
    for name, value in results.items():
        if name.endswith(": certificate"):
            kept = {key: each for key, each in json.loads(value).items() if key not in ("build", "software")}
            value = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:32]
        out[name] = value
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--instructions", choices=("plain", "avx2", "avx512"))
    parser.add_argument("--verify", type=Path)
    parser.add_argument("--golden", action="store_true")
    asked = parser.parse_args()
    if asked.instructions:
        native().use_instructions(asked.instructions)  # type: ignore[union-attr]
    if asked.golden:
        made = "python tests/laws/processor_program.py --golden, with the compiled kernel; floats are hexadecimal"
        GOLDEN.write_text(json.dumps({"made by": made, "results": portable(results())}, indent=1) + "\n")
        return
    out: dict[str, Any] = {"results": results(), "certificates": certificates(), "control": control()}
    if asked.verify:
        out["verified"] = verified(json.loads(asked.verify.read_text())["certificates"])
    json.dump(out, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
