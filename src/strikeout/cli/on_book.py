"""Commands that work on files and on books alike, on a book: what ``calibrate``, ``forget`` and ``verify`` do there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import described_change, show_change
from strikeout.models.named import model_named

if TYPE_CHECKING:
    from strikeout.book import Book
    from strikeout.desk.plan import Plan
    from strikeout.store.entry import Reason


def calibrate_book(book: Book, how: dict[str, Any], *, reason: Reason | None, plot: str | None, as_json: bool) -> int:
    """Calibrates the quotes a book holds and keeps the result.

    Raises:
        RefusedError: the book is empty, or its quotes cannot be calibrated.
        UsageError: an option that cannot be.
    """
    asked = how.pop("model", None)
    model = None if asked is None else model_named(asked)
    last = book.status().version
    progress = terminal.ProgressLine(starts=how.get("starts", 4))
    try:
        change = book.calibrate(model, reason=reason, progress=progress, **how)
    finally:
        progress.end()
    if plot is not None:
        from strikeout.cli.plot import hand_out_plot

        hand_out_plot(book, plot)
    if as_json:
        terminal.show_json({**described_change(change), "plot": plot})
    else:
        show_change(change)
        if last is not None and (how or asked):
            _tell_what_is_not_kept(last.asking, change.after.asking, given={*how, "model"})
        known = book.quotes().labels
        several = [name for name in ("date", "source") if name in known and len(set(known[name].tolist())) > 1]
        by = ",".join(several or ["expiry"])
        terminal.hint(f"strikeout influence {book.path} --by {by}", f"strikeout forget {book.path} --where ...")
    return exits.DONE if change.after.converged else exits.REFUSED


def _tell_what_is_not_kept(before: Mapping[str, Any], after: Mapping[str, Any], *, given: set[str]) -> None:
    """Options replace the last way of calibrating as a whole: what went without being asked to is said."""
    aside = {*given, "road"}  # why a road was taken is no option
    if "road" in before and before["road"]["asked"] == "auto":
        aside.add("through")  # it was not asked for then either
    gone = [name for name, value in before.items() if name not in aside and after.get(name) != value]
    if gone:
        now = ", ".join(f"{name} {after.get(name) or 'none'}" for name in sorted(gone))
        terminal.note(f"not as the last time, since options were given: {now}. Give again what you want to keep.")


def forget_from_book(
    book: Book, meant: dict[str, Any], *, tolerance: float | None, yes: bool, reason: Reason | None, as_json: bool
) -> int:
    """Plans a strike-out, and with ``yes`` does it; a plan is kept beside the book until it is applied.

    Raises:
        UnknownIdError: an id that no quote of the book has.
        RefusedError: no quote is meant, or what is left gives no calibration.
    """
    plan = book.forget(**meant, tolerance=tolerance, reason=reason)
    if yes:
        change = book.apply(plan)
        if as_json:
            terminal.show_json(described_change(change))
        else:
            show_change(change)
            terminal.hint(f"strikeout restore {book.path} {change.entry}", f"strikeout verify {book.path}")
        return exits.DONE
    from strikeout.quotes.replacing import replace_file

    path = replace_file(book.plan_path, lambda part: part.write_bytes(plan.to_bytes()))
    path.chmod(0o600)
    if as_json:
        terminal.show_json({**_described(plan), "plan": str(path)})
    else:
        click.echo(plan.summary())
        terminal.note(f"the plan is in {path}; strikeout apply {book.path} does it.")
    return exits.DONE


def verify_book(book: Book, *, head: str | None, as_json: bool) -> int:
    """Checks a whole book; 1 where something does not hold.

    Raises:
        UsageError: the head is none.
    """
    from strikeout.store.ledger import Head

    found = book.verify(head=None if head is None else Head.parse(head))
    if as_json:
        checks = [{"name": check.name, "holds": check.holds, "found": check.found} for check in found.checks]
        terminal.show_json({"holds": found.holds, "reasons": list(found.reasons), "checks": checks})
    else:
        words = {True: "holds", False: "FAILS", None: "-"}
        rows = [(check.name, words[check.holds], check.found) for check in found.checks]
        said = "The book holds." if found.holds else "The book does not hold."
        terminal.show(said, "", terminal.table(("check", "", "found"), rows, whole=(0, 1)))
    return exits.DONE if found.holds else exits.FINDINGS


def _described(plan: Plan) -> dict[str, Any]:
    return {
        "forgotten": list(plan.ids),
        "retained": plan.certificate.counts["retained"],
        "before": plan.before,
        "parameters": plan.after,
        "moved": plan.moved,
        "path": list(plan.path),
        "touched": plan.touched,
        "refit": list(plan.refit),
        "claims": {name: claim["claimed"] for name, claim in plan.certificate.claims.items()},
        "certificate": plan.certificate.digest(),
    }
