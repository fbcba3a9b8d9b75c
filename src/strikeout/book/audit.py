"""A whole book checked: bytes, record, counts, states and parameters found anew, nothing erased come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from strikeout.assurance.build import build_of, difference
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.verification import Check
from strikeout.assurance.verify import NEEDS_COMPILED, verify_claims
from strikeout.book.approvals import approvals_of
from strikeout.book.records import Snapshot, page_of, unrecorded
from strikeout.book.reimport_guard import PER_QUOTE, returning
from strikeout.book.results import Audit
from strikeout.book.spans import removed
from strikeout.book.spec import Asking
from strikeout.book.state_check import check_members, check_states
from strikeout.book.step import free_numbers
from strikeout.book.version import Version, state_of
from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError, StrikeoutError
from strikeout.kernels.compiled import native
from strikeout.statistics.system import OneStep
from strikeout.store.keyring import Keyring
from strikeout.store.ledger import Head, check_bytes
from strikeout.store.signing import misplaced
from strikeout.wording import agreeing, many

Found = tuple[bool | None, str]


def audit(records: Snapshot, *, head: Head | None = None) -> Audit:
    """Everything about a book that can be checked, computed again from what it retains.

    Args:
        head: of the ledger, kept elsewhere since: finds a ledger that was cut short or written anew.

    Raises:
        Nothing for what the book holds: what cannot be checked does not hold, with the reason.
    """
    checks: dict[str, Callable[[], Found]] = {
        "STORE": lambda: _store(records),
        "LEDGER": lambda: _ledger(records, head),
        "CONTENTS": lambda: _contents(records),
        "COUNTS": lambda: _counts(records),
        "VERSIONS": lambda: _versions(records),
        "STATES": lambda: check_states(records),
        "PARAMETERS": lambda: _parameters(records),
        "CERTIFICATES": lambda: _certificates(records, records.keyring),
        "APPROVALS": lambda: _approvals(records),
        "ERASED": lambda: _erased(records),
    }
    return Audit(tuple(_judged(records, name, check) for name, check in checks.items()))


def audit_copy(records: Snapshot, *, keys: Sequence[str], head: Head | None = None) -> Audit:
    """What can be checked of a copy of a book by somebody who does not have its key file.

    What only the key file can tell is neither held nor failed, and says so.

    Args:
        records: without keys.
        keys: public keys, one of which must have signed the last entry.
        head: as for ``audit``.

    Raises:
        Nothing for what the book holds: what cannot be checked does not hold, with the reason.
    """
    checks: dict[str, Callable[[], Found]] = {
        "STORE": lambda: _store(records),
        "LEDGER": lambda: _ledger_of_copy(records, keys, head),
        "CONTENTS": lambda: _only_with_key("whether quotes, labels and pages are those the last entry commits to"),
        "COUNTS": lambda: _counts(records),
        "VERSIONS": lambda: _only_with_key("whether every calibration is the one its entry commits to"),
        "STATES": lambda: check_states(records),
        "PARAMETERS": lambda: _parameters(records),
        "CERTIFICATES": lambda: _certificates(records, None),
        "APPROVALS": lambda: _approvals(records),
        "ERASED": lambda: _only_with_key("whether a quote in the book is one that was erased"),
    }
    return Audit(tuple(_judged(records, name, check) for name, check in checks.items()), has_key=False)


def _only_with_key(what: str) -> Found:
    return None, f"Not checked: only the book's key file can tell {what}."


RECOMPUTED = ("STATES", "PARAMETERS", "CERTIFICATES")


def _is_out_of_reach(records: Snapshot) -> bool:
    """Return whether the book was calibrated with the compiled kernel, which is not installed here."""
    try:
        version = records.version
    except StrikeoutError:
        return False
    return native() is None and version is not None and "/native-" in version.model


def _judged(records: Snapshot, name: str, check: Callable[[], Found]) -> Check:
    try:
        if name in RECOMPUTED and _is_out_of_reach(records):
            return Check(name, None, NEEDS_COMPILED, is_unchecked=True)
        return Check(name, *check())
    except StrikeoutError as error:
        return Check(name, False, f"It cannot be checked: {error.sentence}")
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        return Check(name, False, f"It cannot be checked: {type(error).__name__}: {error}")


def _store(records: Snapshot) -> Found:
    faults = records.store.faults()
    return not faults, " ".join(faults) or "Every byte is as it was written."


def _ledger(records: Snapshot, head: Head | None) -> Found:
    rows, keyring = records.store.entries(), records.keyring
    if not rows:
        return False, "The ledger is empty, and a book is made with its first entry."
    with suppress(RefusedError):  # an entry that cannot be read is one of the faults
        keyring = records.session.signing(records.ledger)
    faults = check_bytes(rows, keyring=keyring, head=head)
    if faults:
        return False, " ".join(faults)
    return (
        True,
        f"{many(len(rows), 'entry', 'entries')}, numbered, chained and signed; the root is {records.ledger.root()}.",
    )


def _ledger_of_copy(records: Snapshot, keys: Sequence[str], head: Head | None) -> Found:
    """As ``_ledger``, by public keys: one of them must have signed the last entry, which the others lead up to."""
    rows = records.store.entries()
    faults = check_bytes(rows, head=head) if rows else ["The ledger is empty, and a book is made with its first entry."]
    if faults:
        return False, " ".join(faults)
    ledger = records.ledger
    last = ledger.entries[-1]
    if last.public not in keys:
        given = " or ".join(f"{one[:16]}..." for one in keys)
        return False, f"The last entry, {last.number}, is signed with the key {last.public[:16]}..., not with {given}"
    said = f"{many(len(rows), 'entry', 'entries')}, numbered, chained and signed with the key {last.public[:16]}...;"
    return True, f"{said} the root is {ledger.root()}."


def _contents(records: Snapshot) -> Found:
    """Whether all that is kept is what the last entry commits to; that it adds up to its sums is for STORE to say."""
    ledger = records.ledger
    last = ledger.entries[-1]
    if records.is_as_entered(last):
        return True, f"Quotes, marks, footprints, states and pages are those that entry {last.number} commits to."
    then = next((entry.number for entry in reversed(ledger.entries) if records.is_as_entered(entry)), None)
    was = f"They are those of entry {then}." if then is not None else "They are those of no entry."
    return (
        False,
        f"Quotes, marks, footprints, states and pages are not those that entry {last.number} commits to. {was}",
    )


def _counts(records: Snapshot) -> Found:
    ledger, counts = records.ledger, records.store.counts()
    said = ledger.entries[-1].counts.get("retained")
    if said != counts.retained:
        return False, f"The last entry says {said} quotes are retained; the book holds {counts.retained:,}."
    forgot = {entry.number for entry in ledger if entry.what in ("forget", "roll")}
    odd = sorted(set(records.struck.values()) - forgot)
    if odd:
        return False, f"Quotes are set aside by entry {odd[0]}, which forgot none."
    erased = sum(entry.counts.get("erased", 0) for entry in ledger)
    kept = len(records.erased)
    if kept > PER_QUOTE * erased or (erased and not kept):
        return False, f"The ledger tells of {erased:,} erased quotes; {kept:,} commitments to them are kept."
    return True, f"{many(counts.retained, 'quote')} retained, {counts.struck:,} set aside, {erased:,} erased."


def _versions(records: Snapshot) -> Found:
    ledger, versions = records.ledger, records.versions
    if not versions and not any("results" in entry.digests for entry in ledger):
        return None, "The book was never calibrated."
    for version in versions:
        for name in unrecorded(version, ledger, records.keyring):
            return False, f"The {name} of the calibration of entry {version.entry} is not what the ledger commits to."
    moments, current = records.moments, records.version if records.is_current else None
    if current is not None and (current.asking["through"] == "moments") != (moments is not None):
        return False, "The state of the book is missing, or is not of the kind its calibration was made through."
    if current is not None and moments is not None and moments.digest() != current.state:
        return False, "The moments the book keeps are not those its calibration was made from."
    kept, gone = {version.entry for version in versions}, removed(ledger)
    made = [entry.number for entry in ledger if "results" in entry.digests]
    erased = {number for number in made if any(number in span for span in gone)}
    missing = [number for number in made if number not in kept | erased]
    if missing:
        return False, f"The calibration of entry {missing[0]} is gone."
    if erased & kept:
        return False, f"The calibration of entry {min(erased & kept)} is there, and an erasure removed it."
    said = f"; {len(erased):,} went with erasures" if erased else ""
    return True, f"{_each(len(versions), 'calibration')} the one its entry commits to{said}."


def _parameters(records: Snapshot) -> Found:
    version = records.version
    if version is None:
        return None, "The book was never calibrated."
    if not records.is_current:
        return None, "Quotes came or went since the last calibration: there is nothing to compare it with."
    found = Asking.from_plain(version.asking).calibrate(records.store.quotes())
    if version.step is not None and version.agrees(found):
        return _step(records, version, found)
    if version.agrees(found):
        return True, "Calibrated anew, the retained quotes give this state and these parameters, bit for bit."
    builds = difference(version.build, build_of(version.model))
    builds = f" {builds}" if builds else ""
    if version.state != state_of(found):
        return False, f"The state of the retained quotes is not the one that is kept.{builds}"
    apart = [name for name, value in version.parameters.items() if found.parameters[name] != value]
    apart = apart or ["latent path"]
    return False, f"Calibrated anew, the retained quotes give another {', '.join(apart)}.{builds}"


def _step(records: Snapshot, version: Version, found: Calibration) -> Found:
    """Whether the parameters are one step from the state that is kept, and as near the optimum as was certified."""
    standing, tolerance = records.linearization, version.tolerance or 0.0
    if standing is not None:  # an erasure takes the states away that a step was taken from; the result stays
        step = OneStep(standing.equations, None, free_numbers(standing.model, records.settings))
        if step.parameters != dict(version.parameters):
            return False, "The parameters are not one step from the state that is kept."
    errors = found.standard_errors
    moves = {n: abs(x - version.parameters[n]) / errors[n] for n, x in found.parameters.items() if errors[n] > 0.0}
    apart = max(moves.values(), default=0.0)
    said = (
        f"One step, {apart:.2g} standard errors from the optimum of the retained quotes; {tolerance:g} was certified."
    )
    return apart <= tolerance, said


def _certificates(records: Snapshot, keyring: Keyring | None) -> Found:
    pages, ledger = records.store.pages("certificate"), records.ledger
    if not pages:
        return None, "The book keeps no certificate."
    for page in pages:
        certificate = Certificate.from_bytes(records.store.page("certificate", page) or b"")
        odd = misplaced(certificate, ledger, int(page), keyring)
        if odd is not None:
            return False, f"The certificate of entry {int(page)} {odd}."
    version = records.version
    if version is None or page_of(version.entry) != pages[-1] or not records.is_current:
        return (
            True,
            f"{_each(len(pages), 'certificate')} the one its entry names; none is of the calibration held now.",
        )
    checked = verify_claims(certificate, records.store.quotes())
    return checked.holds, " ".join(checked.reasons) or (
        f"{_each(len(pages), 'certificate')} the one its entry names; the last holds of the retained quotes."
    )


def _approvals(records: Snapshot) -> Found:
    """Return whether every removal that needed a second person's approval had one."""
    found = approvals_of(records.ledger.entries)
    lacking = [number for number, approval in found.items() if approval is None]
    if lacking:
        return (
            False,
            f"Removals without the approval that the book needed: entries {', '.join(map(str, lacking))}.",
        )
    if not found:
        return None, "No removal needed a second person's approval."
    return True, f"{many(len(found), 'removal')} needed a second person's approval and had it."


def _erased(records: Snapshot) -> Found:
    erased = records.erased
    odd = None if _is_out_of_reach(records) else check_members(records)
    if odd is not None:
        return False, odd
    there = records.file_digest.are_there(records.files.condemned)
    if there:
        return False, f"An erasure was to remove the file {min(there)}, and it is there: it could not be deleted."
    if not erased:
        return None, "Nothing was ever erased."
    back = int(returning(records.store.quotes(struck=None), erased, records.commit).sum())
    if back:
        return False, f"{many(back, 'quote')} that {agreeing(back, 'was erased is', 'were erased are')} in the book."
    return True, "No quote in the book is one that was erased, and no footprint is of a quote it does not hold."


def _each(count: int, one: str) -> str:
    return f"{many(count, one)}, {agreeing(count, 'and it is', 'each')}"
