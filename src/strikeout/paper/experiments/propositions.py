"""The paper's propositions as experiments: what each promises, measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from strikeout.calibration.calibrate import calibrate
from strikeout.models.heston import Heston
from strikeout.paper.experiments.complexity import Growth, growths
from strikeout.paper.experiments.conditions import (
    Condition,
    Pull,
    Relinearizing,
    Remainder,
    conditions,
    pulls,
    relinearizing,
    remainders,
)
from strikeout.paper.experiments.equivalence import Exactness, exactness
from strikeout.paper.experiments.report import (
    Column,
    Finding,
    Picture,
    Progress,
    Scale,
    Section,
    Table,
    Value,
    tabulated,
    time_text,
)
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.text import many

SECTION = Section(
    "propositions",
    "The propositions, as experiments",
    "The paper proves that shards and subtraction give the system of a rebuild, that one relinearization errs to "
    "second order where residuals are small, that the update is stable under conditions on norms, that Huber's loss "
    "bounds what a quote can do, and that costs are linear. Does each hold when measured, how tight is it, and how "
    "often are its conditions met?",
)
NOISES = (0.0, 1e-3, 1e-1)  # currency; the paper's small set has 1e-3
WRONG_BY = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # currency
REPEATS = 5  # runs, of which the lower quartile counts: what else a machine does only ever makes them longer
REMAINDERS = (540, 108, 54, 27, 14, 10, 7)  # quotes retained of the small set's 540; five parameters need more than 5
SHARES = (1, 5, 27, 270, 1890)  # quotes of the large set's 2,700: one, five, 1 %, 10 %, 70 %


def run(scale: Scale, progress: Progress) -> Finding:
    """Return all propositions on the paper's books; times are of this machine."""
    from strikeout.paper.experiments import figures

    seed, model = scale.seeds[0], Heston()
    large = calibrate(paper_quotes("large", seed=seed), model)
    progress(0.0, "exactness")
    exact = list(exactness(large, fractions=scale.fractions, seed=seed))
    progress(0.1, "relinearization")
    lines = relinearizing(
        paper_quotes("small", seed=seed), model, noises=NOISES, points=9 if scale.is_quick else 25, seed=seed
    )
    progress(0.2, "bounds")
    held = list(conditions(large, counts=SHARES, runs=50 if scale.is_quick else 500, seed=seed))
    wrong = pulls(large, wrong_by=WRONG_BY)
    small = calibrate(paper_quotes("small", seed=seed), model)
    few = list(remainders(small, counts=REMAINDERS, runs=20 if scale.is_quick else 200, seed=seed))
    progress(0.4, "run times")
    sizes = [20_000 * 2**n for n in range(4 if scale.is_quick else 6)]
    grown = growths(sizes=sizes, repeats=REPEATS, seed=seed)
    progress(1.0, "done")
    return Finding(
        paragraphs=(*_paragraphs(exact, lines, held, wrong, grown), _small(few)),
        tables={
            "exactness": exactness_table(exact),
            "strike-outs": _every_strike_out(exact),
            "relinearization": relinearization_table(lines),
            "conditions": conditions_table(held),
            "huber": huber_table(wrong),
            "remainders": remainders_table(few),
            "complexity": complexity_table(grown),
            "bounds": _every_bound(held),
            "times": _every_time(grown),
        },
        figures={
            "relinearization": Picture(
                "Length of the second Gauss-Newton step against the first, each parameter over its size, for books of "
                "540 quotes with no noise, the paper's noise and a hundred times it. Slope 2 is the paper's promise "
                "for small residuals; slope 1 is what is left where residuals are not small.",
                lambda: figures.relinearization(lines),
            ),
            "conditions": Picture(
                "Share of random strike-outs from the large set (2,700 quotes) that meet the condition of each bound. "
                "Plain norms mix a variance with a speed of reversion; scaled ones take every parameter times the "
                "root of its own curvature.",
                lambda: figures.condition_shares(held),
            ),
            "huber": Picture(
                "How far one wrong quote of 2,700 pulls the step, against how wrong it is (currency, spot 100). A "
                "parameter is measured in the standard error it has when the others are known.",
                lambda: figures.influence_control(wrong),
            ),
            "complexity": Picture(
                f"Run times against quotes, quadrature nodes and forgotten quotes, the lower quartile of {REPEATS} "
                "runs a point.",
                lambda: figures.run_times(grown),
            ),
        },
    )


