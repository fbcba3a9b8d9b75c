"""``strikeout scale``: states and calibrations of a lake of files, in processes or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes
from strikeout.cli.calibrate import parameter_table
from strikeout.cli.fit_options import model_option
from strikeout.cli.options import Group, check_option, constant_option, output_options, profile_option, with_options
from strikeout.cli.terminal import ComparingLine
from strikeout.errors import UsageError
from strikeout.models.named import model_named
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.terminal import Output
    from strikeout.quotes.quotes import Quotes
    from strikeout.scale.gather import Gathered
    from strikeout.scale.lake import Lake

lake_argument = click.argument("lake", type=click.Path(path_type=str))
lake_options = with_options(
    click.option(
        "--each",
        default="underlying,date",
        show_default=True,
        metavar="LABELS",
        help="The labels of one book; its quotes lie in one file.",
    ),
    click.option(
        "--engine",
        default="processes",
        show_default=True,
        metavar="NAME",
        help="Where to compute: processes, a number of processes, here, or dask, ray, spark, with or without :ADDRESS.",
    ),
    profile_option,
    constant_option,
    check_option,
)
gather_options = with_options(
    click.option("--tags", default="", metavar="LABELS", help="Labels to keep apart, such as licence,source."),
    click.option(
        "--weights",
        type=click.Choice(["given", "none", "relative", "vega", "spread"]),
        default="given",
        show_default=True,
        help="The weight of each quote.",
    ),
    click.option("--cache", type=click.Path(path_type=str), help="A folder that keeps states of unchanged files."),
    lake_options,
)


class TagValue(click.ParamType[tuple[str, str]]):
    """LABEL=VALUE."""

    name = "label=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return the label and the value."""
        if isinstance(value, tuple):
            return value
        name, sign, what = value.partition("=")
        if not name or not sign or not what:
            self.fail(f"{value!r} is not LABEL=VALUE, such as licence=L3.", param, ctx)
        return name, what


only_tags_option = click.option(
    "--only", multiple=True, type=TagValue(), help="Keep the quotes with this tag value; repeat it for several."
)


@click.group("scale", cls=Group)
def scale() -> None:
    """Compute on a lake: quotes in many files of a folder, a pattern or an object store.

    What quotes contribute is an exact state that adds up over files, so the engine, the number of workers and the order
    change no bit of a result.
    """


@scale.command("gather")
@lake_argument
@gather_options
@output_options
def gather(lake: str, output: Output, **options: Any) -> int:
    """Compute the states of LAKE and count its quotes by tag. With --cache, later commands read no unchanged file."""
    gathered = _gathered(lake, **options)
    return output.result(gathered.to_dict(), gathered.to_table(), "", gathered.summary())


@scale.command("calibrate")
@lake_argument
@model_option
@only_tags_option
@gather_options
@output_options
def calibrate(lake: str, model: str, only: Any, output: Output, **options: Any) -> int:
    """Calibrate one model to the quotes of LAKE, through their states."""
    gathered = _chosen(_gathered(lake, **options), only)
    found = _calibrated(gathered, model)
    facts, code = {**found.to_dict(), **gathered.to_dict()}, _code(found.converged)
    return output.result(facts, parameter_table(found), "", gathered.summary(), code=code)


@scale.command("forget")
@lake_argument
@click.option("--tag", "gone", multiple=True, type=TagValue(), help="Quotes to strike out, such as licence=L3.")
@click.option("--where", metavar="CONDITION", help="Or: strike matching quotes out of every book of a fleet.")
@click.option(
    "--certificates", type=click.Path(path_type=str), help="With --where: a folder for one certificate per book."
)
@model_option
@only_tags_option
@gather_options
@output_options
def forget(lake: str, model: str, only: Any, output: Output, **options: Any) -> int:
    """Calibrate LAKE without the quotes of a tag, or of a condition in every book. No file of LAKE is changed.

    With --tag one model is calibrated to all quotes through their states. No file is read for it, except those in which
    forwards of other quotes depend on the removed ones. With --where each book is calibrated apart, as by scale fleet,
    and the quotes are struck out of it. Ends with 3 if a book has no result.
    """
    gone, where, certificates = (options.pop(name) for name in ("gone", "where", "certificates"))
    if bool(gone) == (where is not None):
        raise UsageError("Give either --tag or --where.")
    if where is not None:
        return _forget_in_fleet(lake, model, where, certificates, output, options)
    if certificates is not None:
        raise UsageError("--certificates goes with --where. States alone have no certificate per book.")
    named = [name for name, _ in gone if name != "partition"]
    options["tags"] = ",".join(dict.fromkeys([*_words(options["tags"]), *named]))
    before = _chosen(_gathered(lake, **options), only)
    after = before.without(**_by_name(gone))
    first, second = _calibrated(before, model), _calibrated(after, model)
    facts = {"removed": before.count - after.count, "before": first.to_dict(), "after": second.to_dict()}
    facts["digest"] = after.total().digest()
    words = f"{many(before.count - after.count, 'quote')} struck out of {before.count:,}."
    return output.result(facts, _changes(first, second), "", words, code=_code(second.converged))


