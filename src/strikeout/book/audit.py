"""Check a whole book: bytes, ledger, counts, states and parameters computed again, and that nothing erased is back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from strikeout.assurance.build import build_of, difference
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.state_codec import ShardRows
from strikeout.assurance.verify import NEEDS_COMPILED, Check, verify_claims
from strikeout.book.approvals import approvals_of
from strikeout.book.erasure import removed_versions
from strikeout.book.import_quotes import PER_QUOTE, returned
from strikeout.book.linearization import BookLinearization
from strikeout.book.records import Snapshot, page_of, unrecorded
from strikeout.book.results import Audit
from strikeout.book.spec import CalibrationSpec
from strikeout.book.state_store import MissingFootprints, in_objective, stored_rows, stored_state
from strikeout.book.step import errors_of_step, evidence_of
from strikeout.book.version import Version, errors_of, latent_of, state_of
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.settings import chosen
from strikeout.errors import RefusedError, StrikeoutError
from strikeout.forgetting.evidence import free_parameters
from strikeout.kernels.arrays import Integers, Rows
from strikeout.kernels.compiled import native
from strikeout.quotes.forwards import is_derived
from strikeout.statistics.system import FootprintBlocks, Group, System
from strikeout.store.keyring import Keyring
from strikeout.store.ledger import Head, check_bytes
from strikeout.store.signing import misplaced
from strikeout.store.store import SHARD_DATA
from strikeout.text import agreeing, many

Found = tuple[bool | None, str]
RECOMPUTED = ("STATES", "PARAMETERS", "CERTIFICATES")
# Relative to the largest number: sums in floating point depend on the order in which quotes were added and removed.
SECOND_ORDER = 1e-6
NAMED = 5  # shards in a sentence


def audit(records: Snapshot, *, head: Head | None = None) -> Audit:
    """Check everything about a book that can be checked, computed again from what it retains.

    Args:
        head: of the ledger, kept elsewhere since: finds a ledger that was cut short or rewritten.
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
    """Check what can be checked of a copy of a book without its key file.

    What needs the key file is reported as not checked.

    Args:
        records: without keys.
        keys: public keys, one of which must have signed the last entry.
        head: as for ``audit``.
    """
    checks: dict[str, Callable[[], Found]] = {
        "STORE": lambda: _store(records),
        "LEDGER": lambda: _ledger_of_copy(records, keys, head),
        "CONTENTS": lambda: _needs_key("whether quotes, labels and pages are those the last entry commits to"),
        "COUNTS": lambda: _counts(records),
        "VERSIONS": lambda: _needs_key("whether every calibration is the one its entry commits to"),
        "STATES": lambda: check_states(records),
        "PARAMETERS": lambda: _parameters(records),
        "CERTIFICATES": lambda: _certificates(records, None),
        "APPROVALS": lambda: _approvals(records),
        "ERASED": lambda: _needs_key("whether a quote in the book is one that was erased"),
    }
    return Audit(tuple(_judged(records, name, check) for name, check in checks.items()), has_key=False)


def _needs_key(what: str) -> Found:
    return None, f"Not checked: only the book's key file can show {what}."


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


# --- bytes and ledger ------------------------------------------------------------------------------------------------


def _store(records: Snapshot) -> Found:
    faults = records.session.store.faults()
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
    """Check the ledger by public keys: one of them must have signed the last entry, to which the others are chained."""
    rows = records.store.entries()
    faults = check_bytes(rows, head=head) if rows else ["The ledger is empty, and a book is made with its first entry."]
    if faults:
        return False, " ".join(faults)
    ledger = records.ledger
    last = ledger.entries[-1]
    if last.public not in keys:
        given = " or ".join(f"{one[:16]}..." for one in keys)
        return False, f"The last entry, {last.number}, is signed with the key {last.public[:16]}..., not with {given}"
    signed = f"{many(len(rows), 'entry', 'entries')}, numbered, chained and signed with the key {last.public[:16]}...;"
    return True, f"{signed} the root is {ledger.root()}."


