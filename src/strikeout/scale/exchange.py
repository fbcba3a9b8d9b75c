"""States of quotes that may not leave their owner: signed files that others add up, and from which an owner withdraws.

A file is one line of canonical JSON (format, owner, public key, count, digest), the moments, and the signature of all
before as 128 hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from strikeout.assurance.canonical import canonical, parse
from strikeout.assurance.state_codec import decode_moments, encode_moments
from strikeout.errors import RefusedError, UsageError
from strikeout.quotes.atomic_write import replace_file
from strikeout.statistics.moments import Moments
from strikeout.store.keyring import Keyring
from strikeout.store.keys import verify

FORMAT = "strikeout owner states 1"
_SIGNATURE = 128


@dataclass(frozen=True)
class OwnerState:
    """The state of one owner's quotes, and the key it is signed with."""

    owner: str
    public: str
    state: Moments


def write_states(state: Moments, path: str | PathLike[str], *, owner: str, key: str | PathLike[str]) -> OwnerState:
    """Write the state of an owner's quotes, signed, for others to add to theirs.

    Args:
        state: such as ``gather(lake).total()`` or ``moments_of(quotes)``.
        owner: the name of the owner.
        key: the owner's key file; made if it does not exist.

    Raises:
        UsageError: no name is given, or the file cannot be written.
        RefusedError: the key file is damaged, or others can read it.
    """
    if not owner.strip():
        raise UsageError("owner: give the name of the owner of the quotes.")
    file = Path(key)
    if not file.exists():
        Keyring.generate().create(file)
    signer = Keyring.read(file).signer()
    head = {
        "format": FORMAT, "owner": owner, "public": signer.public, "count": state.count, "digest": state.digest(),
    }  # fmt: skip
    body = canonical(head) + b"\n" + encode_moments(state)
    replace_file(path, lambda part: part.write_bytes(body + signer.sign(body).encode()))
    return OwnerState(owner, signer.public, state)


def read_states(path: str | PathLike[str], *, key: str | Sequence[str]) -> OwnerState:
    """Return what ``write_states`` wrote, if one of these public keys signed it.

    Raises:
        RefusedError: it is not such a file, was changed, or was signed with another key.
        UsageError: it cannot be read.
    """
    trusted = (key,) if isinstance(key, str) else tuple(key)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}).", path=str(path)) from error
    body, signature = data[:-_SIGNATURE], data[-_SIGNATURE:].decode("ascii", "replace")
    line, _, rest = body.partition(b"\n")
    try:
        head = parse(line)
        named, owner = head["public"], head["owner"]
        is_ours = head["format"] == FORMAT
    except (ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise RefusedError(f"{path}: is not a file of an owner's states.", path=str(path))
    if named not in trusted:
        raise RefusedError(
            f"{path}: is signed with the key {named[:16]}..., which is not among the trusted ones. Ask {owner} for the "
            "public key.",
            public=named,
        )
    if not verify(named, body, signature=signature):
        raise RefusedError(f"{path}: was changed after it was signed. Ask {owner} for it again.", path=str(path))
    state = decode_moments(rest)
    if (state.digest(), state.count) != (head["digest"], head["count"]):
        raise RefusedError(f"{path}: its state is not the one its head names.", path=str(path))
    return OwnerState(owner, named, state)


def joint_state(states: Iterable[OwnerState], *, without: Sequence[str] = ()) -> Moments:
    """Return the sum of the states of all owners but those named, as if these had never taken part.

    Raises:
        UsageError: an owner is there twice or unknown, none is left, or the states differ in basis or weighting.
    """
    found: dict[str, Moments] = {}
    for one in states:
        if one.owner in found:
            raise UsageError(f"The states of {one.owner} are given twice, and would count twice.", owner=one.owner)
        found[one.owner] = one.state
    unknown = sorted(set(without) - set(found))
    if unknown:
        raise UsageError(f"{unknown[0]} is not among the owners {', '.join(sorted(found))}.", owner=unknown[0])
    return Moments.total([state for owner, state in found.items() if owner not in without])
