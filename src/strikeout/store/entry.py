"""Signed entries of the ledger: who did what to the book, when and why. They reveal no quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from math import ceil
from typing import Any

from strikeout.assurance.canonical import canonical, from_canonical
from strikeout.errors import RefusedError, UsageError
from strikeout.store.keyring import Signer, is_hex, is_signature
from strikeout.store.merkle import leaf_hash

FORMAT = "strikeout ledger entry 1"
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
# Counts of an entry that are not numbers of quotes.
CLOCK_BACK = "clock_back"  # by how many seconds an entry is dated before the previous one
REQUEST = "of"  # the request that is decided
FIRST_RESULT, LAST_RESULT = "first result removed", "last result removed"  # entries whose results an erasure removed
FIRST_DATE, LAST_DATE = "first date", "last date"  # of erased quotes, as whole numbers: 20240131
SOURCE = "source: "  # before the name of a source: how many of its quotes were erased


class ReasonCode(StrEnum):
    """Why something was done, as a closed list, so that entries can be counted by reason."""

    BAD_FEED = "bad-feed"
    LICENCE = "licence"
    SUBJECT_REQUEST = "subject-request"
    ERROR = "error"
    TEST = "test"
    OTHER = "other"


def counts_in_words(counts: Mapping[str, int]) -> list[str]:
    """Return the counts of an entry for a reader.

    >>> counts_in_words({"erased": 2700, "first result removed": 2, "last result removed": 4, "source: south": 2700})
    ['erased 2,700', 'results of entries 2 to 4 removed', 'of source south 2,700']
    """
    words = []
    for name, count in counts.items():
        if name in (FIRST_RESULT, FIRST_DATE):
            last = counts.get(LAST_RESULT if name == FIRST_RESULT else LAST_DATE, count)
            if name == FIRST_RESULT:
                words.append(f"results of entries {count} to {last} removed")
            else:
                words.append(f"dates {_day(count)} to {_day(last)}")
        elif name == REQUEST:
            words.append(f"request {count}")
        elif name.startswith(SOURCE):
            words.append(f"of source {name.removeprefix(SOURCE)} {count:,}")
        elif name not in (LAST_RESULT, LAST_DATE):
            words.append(f"{name.replace('_', ' ')} {count:,}")
    return words


def _day(number: int) -> str:
    text = f"{number:08d}"
    return f"{text[:4]}-{text[4:6]}-{text[6:]}"


@dataclass(frozen=True)
class Reason:
    """Why something was done: a code from a closed list, a line of text, the number of a ticket."""

    code: str
    text: str = ""
    ticket: str = ""

    def __post_init__(self) -> None:
        if self.code not in set(ReasonCode):
            raise UsageError(f"Reason: {self.code!r} is none of {', '.join(ReasonCode)}.", code_given=self.code)
        for name in ("text", "ticket"):
            _refuse_unprintable(f"the {name} of a reason", getattr(self, name))
        object.__setattr__(self, "code", str(self.code))

    def to_plain(self) -> dict[str, str]:
        """Return the reason as a table of texts."""
        return {"code": self.code, "text": self.text, "ticket": self.ticket}

    @staticmethod
    def from_plain(content: Mapping[str, str]) -> Reason:
        """Return the reason that a table of texts describes.

        Raises:
            UsageError: the table has other names, or is not a reason.
        """
        if set(content) != {"code", "text", "ticket"}:
            raise UsageError(f"Reason: a table of code, text and ticket is expected; found {', '.join(content)}.")
        return Reason(**content)

    def __str__(self) -> str:
        more = ", ".join(filter(None, (self.text, self.ticket)))
        return f"{self.code} ({more})" if more else self.code


@dataclass(frozen=True)
class Act:
    """The content of an entry, before it is numbered, chained and signed.

    ``digests``, ``touched`` and ``certificate`` may depend on quotes and states: they are keyed before writing.
    """

    who: str
    what: str  # the verb: import, calibrate, forget, ...
    at: datetime
    why: Reason | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)  # of the book afterwards; never before
    touched: Sequence[bytes] = ()  # one byte string per affected quote; the order does not matter
    certificate: str = ""
    commitment: str = ""  # to the affected quotes, if they are too many for `touched`
    reading: Mapping[str, str] = field(default_factory=dict)  # how the file of an import was read; no value of a quote

    def __post_init__(self) -> None:
        for name in ("who", "what"):
            if not getattr(self, name):
                raise UsageError(f"Act: `{name}` is empty. Give a text of one line.", name=name)
            _refuse_unprintable(f"`{name}`", getattr(self, name))
        for name, text in self.reading.items():
            _refuse_unprintable("a setting of a reading", f"{name} {text}")
        for name, count in self.counts.items():
            if type(count) is not int or count < 0:
                raise UsageError(
                    f"Act: the count {name!r} is {count!r}; counts are whole numbers from 0.", name=name, count=count
                )
        if self.certificate and not is_hex(self.certificate, 32):
            raise UsageError(
                f"Act: the certificate is {self.certificate!r}; give its digest, 64 hexadecimal digits.",
                certificate=self.certificate,
            )
        if self.at.tzinfo is None:
            raise UsageError(
                f"Act: the time {self.at.isoformat()} has no zone. Use datetime.now(UTC).", at=self.at.isoformat()
            )

    def moment(self) -> str:
        """Return the time in UTC to the microsecond, in the form of the ledger."""
        return utc(self.at)


def utc(at: datetime) -> str:
    """Return a time in UTC to the microsecond, in the form of the ledger."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True)