def exactness_table(found: Sequence[Exactness]) -> Table:
    """Return a row a cut of the book."""
    by_cut = {cut: [one for one in found if one.cut == cut] for cut in dict.fromkeys(one.cut for one in found)}
    return tabulated(
        "Subtraction, recomputed shards and a rebuild from the retained quotes, 1 to 25 % of the large set drawn at "
        "random: in how many strike-outs state and step of all three are the same bits. The last column is the "
        "paper's way, sums of doubles: by what share of the step subtraction and rebuild differ at worst.",
        [
            {
                "cut by": cut,
                Column("shards", "count", "d"): ours[0].shards,
                Column("strike-outs", "count", "d"): len(ours),
                Column("same bits", "count", "d"): sum(one.is_equal for one in ours),
                Column("difference in doubles", "of the step", ".0e"): max(one.in_doubles for one in ours),
            }
            for cut, ours in by_cut.items()
        ],
    )


def _every_strike_out(found: Sequence[Exactness]) -> Table:
    return tabulated(
        "Every strike-out three ways.",
        [
            {
                "cut by": one.cut,
                Column("shards", "count", "d"): one.shards,
                Column("touched", "count", "d"): one.touched,
                Column("forgotten", "quotes", "d"): one.forgotten,
                "state and step of all three": "same bits" if one.is_equal else "differ",
                Column("difference in doubles", "of the step", ".0e"): one.in_doubles,
            }
            for one in found
        ],
        is_shown=False,
    )


def relinearization_table(found: Sequence[Relinearizing]) -> Table:
    """Return one row per noise."""
    return tabulated(
        "Proposition 2: the exponent of the second step's length in the first's, with its 95 % interval, and the "
        "lengths at both ends (each parameter over its size). Proposition 6: the exponent of the distance to the "
        "optimum after both steps; the paper promises 2 without noise and 1 with it.",
        [
            {
                Column("noise", "currency", "g"): one.noise,
                Column("exponent", "", ".2f"): one.slope.value,
                Column("from", "95 %", ".2f"): one.slope.low,
                Column("to", "95 %", ".2f"): one.slope.high,
                Column("shortest first step", "sizes", ".1e"): float(one.first[0]),
                Column("second step there", "sizes", ".1e"): float(one.second[0]),
                Column("longest first step", "sizes", ".1e"): float(one.first[-1]),
                Column("second step there, longest", "sizes", ".1e"): float(one.second[-1]),
                Column("exponent of what is left", "", ".2f"): one.accuracy.value,
            }
            for one in found
        ],
    )


def conditions_table(found: Sequence[Condition]) -> Table:
    """Return a row a bound; its condition over the sizes, and how tight it is at 1 %."""
    rows: list[tuple[Value, ...]] = []
    for name, scaled in dict.fromkeys((one.bound, one.scaled) for one in found):
        ours = {one.forgotten: one for one in found if (one.bound, one.scaled) == (name, scaled)}
        rows.append(
            (
                name,
                "scaled" if scaled else "plain",
                *(100.0 * ours[count].holds for count in SHARES),
                100.0 * min(one.respected for one in ours.values()),
                ours[27].tightness,
            )
        )
    leverages = {one.forgotten: one.leverage for one in found}
    rows.append(("largest leverage, eig(H^-1 dH)", "any", *(100.0 * leverages[count] for count in SHARES), None, None))
    return Table(
        "How often the condition of each bound is met by random strike-outs from 2,700 quotes, how often the truth is "
        "on the promised side if it is met, and truth over bound (1 is tight; a dash if it promises nothing). Last "
        "row: the quantity that works in any units, the share of the curvature that is lost in the worst direction.",
        (
            Column("bound"),
            Column("parameters"),
            *(Column(many(count, "quote"), "%", ".3g") for count in SHARES),
            Column("kept its promise", "%", ".0f"),
            Column("truth / bound at 27", "ratio", ".2g"),
        ),
        rows,
    )