def _contents(records: Snapshot) -> Found:
    """Check that the sums of what is stored are those the last entry commits to; STORE checks the sums themselves."""
    ledger = records.ledger
    last = ledger.entries[-1]
    if records.is_as_entered(last):
        return True, f"Quotes, marks, footprints, states and pages are those that entry {last.number} commits to."
    then = next((entry.number for entry in reversed(ledger.entries) if records.is_as_entered(entry)), None)
    was = f"They are those of entry {then}." if then is not None else "No entry commits to them."
    return (
        False,
        f"Quotes, marks, footprints, states and pages are not those that entry {last.number} commits to. {was}",
    )


def _counts(records: Snapshot) -> Found:
    ledger, counts = records.ledger, records.store.counts()
    recorded = ledger.entries[-1].counts.get("retained")
    if recorded != counts.retained:
        return False, f"The last entry records {recorded} retained quotes; the book holds {counts.retained:,}."
    forgot = {entry.number for entry in ledger if entry.what in ("forget", "roll")}
    odd = sorted(set(records.struck.values()) - forgot)
    if odd:
        return False, f"Quotes are set aside by entry {odd[0]}, which forgot none."
    erased = sum(entry.counts.get("erased", 0) for entry in ledger)
    kept = len(records.erased)
    if kept > PER_QUOTE * erased or (erased and not kept):
        return False, f"The ledger records {erased:,} erased quotes; the book has {kept:,} commitments to them."
    return True, f"{many(counts.retained, 'quote')} retained, {counts.struck:,} set aside, {erased:,} erased."


def _versions(records: Snapshot) -> Found:
    ledger, versions = records.ledger, records.versions
    if not versions and not any("results" in entry.digests for entry in ledger):
        return None, "The book was never calibrated."
    for version in versions:
        for name in unrecorded(version, ledger, records.keyring):
            return False, f"The {name} of the calibration of entry {version.entry} is not what the ledger commits to."
    moments, current = records.moments, records.version if records.is_current else None
    if current is not None and (current.options["through"] == "moments") != (moments is not None):
        return False, "The state of the book is missing, or is not of the kind its calibration was made through."
    if current is not None and moments is not None and moments.digest() != current.state:
        return False, "The moments the book keeps are not those its calibration was made from."
    kept, gone = {version.entry for version in versions}, removed_versions(ledger)
    made = [entry.number for entry in ledger if "results" in entry.digests]
    erased = {number for number in made if any(number in span for span in gone)}
    missing = [number for number in made if number not in kept | erased]
    if missing:
        return False, f"The calibration of entry {missing[0]} is missing."
    if erased & kept:
        return False, f"The calibration of entry {min(erased & kept)} is there, and an erasure removed it."
    gone_too = f"; {len(erased):,} removed by erasures" if erased else ""
    return True, f"{_each(len(versions), 'calibration')} the one its entry commits to{gone_too}."


# --- states ----------------------------------------------------------------------------------------------------------


