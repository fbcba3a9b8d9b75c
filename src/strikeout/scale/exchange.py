"""States of quotes that may not leave their owner: signed files that others add up, and from which an owner withdraws.

A file is one line of canonical JSON (format, owner, public key, count, digest), the moments, and the signature of all
before as 128 hexadecimal digits.

A signature shows who wrote a file, not that it is the latest one: an older file of the same owner, from before quotes
were withdrawn, is signed as well. Get the digest of the latest state
from the owner in another way, and give it to ``read_states``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from strikeout.assurance.canonical import canonical, parse
from strikeout.assurance.state_codec import decode_moments, encode_moments
from strikeout.errors import RefusedError, UsageError
from strikeout.quotes.writing import replace_file
from strikeout.statistics.moments import Moments
from strikeout.store.keyring import Keyring, is_signature

FORMAT = "strikeout owner states 1"
LARGEST = 1 << 30  # bytes of a file; a state of 250 expiries has about a million
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


def read_states(path: str | PathLike[str], *, key: str | Mapping[str, str], digest: str | None = None) -> OwnerState:
    """Return what ``write_states`` wrote, if the owner it names signed it.

    Args:
        key: the public key of the owner, or the public keys of several owners by name. An owner cannot sign in the
            name of another.
        digest: of the owner's latest state, if you have it: then an older file is refused.

    Raises:
        RefusedError: it is not such a file, was changed, was signed with another key, or has another digest.
        UsageError: it cannot be read.
    """
    try:
        size = Path(path).stat().st_size
        if size > LARGEST:
            raise RefusedError(f"{path}: {size:,} bytes; at most {LARGEST:,} are read.", path=str(path))
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}).", path=str(path)) from error
    body, signature = data[:-_SIGNATURE], data[-_SIGNATURE:].decode("ascii", "replace")
    line, _, rest = body.partition(b"\n")
    try:
        head = parse(line)
        named, owner = head["public"], head["owner"]
        is_ours = head["format"] == FORMAT and isinstance(named, str) and isinstance(owner, str)
    except (ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise RefusedError(f"{path}: is not a file of an owner's states.", path=str(path))
    trusted = key if isinstance(key, str) else key.get(owner)
    if named != trusted:
        raise RefusedError(
            f"{path}: is signed with the key {named[:16]}..., which is not the trusted one of {owner}. Ask {owner} for "
            "the public key.",
            public=named,
            owner=owner,
        )
    if not is_signature(named, body, signature=signature):
        raise RefusedError(f"{path}: was changed after it was signed. Ask {owner} for it again.", path=str(path))
    state = decode_moments(rest)
    if (state.digest(), state.count) != (head.get("digest"), head.get("count")):
        raise RefusedError(f"{path}: its state is not the one its head names.", path=str(path))
    if digest is not None and digest != state.digest():
        raise RefusedError(
            f"{path}: is another state of {owner} than the one with the digest {digest[:16]}..., perhaps an older one. "
            f"Ask {owner} for the latest.",
            digest=state.digest(),
        )
    return OwnerState(owner, named, state)


def joint_state(states: Iterable[OwnerState], *, without: Sequence[str] = ()) -> Moments:
    """Return the sum of the states of all owners but those named, as if these had never taken part.

    Raises:
        UsageError: an owner is there twice or unknown, or the same key signed for two owners; none is left, or the
            states differ in basis or weighting.
    """
    found: dict[str, Moments] = {}
    signed: dict[str, str] = {}
    for one in states:
        if one.owner in found:
            raise UsageError(f"The states of {one.owner} are given twice, and would count twice.", owner=one.owner)
        if one.public in signed:
            raise UsageError(
                f"{signed[one.public]} and {one.owner} signed with the same key: one owner would count twice, and stay "
                "after a withdrawal. Ask them which of the two is right.",
                owner=one.owner,
            )
        found[one.owner], signed[one.public] = one.state, one.owner
    unknown = sorted(set(without) - set(found))
    if unknown:
        raise UsageError(f"{unknown[0]} is not among the owners {', '.join(sorted(found))}.", owner=unknown[0])
    return Moments.total([state for owner, state in found.items() if owner not in without])