def _forget_in_fleet(
    lake: str, model: str, where: str, certificates: str | None, output: Output, options: dict[str, Any]
) -> int:
    from strikeout.scale.strike_out import forget_many

    engine = options.pop("engine")
    made = _lake(lake, **{name: given for name, given in options.items() if name not in ("tags", "weights", "cache")})
    with ComparingLine(what="partitions") as line:
        found = forget_many(
            made, model_named(model), where=where, certificates=certificates, engine=_engine(engine), progress=line
        )
    return output.result(found.to_dict(), found.to_table(), "", found.summary(), code=_code(found.is_done))


@scale.command("fleet")
@lake_argument
@model_option
@click.option("--out", type=click.Path(path_type=str), help="A Parquet file for the table; a later run continues it.")
@lake_options
@output_options
def fleet(lake: str, model: str, out: str | None, output: Output, **options: Any) -> int:
    """Calibrate every book of LAKE apart: one row per underlying and day, or other labels of --each.

    Ends with 3 if a search did not converge or a file could not be read; these are rows too.
    """
    from strikeout.scale.fleet import calibrate_many

    engine, made = options.pop("engine"), _lake(lake, **options)
    with ComparingLine(what="partitions") as line:
        found = calibrate_many(made, model_named(model), out=out, engine=_engine(engine), progress=line)
    done = sum(fit.converged for fit in found.fits)
    facts = {**found.to_dict(), "reused": found.reused, "out": out, "digest": found.digest()}
    words = f"{done:,} of {many(len(found.fits), 'calibration')} converged; {found.reused:,} from an earlier run."
    return output.result(facts, found.to_table(), "", words, code=_code(found.converged))


@scale.command("verify")
@lake_argument
@click.option("--share", type=float, default=0.05, show_default=True, help="The share of files to compute again.")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses them.")
@gather_options
@output_options
def verify(lake: str, share: float, seed: int, output: Output, **options: Any) -> int:
    """Compute a random share of the files of LAKE again and compare every bit with the states of --cache.

    Ends with 1 if a state differs.
    """
    if options["cache"] is None:
        raise UsageError("There is nothing to verify without --cache. Name the folder of scale gather.")
    gathered = _gathered(lake, **options)
    found = gathered.verify(share, seed=seed)
    wrong = ", ".join(found.wrong[:3]) + (", ..." if len(found.wrong) > 3 else "")
    words = "every state is equal, bit for bit." if found.is_equal else f"{len(found.wrong):,} differ ({wrong})."
    return output.lines(
        {"checked": found.checked, "wrong": list(found.wrong), "equal": found.is_equal},
        f"{many(found.checked, 'file')} computed again: {words}",
        code=exit_codes.DONE if found.is_equal else exit_codes.FINDINGS,
    )


@scale.command("status")
@lake_argument
@gather_options
@output_options
def status(lake: str, output: Output, **options: Any) -> int:
    """Show which files of LAKE have their states in --cache, and which are new or changed."""
    from strikeout.scale.partition import Plan, kept_states

    if options["cache"] is None:
        raise UsageError("There are no states without --cache. Name the folder of scale gather.")
    made = _lake(lake, **{name: options[name] for name in ("each", "profile", "constants", "checks")})
    plan = Plan(made, tuple(_words(options["tags"])), options["weights"], folder=options["cache"])
    found = {partition: kept_states(plan, partition) for partition in made.partitions}
    kept = sum(receipt is not None for receipt in found.values())
    rows = [{"file": name, "kept": has is not None, "quotes": has and has.count} for name, has in found.items()]
    cells = [
        (name, "kept" if has else "new or changed", number(has.count if has else None, ",d"))
        for name, has in found.items()
    ]
    table = Table(("file", "states", "quotes"), cells, numbers=(2,), whole=(0,))
    words = f"States of {kept:,} of {many(len(found), 'file')} are in the cache."
    return output.result({"files": len(found), "kept": kept, "partitions": rows}, table, "", words)


