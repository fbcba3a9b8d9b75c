"""Write dividend_grid.json: QuantLib's finite differences with a dividend schedule."""

from __future__ import annotations

import json
from pathlib import Path

import QuantLib as ql  # noqa: N813

PAID = ((20, 1.5), (110, 1.5), (200, 1.6), (290, 1.6))  # days, amount
STRIKES = (80, 95, 100, 105, 120)
MODELS = {
    "escrowed": ql.FdBlackScholesVanillaEngine.Escrowed,
    "piecewise": ql.FdBlackScholesVanillaEngine.Spot,
}


def value(strike: float, kind: int, *, american: bool, model: int, steps: int, points: int) -> float:
    """Return the value of an option on a spot of 100, one year, rate 5 %, yield 0.5 %, volatility 25 %."""
    today = ql.Date(2, 1, 2024)
    ql.Settings.instance().evaluationDate = today
    days = ql.Actual365Fixed()
    process = ql.BlackScholesMertonProcess(
        ql.QuoteHandle(ql.SimpleQuote(100.0)),
        ql.YieldTermStructureHandle(ql.FlatForward(today, 0.005, days)),
        ql.YieldTermStructureHandle(ql.FlatForward(today, 0.05, days)),
        ql.BlackVolTermStructureHandle(ql.BlackConstantVol(today, ql.NullCalendar(), 0.25, days)),
    )
    end = today + 365
    exercise = ql.AmericanExercise(today, end) if american else ql.EuropeanExercise(end)
    option = ql.VanillaOption(ql.PlainVanillaPayoff(kind, strike), exercise)
    schedule = ql.DividendVector([today + n for n, _ in PAID], [amount for _, amount in PAID])
    scheme = ql.FdmSchemeDesc.Douglas()
    engine = ql.FdBlackScholesVanillaEngine(process, schedule, steps, points, 0, scheme, False, -1.0, model)
    option.setPricingEngine(engine)
    return float(option.NPV())


if __name__ == "__main__":
    table = {
        f"{name} {side}": [
            [round(value(K, kind, american=early, model=model, steps=3200, points=1600), 6) for K in STRIKES]
            for early in (True, False)
        ]
        for name, model in MODELS.items()
        for side, kind in (("calls", ql.Option.Call), ("puts", ql.Option.Put))
    }
    (Path(__file__).parent / "dividend_grid.json").write_text(json.dumps(table) + "\n")
