"""Commands that work on files and on books alike, on a book: what ``calibrate``, ``forget`` and ``verify`` do there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from strikeout.cli import exits, terminal
from strikeout.cli.books import NOTHING_MEANT, described_change, opened, show_change
from strikeout.errors import NothingMeantError, RefusedError, StrikeoutError, UnidentifiedError, UsageError
from strikeout.models.named import model_named

if TYPE_CHECKING:
    from strikeout.book import Book
    from strikeout.book.plan import Plan
    from strikeout.store.entry import Reason

OPTIONS = {"bounds": "--bound", "fixed": "--fix", "starts": "--starts"}  # that may name parameters
COUNTING = {"model", "panel", "select", "weights"}  # settings that decide how many quotes and parameters there are


def calibrate_book(
    book: Book, how: dict[str, Any], *, fresh: bool, reason: Reason | None, plot: str | None, as_json: bool
) -> int:
    """Calibrates the quotes a book holds and keeps the result.

    Args:
        how: the options given. Others are as the last time, or with ``fresh`` at their defaults.

    Raises:
        RefusedError: the book is empty, or its quotes cannot be calibrated.
        UsageError: an option that cannot be.
    """
    from strikeout.book.spec import as_the_last_time

    asked = how.pop("model", None)
    model, kept, left = None if asked is None else model_named(asked), {}, {}
    last = book.asking()
    if fresh:
        how = {"fresh": True, **how}
    elif last is not None:
        kept = as_the_last_time(last, given=how, model=model)
        if model is not None:  # another has other parameters
            all_of_it = as_the_last_time(last, given=how, model=None)
            left = {name: value for name, value in all_of_it.items() if name in OPTIONS and name not in kept}
        if how or asked:  # where nothing is said, the book repeats the last time by itself, to the bit
            model, how = kept.get("model", model), {**{name: kept[name] for name in kept if name != "model"}, **how}
    starts = how.get("starts", 4)
    progress = terminal.ProgressLine(starts=starts if isinstance(starts, int) else len(starts))
    kept_words = {name: _worded(value) for name, value in sorted(kept.items())}
    try:
        change = book.calibrate(model, reason=reason, progress=progress, **how)
    except (UsageError, RefusedError) as error:
        if not any(_is_part(name, error) for name in kept):
            raise
        raise error.extended(f" As the last time: {_settings(kept_words)}") from error
    finally:
        progress.end()
    if left:
        words = ", ".join(f"{OPTIONS[name]} ({_worded(value)})" for name, value in sorted(left.items()))
        terminal.note(f"not as the last time, for the model is another: {words}.")
    if plot is not None:
        from strikeout.cli.plot import hand_out_plot

        hand_out_plot(book, plot)
    if as_json:
        terminal.show_json({**described_change(change), "plot": plot, "as_last_time": kept_words})
    else:
        show_change(change)
        if kept:
            terminal.note(f"as the last time: {_settings(kept_words)}")
        known = book.quotes().labels
        several = [name for name in ("date", "source") if name in known and len(set(known[name].tolist())) > 1]
        by = ",".join(several or ["expiry"])
        terminal.hint(f"strikeout influence {book.path} --by {by}", f"strikeout forget {book.path} --where ...")
    return exits.DONE if change.after.converged else exits.REFUSED


def _settings(kept: Mapping[str, str]) -> str:
    words = ", ".join(f"{name} {value}" for name, value in kept.items())
    return f"{words}. With --fresh, what is not given is at its default."


def _is_part(setting: str, error: StrikeoutError) -> bool:
    """Return whether a setting of the last time may have caused an error: the error mentions it, or there are too few
    quotes for the parameters and the setting decides how many there are of either.
    """
    return setting in error.arguments or (isinstance(error, UnidentifiedError) and setting in COUNTING)


def _worded(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(value)
    if isinstance(value, tuple):
        return f"{len(value)} given"
    return "none" if value is None else str(getattr(value, "name", value)).partition("/")[0]


def forget_from_book(
    book: Book, meant: dict[str, Any], *, tolerance: float | None, yes: bool, reason: Reason | None, as_json: bool
) -> int:
    """Plans a strike-out, and with ``yes`` does it; a plan is kept beside the book until it is applied.

    Where no quote is meant nothing is changed, and that is said: so it is with a file, and a script that strikes out
    what it finds may find nothing.

    Raises:
        UnknownIdError: an id that no quote of the book has.
        RefusedError: what is left gives no calibration.
    """
    try:
        plan = book.forget(**meant, tolerance=tolerance, reason=reason)
    except NothingMeantError:
        return _tell_nothing_struck_out(book, as_json=as_json)
    if yes:
        change = book.apply(plan)
        if as_json:
            terminal.show_json(described_change(change))
        else:
            show_change(change)
            terminal.hint(f"strikeout restore {book.path} {change.entry}", f"strikeout verify {book.path}")
        return exits.DONE
    from strikeout.quotes.atomic_write import replace_file

    path = replace_file(book.plan_path, lambda part: part.write_bytes(plan.to_bytes()))
    path.chmod(0o600)
    if as_json:
        terminal.show_json({**_described(plan), "plan": str(path)})
    else:
        terminal.show_lines(plan.summary())
        terminal.note(f"the plan is in {path}; strikeout apply {book.path} does it.")
    return exits.DONE


def _tell_nothing_struck_out(book: Book, *, as_json: bool) -> int:
    if as_json:
        none = {"entry": None, "what": "forget", "touched": 0, "plan": None}
        terminal.show_json({**none, "forgotten": [], "retained": book.status().held})
    else:
        waits = f" The plan in {book.plan_path} is an earlier one." if book.plan_path.exists() else ""
        terminal.note(f"{NOTHING_MEANT}, so nothing was struck out.{waits}")
    return exits.DONE


def verify_book(path: str, *, head: str | None, keys: Sequence[str], as_json: bool) -> int:
    """Checks a whole book, or by public keys a copy without its key file; 1 where something does not hold.

    Raises:
        UsageError: the head is none.
    """
    from strikeout.book import Book
    from strikeout.store.ledger import Head

    kept = None if head is None else Head.parse(head)
    if keys:
        found = Book.verify_copy(path, key=keys, head=kept)
    else:
        with opened(path) as book:
            found = book.verify(head=kept)
    if as_json:
        checks = [{"name": check.name, "holds": check.holds, "found": check.found} for check in found.checks]
        verdict = {"holds": found.holds, "has_key": found.has_key, "reasons": list(found.reasons)}
        terminal.show_json({**verdict, "checks": checks})
    else:
        words = {True: "holds", False: "FAILS", None: "-"}
        rows = [(check.name, words[check.holds], check.found) for check in found.checks]
        terminal.show(found.headline, "", terminal.table(("check", "", "found"), rows, whole=(0, 1)))
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
        **_latent_of(plan),
        "claims": plan.certificate.made,
        "certificate": plan.certificate.digest(),
    }


def _latent_of(plan: Plan) -> dict[str, Any]:
    """What a panel has besides: its latent path before and after, and the groups that will go as a whole."""
    if not plan.latent:
        return {}
    before, after = ({group: pair[at] for group, pair in plan.latent.items()} for at in (0, 1))
    name = plan.certificate.objective["panel"]["latent"]
    return {"latent": {"name": name, "before": before, "after": after}, "dropped": list(plan.dropped)}