def huber_table(found: Sequence[Pull]) -> Table:
    """Return a row an error."""
    return tabulated(
        "Move of the step when one wrong quote of 2,700 is struck out; lengths in standard errors (SE) with the other "
        "parameters known.",
        [
            {
                Column("wrong by", "currency", "g"): one.wrong_by,
                Column("squared loss", "SE", ",.2f"): one.squared,
                Column("Huber's loss", "SE", ",.2f"): one.huber,
                Column("bound for Huber's", "SE", ",.2f"): one.bound,
            }
            for one in found
        ],
    )


def remainders_table(found: Sequence[Remainder]) -> Table:
    """Return one row per size of the remainder."""
    return tabulated(
        "The paper's step on small remainders of the small set (noise 0.001): medians of the RMSE on the retained "
        "quotes. Its first mechanism, an invalid linearization, is the distance from the linear prediction to the "
        "step; its second, rounding under an ill-conditioned H', is the RMSE between floating point and integers.",
        [
            {
                Column("retained", "quotes", "d"): one.quotes,
                Column("condition of H'", "", ".0e"): one.condition,
                Column("refit", "currency", ".1e"): one.refit,
                Column("linear prediction", "currency", ".1e"): one.linear,
                Column("step", "currency", ".1e"): one.step,
                Column("step, worst", "currency", ".1e"): one.worst,
                Column("rounding", "currency", ".0e"): one.rounding,
                Column("out of the model", "%", ".0f"): 100.0 * one.outside,
            }
            for one in found
        ],
    )


def _small(found: Sequence[Remainder]) -> str:
    least = found[-1]
    return (
        "The paper names two mechanisms for a larger RMSE on very small remainders. The first is real: with "
        f"{least.quotes} quotes left the linearization predicts {least.linear:.1e}, the step has {least.step:.1e} "
        f"(worst {least.worst:.1e}), and {least.outside:.0%} of the steps lead out of the model; a refit has "
        f"{least.refit:.1e}. The second is not seen: H' has a condition number of {least.condition:.0e}, and the step "
        "in floating point differs from the same system solved in integers by "
        f"{max(one.rounding for one in found):.0e} in price at most."
    )


def complexity_table(found: Sequence[Growth]) -> Table:
    """Return a row a growth."""
    return tabulated(
        "Fitted exponents with 95 % intervals, and the times at both ends.",
        [
            {
                "what": one.what,
                "against": one.against,
                Column("the proposition", "exponent", "g"): one.expected,
                Column("measured", "exponent", ".2f"): one.slope.value,
                Column("from", "95 %", ".2f"): one.slope.low,
                Column("to", "95 %", ".2f"): one.slope.high,
                Column("smallest size", "count", ",.0f"): float(one.sizes[0]),
                Column("its time", "s"): float(one.seconds[0]),
                Column("largest size", "count", ",.0f"): float(one.sizes[-1]),
                Column("its time, largest", "s"): float(one.seconds[-1]),
            }
            for one in found
        ],
    )


def _every_bound(found: Sequence[Condition]) -> Table:
    return tabulated(
        "Every bound at every number of forgotten quotes.",
        [
            {
                "bound": one.bound,
                "parameters": "scaled" if one.scaled else "plain",
                Column("forgotten", "quotes", "d"): one.forgotten,
                Column("condition holds", "share"): one.holds,
                Column("respected", "share"): one.respected,
                Column("tightness", "ratio"): one.tightness if isfinite(one.tightness) else None,
                Column("largest leverage", "share"): one.leverage,
            }
            for one in found
        ],
        is_shown=False,
    )


def _every_time(found: Sequence[Growth]) -> Table:
    return tabulated(
        "Every time.",
        [
            {
                "what": one.what,
                "against": one.against,
                Column("size", "count", "g"): float(size),
                Column("time", "s"): float(seconds),
            }
            for one in found
            for size, seconds in zip(one.sizes, one.seconds, strict=True)
        ],
        is_shown=False,
    )


