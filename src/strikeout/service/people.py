"""Who sends a request and what their role permits; people of a file of hashed tokens, or one person on loopback."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from strikeout.errors import RoleError, UsageError
from strikeout.text import printable

HASH = "sha256:"  # a token has 256 random bits, so a slow hash would add nothing
TOKEN = "so_"  # the beginning of every token, so that a scanner for secrets finds one in a repository
LONGEST_NAME = 80


class Role(StrEnum):
    """What a person is here for. No role defeats four eyes: a request is decided by another person than its author."""

    READER = "reader"
    OPERATOR = "operator"
    APPROVER = "approver"
    AUDITOR = "auditor"
    ADMIN = "admin"


class Action(StrEnum):
    """What a route does, for permissions."""

    READ = "read"  # books, quotes, influence, plans, rehearsals: nothing is changed
    VERIFY = "verify"  # certificates, evidence and the check of a whole book
    CHANGE = "change"  # import, calibrate, forget, restore, and requests for a removal
    ERASE = "erase"
    DECIDE = "decide"  # approve and reject
    OPERATE = "operate"  # metrics


PERMITTED: Mapping[Role, frozenset[Action]] = {
    Role.READER: frozenset({Action.READ}),
    Role.OPERATOR: frozenset({Action.READ, Action.VERIFY, Action.CHANGE, Action.ERASE}),
    Role.APPROVER: frozenset({Action.READ, Action.VERIFY, Action.DECIDE}),
    Role.AUDITOR: frozenset({Action.READ, Action.VERIFY, Action.OPERATE}),
    Role.ADMIN: frozenset(Action),
}


@dataclass(frozen=True)
class Person:
    """Who sends a request: the name for the ledger, and a role."""

    name: str
    role: Role

    def may(self, action: Action) -> bool:
        """Return whether the role permits an action."""
        return action in PERMITTED[self.role]

    def check(self, action: Action) -> None:
        """Raise RoleError unless the role permits an action."""
        if not self.may(action):
            fitting = [role.value for role, actions in PERMITTED.items() if action in actions]
            raise RoleError(
                f"The role {self.role.value} does not permit this; it needs one of {', '.join(fitting)}.",
                role=self.role.value,
                action=action.value,
                roles=fitting,
            )


class Authentication(Protocol):
    """How people prove who they are."""

    def of_token(self, token: str) -> Person | None:
        """Return the person with this token; None if there is none."""
        ...

    @property
    def anonymous(self) -> Person | None:
        """The person of a request without a token; None if a token is needed."""
        ...

    def of_proof(self, proof: str) -> Person | None:
        """Return the person whose token has this proof (``proof_of``); None if there is none any more."""
        ...


@dataclass(frozen=True)
class OnePerson:
    """No authentication: every request is from the person who started the server. For loopback addresses only."""

    anonymous: Person

    def of_token(self, token: str) -> Person | None:  # noqa: ARG002
        """Return None: there are no tokens."""
        return None

    def of_proof(self, proof: str) -> Person | None:  # noqa: ARG002
        """Return the one person: a session only protects forms here."""
        return self.anonymous


class Tokens:
    """The people of a tokens file, one per line: name, role, hash. A changed file is read again at the next request."""

    anonymous: Person | None = None

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            UsageError: it cannot be read, others may write it, or a line is not a name, a role and a hash.
        """
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._people: dict[str, Person] = {}
        self._read()

    def of_token(self, token: str) -> Person | None:
        """Return the person with this token; None if there is none.

        Raises:
            UsageError: the file was changed and cannot be read any more.
        """
        return self.of_proof(proof_of(token))

    def of_proof(self, proof: str) -> Person | None:
        """Return the person whose token has this proof; None if there is none any more.

        Raises:
            UsageError: the file was changed and cannot be read any more.
        """
        self._read()
        found = None
        for known, person in self._people.items():  # all of them, so that the time does not depend on the token
            if hmac.compare_digest(hash_of(known), proof):
                found = person
        return found

    def _read(self) -> None:
        try:
            at = self._path.stat()
            seen = (at.st_mtime_ns, at.st_size, at.st_ino)
            if seen == self._seen:
                return
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise UsageError(f"{self._path}: the tokens file cannot be read ({why}).") from error
        if at.st_mode & 0o022:
            raise UsageError(f"{self._path}: others may write the tokens file. Run: chmod go-w {self._path}")
        self._people = parse_tokens(text, self._path.name)
        self._seen = seen


def parse_tokens(text: str, name: str) -> dict[str, Person]:
    """Return the people of a tokens file, by hash.

    Raises:
        UsageError: a line is not a name, a role and a hash, or a name or hash is there twice.
    """
    people: dict[str, Person] = {}
    names: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3 or words[1] not in set(Role) or not _is_hash(words[2]):
            raise UsageError(
                f"{name}, line {number}: expected a name, a role ({', '.join(Role)}) and a hash that begins with "
                f"{HASH}. Make the line with: strikeout token NAME --role ROLE",
                line=number,
            )
        person = Person(_checked_name(words[0]), Role(words[1]))
        if person.name.casefold() in names or words[2] in people:
            raise UsageError(f"{name}, line {number}: {person.name} or its hash is there twice.", line=number)
        names.add(person.name.casefold())
        people[words[2]] = person
    if not people:
        raise UsageError(f"{name}: the tokens file names no person. Add a line: strikeout token NAME --role ROLE")
    return people


def new_token(name: str, role: Role) -> tuple[str, str]:
    """Return a new secret token and the line for the tokens file, which does not contain it.

    Raises:
        UsageError: the name is empty, too long, has white space, or does not print.
    """
    token = TOKEN + secrets.token_urlsafe(32)
    return token, f"{_checked_name(name)} {role.value} {hash_of(token)}"


def hash_of(token: str) -> str:
    """Return the hash of a token, as it is in the tokens file."""
    return HASH + sha256(token.encode("utf-8", "replace")).hexdigest()


def proof_of(token: str) -> str:
    """Return what a session keeps of a token: a hash of its hash, with which nothing can be signed in."""
    return hash_of(hash_of(token))


def _is_hash(word: str) -> bool:
    digits = word.removeprefix(HASH)
    return word != digits and len(digits) == 64 and set(digits) <= set("0123456789abcdef")


def _checked_name(name: str) -> str:
    is_plain = name.split() == [name] and printable(name) == name and not name.startswith("#")
    if not is_plain or len(name) > LONGEST_NAME:
        raise UsageError(
            f"The name {printable(name)!r}: use up to {LONGEST_NAME} characters that print, without white space.",
            name=name,
        )
    return name