def check_states(records: Snapshot) -> Found:
    """Check that the footprints and state of every shard, and their sum, are those of the retained quotes.

    Perturbed footprints are only compared with their sum: noise cannot be distinguished from a change.
    """
    store, linearization = records.store, records.linearization
    if linearization is None:
        kept = [what for what in SHARD_DATA if store.shards_with(what)]
        if kept:
            return False, f"Shards have {' and '.join(kept)}, and the book has no reference for them."
        missing = records.no_footprints or MissingFootprints.LOST
        return None, f"The book keeps no footprints: {missing.clause}."
    held = records.quotes
    is_current = records.is_current
    if not is_current and is_derived(held).any():
        return (
            None,
            "Quotes were added since the states were computed, and forwards may depend on them: calibrate again.",
        )
    used = chosen(held, records.settings.select)
    if not is_current:  # later quotes have no states yet, and the model may not price them
        known = {name for shard in store.shards_with("states") for name in store.members(shard)}
        used = used[np.array([name in known for name in used.ids.tolist()], bool)]
    taken = linearization.footprints(used, records.settings)
    footprints = _Rows.of(taken, linearization)
    odd, whole, last = [], linearization.zero, -1
    for shard, is_sound, state in _shards(records, linearization, footprints, is_current=is_current):
        odd += [] if is_sound else [shard]
        whole, last = whole if state is None else whole + state, shard
    if odd:
        named = ", ".join(map(str, odd[:NAMED])) + (", ..." if len(odd) > NAMED else "")
        return False, f"Shards whose footprints or state are not those of their quotes: {named} ({len(odd):,})."
    if whole != replace(linearization.system, held=frozenset()):
        return False, "The state of the book is not the sum of the states of its shards."
    if linearization.clusters != linearization.clusters_of(used, records.settings, taken):
        return False, "The states of the clusters are not those of their quotes."
    if last < 0:
        return False, "The book has a state of all its quotes, but no shard has one."
    return _whole(records, linearization, footprints, is_current=is_current)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Footprints of quotes one below the other, the group of each, and its place by id."""

    rows: Integers
    groups: list[Group]
    places: dict[str, int]

    @staticmethod
    def of(footprints: FootprintBlocks, linearization: BookLinearization) -> _Rows:
        blocks = footprints.blocks
        names = [name for block in blocks.values() for name in block.ids.tolist()]
        rows = np.concatenate([np.empty((0, linearization.columns), np.int64), *(b.rows for b in blocks.values())])
        groups = [group for group, block in blocks.items() for _ in range(len(block))]
        return _Rows(rows, groups, {name: place for place, name in enumerate(names)})


def check_members(records: Snapshot) -> str | None:
    """Return why a footprint may be of a quote the book does not hold; None if each belongs to one that it holds."""
    linearization, counts = records.linearization, records.store.shards()
    if linearization is None:
        return None
    for shard in records.store.shards_with("footprints"):
        rows = stored_rows(records.store, linearization, shard)
        if rows is None or len(rows.has) != counts.get(shard):
            return f"Shard {shard} has footprints of other quotes than it holds."
    return None


def _shards(
    records: Snapshot, linearization: BookLinearization, footprints: _Rows, *, is_current: bool
) -> Iterator[tuple[int, bool, System | None]]:
    """Yield every shard that has data or should have: its number, whether the data are right, and its state."""
    store = records.store
    for shard in store.shards():
        state, rows = stored_state(store, linearization, shard), stored_rows(store, linearization, shard)
        members = store.members(shard)
        here = np.array([footprints.places.get(name, -1) for name in members], np.int64)
        if state is None and (rows is not None or (is_current and (here >= 0).any())):
            yield shard, False, None
        if state is None:
            continue
        if rows is not None and len(rows.has) != len(members):
            yield shard, False, state
            continue
        live = here[here >= 0]
        groups = [footprints.groups[place] for place in live.tolist()]
        if linearization.noise:
            kept = rows is not None and bool(rows.has[here >= 0].all())
            values = None if rows is None or not kept else rows.at(np.flatnonzero(here >= 0))
            yield shard, values is not None and linearization.total(values, groups) == state, state
            continue
        sound = linearization.total(footprints.rows[live], groups) == state
        if rows is not None:
            both = (here >= 0) & rows.has
            sound &= np.array_equal(rows.at(np.flatnonzero(both)), footprints.rows[here[both]])
            sound &= _is_set_aside(records, linearization, members, rows, np.flatnonzero(rows.has & (here < 0)))
        yield shard, bool(sound), state


def _is_set_aside(
    records: Snapshot,
    linearization: BookLinearization,
    members: tuple[str, ...],
    rows: ShardRows,
    places: Rows,
) -> bool:
    """Return whether rows of a shard that belong to no retained quote belong to quotes set aside.

    Not every quote set aside has a row: the model may no longer include its expiry.
    """
    if not len(places):
        return True
    store, settings = records.store, records.settings
    names, struck = [members[place] for place in places.tolist()], store.struck()
    aside = in_objective(store.named([name for name in names if name in struck]), settings)
    if len(aside) < len(names) or is_derived(aside).any():
        return False
    found = _Rows.of(linearization.footprints(aside, settings), linearization)
    return np.array_equal(found.rows[[found.places[name] for name in names]], rows.at(places))


def _whole(records: Snapshot, linearization: BookLinearization, footprints: _Rows, *, is_current: bool) -> Found:
    version, settings = records.version, records.settings
    if is_current and version is not None:
        digest = None if linearization.start is None else linearization.start.digest()
        if digest != version.state:
            return False, "The state at the first start is not that of the calibration."
        used = chosen(records.quotes, settings.select)
        if linearization.start is not None and linearization.start != linearization.state_at_start(used, settings):
            return False, "The state at the first start is not that of the quotes."
        for group, again in linearization.second_order_of(used, settings).items():
            kept = linearization.second_order[group]
            for mine, other in ((kept.residual, again.residual), (kept.sensitivity, again.sensitivity)):
                if not np.abs(mine - other).max() <= SECOND_ORDER * max(np.abs(other).max(), 1e-300):
                    return False, "The second-order terms are not those of the quotes."
    shards = len(records.store.shards_with("states"))
    noise = f", with noise of {linearization.noise:g} on them" if linearization.noise else ""
    what = f"{many(len(footprints.rows), 'footprint')} in {many(shards, 'shard')}{noise}"
    return True, f"{what}, their states and the whole are those of the retained quotes, bit for bit."


# --- results ---------------------------------------------------------------------------------------------------------


def _parameters(records: Snapshot) -> Found:
    version = records.version
    if version is None:
        return None, "The book was never calibrated."
    if not records.is_current:
        return None, "Quotes were added or removed since the last calibration: there is nothing to compare it with."
    found = CalibrationSpec.from_plain(version.options).calibrate(records.quotes)
    if version.step is not None and version.agrees(found):
        return _step(records, version, found)
    if version.agrees(found):
        return True, "Calibrated again, the retained quotes give this state and these parameters, bit for bit."
    builds = difference(version.build, build_of(version.model))
    builds = f" {builds}" if builds else ""
    if version.state != state_of(found):
        return False, f"The state of the retained quotes is not the stored one.{builds}"
    apart = [name for name, value in version.parameters.items() if found.parameters[name] != value]
    apart = apart or ["latent path"]
    return False, f"Calibrated again, the retained quotes give another {', '.join(apart)}.{builds}"


def _step(records: Snapshot, version: Version, found: Calibration) -> Found:
    """Check that the parameters are one step from the stored state, and as close to the optimum as was certified."""
    linearization, tolerance = records.linearization, version.tolerance or 0.0
    if linearization is not None:  # an erasure removes the states of a step and keeps its result
        system = linearization.system
        step = system.step(free=free_parameters(evidence_of(linearization, records.settings, system.count)))
        path = {group: value for group, (value, _) in version.latent.items()}
        if step.parameters != dict(version.parameters) or step.latent != path:
            return False, "The parameters are not one step from the stored state."
        if errors_of(errors_of_step(linearization, step, version.standard_errors)) != version.errors:
            return False, "The standard errors are not those of one step from the stored states."
    errors, latents = found.standard_errors, latent_of(found)
    moves = [abs(x - version.parameters[n]) / errors[n] for n, x in found.parameters.items() if errors[n] > 0.0]
    path = {group: value for group, (value, _) in version.latent.items() if group in latents}
    moves += [abs(x - latents[g][0]) / latents[g][1] for g, x in path.items() if latents[g][1] > 0.0]
    apart = max(moves, default=0.0)
    return apart <= tolerance, (
        f"One step, {apart:.2g} standard errors of independent quotes from the optimum of the retained ones; "
        f"{tolerance:g} was certified."
    )


def _certificates(records: Snapshot, keyring: Keyring | None) -> Found:
    pages, ledger = records.store.pages("certificate"), records.ledger
    if not pages:
        return None, "The book has no certificate."
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
    checked = verify_claims(certificate, records.quotes)
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
            f"Removals without the approval that the book required: entries {', '.join(map(str, lacking))}.",
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
        return (
            False,
            f"An erasure should have removed the file {min(there)}, but it still exists: it could not be deleted.",
        )
    if not erased:
        return None, "No quote was ever erased."
    back = int(returned(records.store.quotes(struck=None), erased, records.commit).sum())
    if back:
        return False, f"{many(back, 'quote')} that {agreeing(back, 'was erased is', 'were erased are')} in the book."
    return True, "No quote in the book is one that was erased, and no footprint is of a quote it does not hold."


def _each(count: int, one: str) -> str:
    return f"{many(count, one)}, {agreeing(count, 'and it is', 'each')}"