@scale.command("residue")
@lake_argument
@click.option(
    "--erased", required=True, type=click.Path(path_type=str), help="A file with the quotes that should be gone."
)
@click.option("--cache", type=click.Path(path_type=str), help="A folder of scale gather, searched too.")
@click.option("--each", default="underlying,date", show_default=True, metavar="LABELS", help="The labels of one book.")
@profile_option
@constant_option
@check_option
@output_options
def residue(lake: str, erased: str, cache: str | None, output: Output, **options: Any) -> int:
    """Search the folder LAKE, logs and old versions included, for quotes that should be gone.

    Ends with 1 if one is still readable, with the place and the remedy.
    """
    from strikeout.scale.residue import search_lake

    made = _lake(lake, **options)
    with ComparingLine(what="files") as line:
        found = search_lake(made, _erased_quotes(made, erased), cache=cache, progress=line)
    code = exit_codes.DONE if found.is_clean else exit_codes.FINDINGS
    table = () if found.is_clean else (found.to_table(),)
    if output.form == "table":
        return output.result(found.to_dict(), *table, found.summary(), code=code)
    return output.result(found.to_dict(), *table, notes=[found.summary()], code=code)


@scale.command("erase")
@lake_argument
@click.option(
    "--erased", required=True, type=click.Path(path_type=str), help="A file with the quotes that should be gone."
)
@click.option("--cache", type=click.Path(path_type=str), help="A folder of states of scale gather.")
@click.option("--fits", type=click.Path(path_type=str), help="A table of scale fleet.")
@click.option("--certificates", type=click.Path(path_type=str), help="A folder of certificates of scale forget.")
@click.option("--each", default="underlying,date", show_default=True, metavar="LABELS", help="The labels of one book.")
@profile_option
@constant_option
@check_option
@output_options
def erase(lake: str, erased: str, output: Output, **options: Any) -> int:
    """Remove kept states, fits and certificates that may contain erased quotes. No file of LAKE is changed.

    Delete the quotes from the files first; scale residue lists the files in which they are still readable.
    """
    from strikeout.scale.residue import erase_kept

    kept = {name: options.pop(name) for name in ("cache", "fits", "certificates")}
    made = _lake(lake, **options)
    found = erase_kept(made, _erased_quotes(made, erased), **kept)
    return output.lines(found.to_dict(), found.summary())


def _erased_quotes(lake: Lake, file: str) -> Quotes:
    from strikeout.quotes.reading import inspect_quotes

    how: Any = {"profile": lake.profile, "constants": lake.constants, "checks": lake.checks, "exercise": lake.exercise}
    return inspect_quotes(file, **how).quotes


def _code(is_done: bool) -> int:
    return exit_codes.DONE if is_done else exit_codes.REFUSED


def _lake(path: str, *, each: str, **reading: Any) -> Lake:
    from strikeout.scale.lake import Lake

    return Lake(path, each=tuple(_words(each)), **reading)


def _gathered(lake: str, *, tags: str, weights: str, cache: str | None, engine: str, **options: Any) -> Gathered:
    from strikeout.scale.gather import gather as gather_states

    with ComparingLine(what="partitions") as line:
        return gather_states(
            _lake(lake, **options),
            tags=_words(tags),
            weights=weights,
            cache=cache,
            engine=_engine(engine),
            progress=line,
        )


def _engine(name: str) -> str | int:
    return int(name) if name.isdecimal() else name


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _by_name(pairs: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _chosen(gathered: Gathered, only: Any) -> Gathered:
    return gathered.only(**_by_name(only)) if only else gathered


def _calibrated(gathered: Gathered, model: str) -> Calibration:
    from strikeout.calibration.calibrate import calibrate as calibrate_states

    return calibrate_states(gathered, model_named(model))


def _changes(before: Calibration, after: Calibration) -> Table:
    rows = []
    for name, value in after.parameters.items():
        error = after.standard_errors[name]
        moved = (value - before.parameters[name]) / error if error > 0.0 else None
        rows.append((name, number(before.parameters[name]), number(value), number(error, ".2g"), number(moved, "+.3g")))
    headings = ("parameter", "before", "after", "standard error", "moved (SE after)")
    return Table(headings, rows, numbers=(1, 2, 3, 4), whole=(0,))