def _paragraphs(
    exact: Sequence[Exactness],
    lines: Sequence[Relinearizing],
    held: Sequence[Condition],
    wrong: Sequence[Pull],
    grown: Sequence[Growth],
) -> tuple[str, ...]:
    equal = sum(one.is_equal for one in exact)
    worst = max(one.in_doubles for one in exact)

    def share(bound: str, count: int, *, scaled: bool) -> str:
        one = next(c for c in held if c.bound.startswith(bound) and c.forgotten == count and c.scaled is scaled)
        return f"{one.holds:.0%}"

    plain = float(np.median([one.tightness for one in held if one.bound == "stability" and not one.scaled]))
    tidy = float(np.median([one.tightness for one in held if one.bound == "stability" and one.scaled]))
    by = {(one.what, one.against): one for one in grown}
    linear, again = by["the paper's loop", "quotes"], by["sharded recompute", "quotes of the touched shards"]
    p2, p3 = by["the paper's subtraction", "parameters"], by["the solution", "parameters"]
    nodes, fixed = by["the paper's loop", "nodes"], by["downdate of 27 quotes", "quotes in the book"]
    return (
        f"Exactness holds, in integers to the last bit: state and step are the same in {equal} of {len(exact)} "
        f"strike-outs, however the book is cut. In doubles they differ by up to {worst:.0e} of the step.",
        f"Relinearization is of second order where residuals vanish (exponent {lines[0].slope}), and only there: with "
        f"a noise of {lines[-1].noise:g} the exponent is {lines[-1].slope}. In between the first-order term takes "
        "over as the step shrinks. The paper's condition, residuals no larger than a constant times the step, is one "
        "that noisy quotes do not meet for small steps. All retained quotes were relinearized here; the touched "
        "shards alone are another matter, see where the paper stops.",
        f"The stability bound is always true and rarely useful: in plain parameters the truth is {plain:.1e} of it, "
        f"in scaled ones {tidy:.2f}. Weyl's condition, which the paper calls rarely active until 70 % are removed, is "
        f"met by {share('Weyl', 1, scaled=False)} of single quotes in plain parameters, and in scaled ones by "
        f"{share('Weyl', 27, scaled=True)} at 1 %. H' stays positive definite all the same, because it is a sum of "
        "squares. The leverage spectrum shows how much is really lost.",
        f"Huber's loss does control influence: from an error of a cent on the pull stays at {wrong[-1].huber:.2g} "
        f"standard errors, below the bound of {wrong[-1].bound:.2g}, while under squared loss it grows to "
        f"{wrong[-1].squared:,.0f}. The paper's remark has the condition number where the norm of the inverse belongs.",
        "Proposition 6 promises an error of second order after one relinearization without noise and of first order "
        f"with it. Without noise the error falls with exponent {lines[0].accuracy}, two orders better than promised, "
        "because the second step squares the square that the first one left; at the paper's noise the exponent is "
        f"{lines[1].accuracy}, at {lines[-1].noise:g} it is {lines[-1].accuracy}.",
        f"Part (ii) of Proposition 7: recompute grows with the quotes of the touched shards, exponent {again.slope}. "
        f"Retrain by the paper's loop grows with the quotes, exponent {linear.slope}; the paper's text calls it not "
        f"perfectly linear. In the number of parameters the subtraction has exponent {p2.slope} over "
        f"{p2.sizes[0]:.0f} to {p2.sizes[-1]:.0f} parameters and the solution {p3.slope} over {p3.sizes[0]:.0f} to "
        f"{p3.sizes[-1]:.0f}, where fixed costs are still visible.",
        f"Costs grow as the proposition has it, and linearly in the nodes (exponent {nodes.slope}), not quadratically "
        f"as its text has it. A downdate of 27 quotes does not see the book: exponent {fixed.slope}, "
        f"{time_text(float(fixed.seconds[0]))} at {fixed.sizes[0]:,.0f} quotes and "
        f"{time_text(float(fixed.seconds[-1]))} at {fixed.sizes[-1]:,.0f}; beyond a million quotes finding their "
        "names costs more than taking them away. Exponents below one are a fixed cost that is still visible.",
    )