class Entry:
    """A numbered, chained and signed entry of the ledger. Every hash in it that depends on a quote is keyed."""

    number: int  # from 1
    at: str
    who: str
    what: str
    why: Reason | None
    counts: Mapping[str, int]
    digests: Mapping[str, str]
    reading: Mapping[str, str]  # how the file of an import was read; empty for other entries and for quotes in memory
    touched: str  # keyed commitment to the set of quotes, or empty
    certificate: str  # keyed digest of the certificate that was issued with it, or empty
    software: str
    previous: str  # hash of the entry before; zeros for the first
    public: str
    next_public: str = ""  # the key of all entries after this one, if it changes
    signature: str = ""

    def signed(self, signer: Signer) -> Entry:
        """Return this entry with a signature of all its other fields."""
        return replace(self, signature=signer.sign(self._unsigned()))

    def is_signed(self) -> bool:
        """Return whether the holder of ``public`` signed this entry as it is."""
        return is_signature(self.public, self._unsigned(), signature=self.signature)

    def next_signer(self) -> str:
        """Return the key that must sign the next entry."""
        return self.next_public or self.public

    def hash(self) -> bytes:
        """Return the leaf of this entry in the ledger's tree, which is also ``previous`` of the next entry."""
        return leaf_hash(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the canonical bytes of this entry."""
        return canonical(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a table of texts, whole numbers and tables."""
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        tables = {name: dict(getattr(self, name)) for name in ("counts", "digests", "reading")}
        return {"format": FORMAT, **content, **tables, "why": self.why and self.why.to_plain()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, the hash of the entry included."""
        return {**self.to_json(), "hash": self.hash().hex()}

    @staticmethod
    def from_bytes(data: bytes) -> Entry:
        """Return the entry in these bytes. Its signature is not checked; ``is_signed`` does that.

        Raises:
            RefusedError: they are not an entry, are in another format, or are damaged.
        """
        content = from_canonical(data)
        found = content.get("format") if isinstance(content, dict) else None
        if found != FORMAT:
            raise RefusedError(
                f"Ledger: the format of an entry is {found!r}; this version reads {FORMAT!r}.", found=found
            )
        names = {item.name for item in fields(Entry)}
        if set(content) != {*names, "format"}:
            odd = ", ".join(sorted(set(content) ^ {*names, "format"}))
            raise RefusedError(f"Ledger: fields of an entry are missing or unknown: {odd}.", fields=odd)
        wrong = _wrong(content)
        if wrong is not None:
            raise RefusedError(f"Ledger: `{wrong}` is not what an entry holds there: {content[wrong]!r}.", field=wrong)
        reason = content["why"] and Reason(**content["why"])
        return Entry(**{name: content[name] for name in names - {"why"}}, why=reason)

    def __str__(self) -> str:
        counts = "".join(f", {words}" for words in counts_in_words(self.counts))
        why = f": {self.why}" if self.why else ""
        return f"{self.number:>4}  {self.at[:19]}Z  {self.who}  {self.what}{counts}{why}"

    def _unsigned(self) -> bytes:
        content = self.to_json()
        del content["signature"]
        return canonical(content)


def seconds_back(last: str, at: str) -> int:
    """Return by how many seconds a time is before that of the last entry, rounded up; 0 if it is not before."""
    apart = datetime.fromisoformat(last) - datetime.fromisoformat(at)
    return max(0, ceil(apart.total_seconds()))


def _is_time(text: object) -> bool:
    try:
        return isinstance(text, str) and _TIME.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _wrong(content: Mapping[str, Any]) -> str | None:
    """Return the first field whose value is not valid in an entry; None if all are valid."""
    why = content["why"]
    checks = {
        **{
            name: isinstance(content[name], str) and content[name].isprintable() for name in ("who", "what", "software")
        },
        "at": _is_time(content["at"]),
        "number": type(content["number"]) is int and content["number"] >= 1,
        "why": why is None
        or (
            isinstance(why, dict)
            and set(why) == {"code", "text", "ticket"}
            and all(isinstance(text, str) and text.isprintable() for text in why.values())
            and why["code"] in set(ReasonCode)
        ),
        "counts": isinstance(content["counts"], dict)
        and all(type(count) is int and count >= 0 for count in content["counts"].values()),
        "digests": isinstance(content["digests"], dict) and all(is_hex(d, 32) for d in content["digests"].values()),
        "reading": isinstance(content["reading"], dict)
        and all(isinstance(text, str) and f"{name}{text}".isprintable() for name, text in content["reading"].items()),
        **{
            name: content[name] == "" or is_hex(content[name], 32) for name in ("touched", "certificate", "next_public")
        },
        **{name: is_hex(content[name], 32) for name in ("previous", "public")},
        "signature": is_hex(content["signature"], 64),
    }
    return next((name for name, good in checks.items() if not good), None)


def _refuse_unprintable(name: str, text: str) -> None:
    if not text.isprintable():
        raise UsageError(
            f"Ledger: {name} is {text!r}; it must print on one line, without control characters.", name=name, text=text
        )
