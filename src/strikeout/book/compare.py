"""Compare two books."""

from __future__ import annotations

from strikeout.book.records import Snapshot
from strikeout.book.results import Comparison, moved
from strikeout.errors import RefusedError

Named = tuple[str, Snapshot]


def compare(first: Named, second: Named) -> Comparison:
    """Compare the latest calibrations of two books, each given with its name.

    Raises:
        RefusedError: one of them is not calibrated, or not with the same parameters.
    """
    one, other = first[1], second[1]
    mine, theirs = one.version, other.version
    if mine is None or theirs is None:
        bare = [name for name, seen in (first, second) if seen.version is None]
        said = f"{bare[0]} is not" if len(bare) == 1 else "Neither book is"
        raise RefusedError(f"{said} calibrated yet. Calibrate first, then compare.", books=bare)
    if mine.parameters.keys() != theirs.parameters.keys():
        kinds = f"{first[0]} with {mine.asked_in_words}, {second[0]} with {theirs.asked_in_words}"
        raise RefusedError(f"The books are not calibrated alike ({kinds}): their parameters cannot be compared.")
    return Comparison(
        is_same_state=mine.state is not None and mine.state == theirs.state,
        is_same_parameters=dict(mine.parameters) == dict(theirs.parameters)
        and mine.plain_latent() == theirs.plain_latent(),
        is_current=(one.is_current, other.is_current),
        counts=(mine.count, theirs.count),
        held=(one.store.counts().retained, other.store.counts().retained),
        parameters={name: (value, theirs.parameters[name]) for name, value in mine.parameters.items()},
        apart=moved(mine.parameters, theirs.parameters, theirs.standard_errors),
    )
