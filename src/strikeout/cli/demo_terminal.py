"""The demo's story in the terminal: five short chapters, a table each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.assurance.verification import word_of
from strikeout.cli import terminal
from strikeout.cli.story import MONEYNESS, volatilities

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.story import Story

SHOWN_GROUPS = 5


def tell(told: Story, seconds: float) -> None:
    """Prints the story; ``seconds`` is how long its numbers took."""
    clean, arrived = told.clean, told.arrived
    bad, every = len(told.bad_ids), clean.count
    terminal.show(
        f"1. A book of {every:,} synthetic calls from two feeds, a and b, over 180 days; Heston's parameters behind it "
        "are known. Calibrated as it should be:\n",
        _table(told, clean),
        f"\nRMSE {clean.rmse:.3g} in price. {_sentence(clean)}\n",
        f"2. On three days feed b is wrong ({bad} quotes, {bad / every:.1%} of the book):\n",
        terminal.table(
            ("day", "what feed b sent", "quotes"),
            [(day.date, day.fault, str(len(day.ids))) for day in told.bad_days],
            numbers=(2,),
            whole=(0,),
        ),
        "\nCalibrated as it arrived (SEs off: counted in the standard errors of 1):\n",
        _table(told, arrived),
        f"\nRMSE {arrived.rmse:.3g}, {arrived.rmse / clean.rmse:,.0f} times the noise. {_sentence(arrived)}",
        f"{smiles_off(told)}\n",
        "3. Nobody says which quotes are bad. What would striking out each day of each feed do?\n",
        terminal.table(("day", "feed", "quotes", "Cook's distance", "price moves"), groups(told), numbers=(2, 3, 4)),
        f"\n{standing_out(told)}\n",
        f"4. Struck out: {told.condition}\n",
        terminal.table(HEADS, ways(told), numbers=(1, 2, 3, 4), whole=(0,)),
        f"\n{paper_sentence(told)}",
        f"{robust_sentence(told)}\n",
        "5. Is it gone?\n",
        terminal.facts(checks(told)),
        "\nThe certificate, every claim computed again by somebody who holds the retained quotes only:\n",
        terminal.facts(
            [(check.name, f"{word_of(check)}: {check.found}") for check in told.verification.checks],
        ),
        f"\nEverything above was computed just now, in {seconds:.2f} s.",
    )


HEADS = ("parameter", "truth", "one step, the paper's", "from moments", "refitted")


def ways(told: Story) -> list[list[str]]:
    """Every parameter as each way of striking out gives it; then how far off that is, and the RMSE it leaves."""
    answers: tuple[Mapping[str, float], ...] = (told.paper, told.resolved.parameters, told.without.parameters)
    rows = [[name, f"{truth:g}", *(f"{answer[name]:.6g}" for answer in answers)] for name, truth in told.truth.items()]
    rows.append(["SEs off, at most", "0", *(f"{told.worst(answer):,.1f}" for answer in answers)])
    rows.append(["RMSE", "", *(f"{_rmse(told, answer):.3g}" for answer in answers)])
    return rows


def groups(told: Story) -> list[list[str]]:
    """The most influential days of a feed: day, feed, quotes, Cook's distance, largest price change."""
    first = told.influence.top(SHOWN_GROUPS)
    return [
        [str(first["date"][n]), str(first["source"][n]), str(first["count"][n]), *(f"{first[c][n]:.2g}" for c in COSTS)]
        for n in range(SHOWN_GROUPS)
    ]


COSTS = ("cooks_d", "price_change")


def standing_out(told: Story) -> str:
    """That the bad days come first, and by how much."""
    distance, bad = told.influence["cooks_d"], len(told.bad_days)
    found = set(told.influence["date"][:bad].tolist()) == {day.date for day in told.bad_days}
    words = "These are the three bad days" if found else "These are not the three bad days"
    return (
        f"The first {bad} of {told.influence.rows:,} stand out, the last of them by a factor of "
        f"{distance[bad - 1] / distance[bad]:,.0f}. {words}."
    )


def paper_sentence(told: Story) -> str:
    """What one step from spoiled parameters comes to."""
    own = told.paper == told.paper_baseline
    return (
        "The paper's fast operator takes one Gauss-Newton step from the spoiled parameters. By its own measure, the "
        f"same step rebuilt from the retained quotes, it is {'right to the last bit' if own else 'not right either'}; "
        f"from the truth it is {told.worst(told.paper):,.0f} standard errors away. Solving again, from moments (no "
        f"quote is looked at) or from the retained quotes, is {told.worst(told.without.parameters):.1f} off, as the "
        "noise allows."
    )


def robust_sentence(told: Story) -> str:
    """What the same step is worth from a reference that bad quotes hardly move."""
    return (
        "The same single step from a robust reference, which bad quotes hardly move, misses the refit by "
        f"{told.from_refit(told.robust):.1g} standard errors; the moments miss it by "
        f"{told.from_refit(told.resolved.parameters):.0e}."
    )


def checks(told: Story) -> list[tuple[str, str]]:
    """What can be said of the strike-out, each in a sentence."""
    same, other = "the same bits", "OTHER BITS"
    return [
        ("never seen", f"{same if told.is_as_never_seen else other} as the good book without those days"),
        ("undone", f"{same if told.is_restored else other} as before, when the quotes are brought back"),
        ("verified", "the certificate holds" if told.verification.holds else "THE CERTIFICATE DOES NOT HOLD"),
        ("and not", f"with the bad days in the book: {refuted(told)}"),
    ]


def refuted(told: Story) -> str:
    """Which checks fail where the quotes are still there."""
    failed = [check.name for check in told.refuted.checks if check.holds is False]
    return f"{', '.join(failed)} fail" if failed else "NOTHING FAILS"


def smiles_off(told: Story) -> str:
    """Which smiles are off, and by how much."""
    expiries, right = volatilities(told.clean)
    moved = 100 * (volatilities(told.arrived)[1] - right)
    row, column = np.unravel_index(np.argmax(np.abs(moved)), moved.shape)
    off = int((np.abs(moved).max(axis=1) > 0.1).sum())
    return (
        f"{off} of {len(expiries)} smiles are off by more than 0.1 volatility points; the worst by "
        f"{moved[row, column]:+.2f}, at {expiries[row]:.3g} years and log-moneyness {MONEYNESS[column]:+.1f}."
    )


def _table(told: Story, calibration: Calibration) -> Any:
    errors = told.errors(calibration.parameters)
    rows = [
        (
            name,
            f"{told.truth[name]:g}",
            f"{value:.6g}",
            terminal.error_text(calibration.standard_errors[name]),
            f"{errors[name]:+,.1f}",
        )
        for name, value in calibration.parameters.items()
    ]
    return terminal.table(
        ("parameter", "truth", "found", "standard error", "SEs off"), rows, numbers=(1, 2, 3, 4), whole=(0,)
    )


def _rmse(told: Story, parameters: Mapping[str, float]) -> float:
    retained = told.without.quotes
    left = retained.observed - told.without.model.price(parameters, retained.contracts)
    return float(np.sqrt(np.mean(left * left)))


def _sentence(calibration: Calibration) -> str:
    return calibration.termination.sentence
