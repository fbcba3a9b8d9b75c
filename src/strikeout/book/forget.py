"""Plan a strike-out and apply it. A plan is everything that will be done, as bytes that can be passed on.

A plan and its application each calibrate the retained quotes once, from cold starts: parameters and state are those of
a book that never held the others. The calibration before is not computed again; its results are in the book, and the
ledger commits to them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from numpy.typing import ArrayLike

from strikeout.assurance.canonical import canonical
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.issue import Answer, issue
from strikeout.book import select
from strikeout.book.approvals import require_approval
from strikeout.book.commit import EntryFacts, Result, commit, follow_change, with_imports
from strikeout.book.records import Snapshot, Why, as_reason
from strikeout.book.results import Change, moved
from strikeout.book.select import as_kept, whole_slices
from strikeout.book.step import try_step
from strikeout.book.version import Version, latent_of
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import chosen_panel, counted_groups, latent_moves
from strikeout.calibration.panels import latent_of as latent_parameter
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.evidence import KeptEvidence
from strikeout.forgetting.refusal import determined, refuse_everything
from strikeout.forgetting.request import check_expiries, model_left
from strikeout.forgetting.resolve import resolve
from strikeout.quotes.forwards import Refit, is_derived, refits
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments, moments_of
from strikeout.store.entry import Reason
from strikeout.text import Argument, agreeing, as_lines, many

FORMAT = "strikeout plan 1"
SHOWN = 5  # slices that are refitted, in a summary
# Every field of a plan, as an error names it.
FIELDS = {
    "book": "the book",
    "position": "the number of entries",
    "head": "the last entry",
    "ids": "the quotes to strike out",
    "reason": "the reason",
    "before": "the parameters before",
    "after": "the parameters after",
    "moved": "the moves",
    "path": "the path",
    "touched": "the quotes touched by date and expiry",
    "refit": "the slices refitted",
    "latent": "the latent path",
    "tolerance": "the tolerance",
    "certificate": "the certificate",
    "seal": "the seal on reason and tolerance",
}


@dataclass(frozen=True)
class Plan:
    """Which quotes are struck out, why, what the parameters become, and the book it was made for.

    It names quotes, so it is data to guard; erasing deletes the plan in the file beside the book.

    ``position`` is the number of ledger entries the book had and ``head`` the hash of the last: a book that was changed
    since refuses the plan. ``touched`` counts the quotes by (date, expiry). ``refit`` names the slices whose forwards
    depend on them, with forward and discount before and after. ``seal`` is the book's keyed commitment to all of it:
    what cannot be computed again, such as the reason, cannot be rewritten without the key.
    """

    book: str
    position: int
    head: str
    ids: tuple[str, ...]
    reason: dict[str, str]
    before: dict[str, float]
    after: dict[str, float]
    moved: dict[str, float | None]  # in standard errors of what is retained
    path: tuple[str, ...]
    touched: dict[str, int]
    certificate: Certificate
    refit: tuple[str, ...] = ()
    latent: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)  # of a panel, before and after
    tolerance: float | None = None  # in standard errors, if one step may replace the optimum
    seal: str = ""

    @property
    def count(self) -> int:
        """How many quotes will be struck out."""
        return len(self.ids)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The groups of a panel that will be removed as a whole."""
        return tuple(group for group, (_, after) in self.latent.items() if after is None)

    @property
    def latent_moves(self) -> list[str]:
        """How the latent path of a panel will change, in sentences; empty if there is none."""
        panel = self.certificate.objective.get("panel")
        if panel is None:
            return []
        before, after = ({g: v[at] for g, v in self.latent.items() if v[at] is not None} for at in (0, 1))
        return latent_moves(before, after, name=panel["latent"], label=panel["label"])  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``latent`` and ``dropped`` only for a panel."""
        plain: dict[str, Any] = {
            "forgotten": list(self.ids),
            "retained": self.certificate.counts["retained"],
            "before": self.before,
            "parameters": self.after,
            "moved": self.moved,
            "path": list(self.path),
            "touched": self.touched,
            "refit": list(self.refit),
            "claims": self.certificate.made,
            "certificate": self.certificate.digest(),
        }
        if not self.latent:
            return plain
        before, after = ({group: pair[at] for group, pair in self.latent.items()} for at in (0, 1))
        latent = {"name": self.certificate.objective["panel"]["latent"], "before": before, "after": after}
        return {**plain, "latent": latent, "dropped": list(self.dropped)}

    def digest(self) -> str:
        """Return 64 hexadecimal digits that identify this plan."""
        return sha256(self.to_bytes()).hexdigest()

    def sealed(self, commit: Callable[[bytes], str]) -> Plan:
        """Return this plan with a commitment to everything it shows."""
        return replace(self, seal=commit(canonical(self._content())))

    def differences(self, other: Plan) -> tuple[str, ...]:
        """Return the names of the fields in which another plan differs; empty if none does."""
        mine, theirs = ({**plan._content(), "seal": plan.seal} for plan in (self, other))
        return tuple(name for name in FIELDS if mine.get(name) != theirs.get(name))

    def to_bytes(self) -> bytes:
        """Return JSON with sorted keys; numbers as ``float.hex`` writes them."""
        return canonical({**self._content(), "seal": self.seal})

    def _content(self) -> dict[str, Any]:
        content = {
            "format": FORMAT,
            "book": self.book,
            "position": self.position,
            "head": self.head,
            "ids": list(self.ids),
            "reason": self.reason,
            "before": _hexed(self.before),
            "after": _hexed(self.after),
            "moved": _hexed(self.moved),
            "path": list(self.path),
            "touched": self.touched,
            "certificate": self.certificate.to_bytes().decode("ascii"),
            "refit": list(self.refit),
        }
        content |= {} if self.tolerance is None else {"tolerance": self.tolerance.hex()}
        return {**content, "latent": _paired(self.latent)} if self.latent else content

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """Return the plan of these bytes.

        Raises:
            UsageError: they are not a plan, of another format, or damaged.
        """
        try:
            content = json.loads(data)
            if content.pop("format") != FORMAT:
                raise ValueError(f"the format is not {FORMAT!r}")
            numbers: dict[str, Any] = {name: _numbers(content.pop(name)) for name in ("before", "after", "moved")}
            certificate = Certificate.from_bytes(content.pop("certificate").encode("ascii"))
            tuples: dict[str, Any] = {name: tuple(content.pop(name)) for name in ("ids", "path", "refit")}
            latent = {g: (_read(was), _read(now)) for g, was, now in content.pop("latent", ())}
            asked = content.pop("tolerance", None)
            tolerance = None if asked is None else float.fromhex(asked)
            plan = Plan(certificate=certificate, tolerance=tolerance, latent=latent, **tuples, **numbers, **content)
            plan._check()
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise UsageError(
                f"Plan: the bytes are not a plan that this version can read ({error}). Make it again."
            ) from error
        if plan.to_bytes() != data:
            raise UsageError("Plan: the bytes were changed since they were written. Make it again with forget.")
        return plan

    def _check(self) -> None:
        """Raise ValueError if something in a plan that was read is of another kind than it must be."""
        texts = [self.book, self.head, self.seal, *self.ids, *self.path, *self.refit, *self.latent]
        texts += [*self.reason, *self.reason.values(), *self.touched, *self.before, *self.after]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("expected text, got a number")
        if not all(type(number) is int for number in (self.position, *self.touched.values())):
            raise ValueError("a count is not a whole number")
        if None in (*self.before.values(), *self.after.values()) or set(self.after) != set(self.moved):
            raise ValueError("the parameters before, after and their moves do not match")

    def summary(self) -> str:
        """Return every parameter before and after with its move, and what will be touched, one fact per line."""
        rows = [("parameter", "before", "after", "moved (independent SE)")]
        rows += [
            (name, f"{self.before[name]:.6g}" if name in self.before else "-", f"{value:.6g}", _moved(self.moved[name]))
            for name, value in self.after.items()
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}" for a, b, c, d in rows]
        quotes = many(self.certificate.before, "quote")
        return as_lines(
            [
                *lines,
                "",
                f"strike   {self.count:,} of {quotes}, on {len(self.touched):,} (date, expiry)",
                *(f"latent   {sentence}" for sentence in self.latent_moves),
                f"reason   {self.reason.get('code', '')} {self.reason.get('text', '')}".rstrip(),
                *(f"path     {sentence}" for sentence in self.path),
                *(f"refit    {sentence}" for sentence in self.refit[:SHOWN]),
                *([f"refit    and {many(len(self.refit) - SHOWN, 'slice')} more"] if len(self.refit) > SHOWN else []),
                f"claims   {', '.join(claim.name for claim in self.certificate.claimed()) or 'nothing'}",
                "changed  nothing so far",
            ]
        )

    def __repr__(self) -> str:
        return f"<Plan: {many(self.count, 'quote')} to strike out, {self.certificate.counts['retained']:,} retained>"


def _hexed(numbers: Mapping[str, float | None]) -> list[list[str | None]]:
    """Return pairs, so that the order of the parameters is kept."""
    return [[name, None if value is None else float(value).hex()] for name, value in numbers.items()]


def _numbers(pairs: list[list[str]]) -> dict[str, float | None]:
    return {name: _read(text) for name, text in pairs}


def _paired(latent: Mapping[str, tuple[float | None, float | None]]) -> list[list[str | None]]:
    return [[group, *(None if value is None else value.hex() for value in pair)] for group, pair in latent.items()]


def _read(text: str | None) -> float | None:
    return None if text is None else float.fromhex(text)


def _moved(value: float | None) -> str:
    return "-" if value is None else f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3g}"


def shards_of(quotes: Quotes | Moments) -> dict[str, int]:
    """Return how many quotes are on each (date, expiry)."""
    assert isinstance(quotes, Quotes), "a book forgets quotes it holds"
    dates = quotes.labels["date"].astype(str).tolist() if "date" in quotes.labels else [""] * len(quotes)
    pairs = zip(dates, quotes.contracts.expiry.tolist(), strict=True)
    return dict(sorted(Counter(f"{date} {expiry:.6g}".strip() for date, expiry in pairs).items()))


@dataclass(frozen=True, eq=False)
class StrikeOut:
    """Quotes struck out, the results without them, and the slices whose forwards depended on them."""

    forgotten: Quotes
    result: Result
    refits: tuple[Refit, ...] = ()


def plan_forget(
    seen: Snapshot,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    tolerance: float | None = None,
    reason: Why = None,
) -> Plan:
    """Return what striking these quotes out will do; nothing is changed."""
    done = strike_out(seen, ids=ids, where=where, tolerance=tolerance)
    return _plan(seen, done, tolerance=tolerance, reason=as_reason(reason) or Reason("other"))


def forget(
    seen: Snapshot,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    tolerance: float | None = None,
    reason: Why = None,
) -> Change:
    """Strike these quotes out; the same entry, certificate and results as a plan and its application."""
    done = strike_out(seen, ids=ids, where=where, tolerance=tolerance)
    require_approval(seen, "forget", done.forgotten.ids.tolist())
    return _commit(seen, done, as_reason(reason) or Reason("other"))


def apply(seen: Snapshot, plan: Plan) -> Change:
    """Do what a plan shows, if all of it is found again."""
    if plan.book != seen.name:
        raise RefusedError("The plan is of another book. Make one for this book with forget.")
    if (plan.position, plan.head) != (seen.position.number, seen.position.head):
        raise RefusedError(
            f"The plan was made when the book had {many(plan.position, 'entry', 'entries')}; it has "
            f"{seen.position.number:,} now. Make a new one with forget.",
            planned=plan.position,
            found=seen.position.number,
        )
    require_approval(seen, "forget", plan.ids)
    done = strike_out(seen, ids=list(plan.ids), tolerance=plan.tolerance)
    reason = Reason.from_plain(plan.reason)
    differ = _plan(seen, done, tolerance=plan.tolerance, reason=reason).differences(plan)
    if differ:
        raise RefusedError(
            f"The plan shows something else than is found here: {', '.join(FIELDS[name] for name in differ)} "
            f"{agreeing(len(differ), 'differs', 'differ')}. It was changed since forget made it, or another build "
            "made it. Make a new one with forget.",
            differ=list(differ),
            planned=plan.certificate.digest(),
            found=None if done.result.certificate is None else done.result.certificate.digest(),
        )
    return _commit(seen, done, reason)


def strike_out(
    seen: Snapshot, *, ids: ArrayLike | None = None, where: str | None = None, tolerance: float | None = None
) -> StrikeOut:
    """Return the parameters without these quotes: by one step if the tolerance allows it, else by a calibration."""
    if tolerance is not None:
        check_given_tolerance(tolerance)
    seen.check_current()
    gone = select.held(seen, ids=as_kept(seen.store, ids, seen.commit), where=where, verb="forget")
    select.refuse_nothing(len(gone), verb="forget")
    if tolerance is None:
        return recalibrate(seen, gone)
    found = try_step(seen, gone, tolerance)
    if isinstance(found, Result):
        return StrikeOut(gone, found)
    return recalibrate(seen, gone, path=(f"downdate passed over: {found.clause}",))


def check_given_tolerance(tolerance: float) -> None:
    """Raise UsageError if a tolerance is not a number of standard errors above zero."""
    if not tolerance > 0.0:
        raise UsageError(
            Argument("tolerance", tolerance), ": give a number of standard errors above zero, such as 0.05."
        )


def recalibrate(seen: Snapshot, gone: Quotes, *, path: tuple[str, ...] = ()) -> StrikeOut:
    """Return the calibration of the quotes that stay; from moments only those to be removed are read."""
    spec, version = seen.spec, seen.check_current()
    refitted: tuple[Refit, ...] = ()
    retained: Quotes | None = None  # from moments they are not read
    if seen.moments is not None:
        if len(gone) >= len(seen.moments):
            refuse_everything(len(seen.moments))
        gone = whole_slices(seen.quotes, gone) if is_derived(gone).any() else gone
        subtracted = moments_of(gone, weights=spec.settings.weights, basis=seen.moments.basis)
        after: Calibration = resolve(seen.moments - subtracted, spec.model, settings=spec.settings)
        path, operator = (*path, "resolve: the moments of the retained quotes, from cold starts"), "resolve"
        size = len(seen.moments)
    else:
        held = seen.quotes
        if len(gone) == len(held):
            refuse_everything(len(held))
        retained = held.without(gone.ids)
        gone = held.only(gone.ids)
        refitted = refits(held, retained) if "forward_from" in held.labels else ()
        after, path = _calibrated(seen, retained, path if not refitted else (*path, _refit(refitted)))
        operator = "recalibrate"
        size = version.count if spec.settings.select == "all" else len(held)
    certificate = certify(spec.settings, after, size=size, struck=len(gone), operator=operator)
    certificate = with_imports(seen, certificate, retained=retained)
    return StrikeOut(gone, Result(None, after, before=version, certificate=certificate, path=path), refitted)


def certify(settings: Settings, after: Calibration, *, size: int, struck: int, operator: str) -> Certificate:
    """Return the certificate of a cold calibration of what is left of ``size`` quotes."""
    before = KeptEvidence(after.model, settings, size, after.panel, after.latent_name)
    return issue(before, Answer(after.parameters, operator, after.latent, struck=struck), after=after)


def _calibrated(seen: Snapshot, retained: Quotes, path: tuple[str, ...]) -> tuple[Calibration, tuple[str, ...]]:
    """Return the calibration of the retained quotes, which decide again whether they form a panel, and the path."""
    spec, was = seen.spec, seen.check_current().panel
    check_expiries(model_left(spec.model, retained, spec.settings), spec.settings)
    now = chosen_panel(retained, spec.model, spec.settings)
    try:
        after = determined(spec.calibrate(retained))
    except RefusedError as error:
        if was is None or was == now:
            raise
        # Perhaps only because the parameters are others now.
        raise error.extended(" With ", Argument("panel", was), " the book stays a panel.") from error
    if was != now:
        each = "one value" if now is None else f"one for each of {counted_groups(len(latent_of(after)), now)}"
        path = (*path, f"{latent_parameter(spec.model)}: {each} from here on")
    return after, (*path, "recalibrate: the retained quotes, from cold starts")


def _refit(refitted: tuple[Refit, ...]) -> str:
    return f"forwards refit: {many(len(refitted), 'slice')}"


def _plan(seen: Snapshot, done: StrikeOut, *, tolerance: float | None, reason: Reason) -> Plan:
    """Return the plan of a strike-out, sealed with the key of the book."""
    before, result = seen.check_current(), done.result
    found = result.version or result.calibration
    assert found is not None, "a strike-out ends with a calibration or one step"
    assert result.certificate is not None, "a strike-out has a certificate"
    latent = found.latent if isinstance(found, Version) else latent_of(found)
    plan = Plan(
        book=seen.name,
        position=seen.position.number,
        head=seen.position.head,
        ids=tuple(done.forgotten.ids.tolist()),
        reason=reason.to_plain(),
        before=dict(before.parameters),
        after=dict(found.parameters),
        moved=moved(before.parameters, found.parameters, found.standard_errors),
        path=result.path,
        touched=shards_of(done.forgotten),
        certificate=result.certificate,
        refit=tuple(map(str, done.refits)),
        tolerance=tolerance,
        latent=_paths(before.latent, latent),
    )
    return plan.sealed(lambda shown: seen.commit("plan", shown))


def _paths(before: Any, after: Any) -> dict[str, tuple[float | None, float | None]]:
    """Return the latent parameter of every group before and after, None for none; empty unless both are panels."""
    if not before or not after:
        return {}
    return {group: (value, after[group][0] if group in after else None) for group, (value, _) in before.items()}


def _commit(seen: Snapshot, done: StrikeOut, reason: Reason) -> Change:
    names, result = done.forgotten.ids.tolist(), done.result
    if result.calibration is not None:
        result = replace(result, follow=follow_change(seen, result.calibration, removed=done.forgotten))
    with seen.session.writing(seen.position) as book:
        book.store.strike(names, entry=book.number)
        return commit(book, seen, EntryFacts("forget", reason, names, {"forgotten": len(names)}), result)
