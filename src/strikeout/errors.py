"""Every error a user can meet, in one tree.

    StrikeoutError                the root; catch this one
    ├── UsageError        (2)     a wrong name, a wrong shape, an unknown option
    │   └── ParameterError        a parameter vector outside the model
    ├── QuotesError       (2)     the input cannot be read as quotes
    │   ├── UnreadableFileError   no such file, empty, not the format of its name
    │   ├── ColumnError           a needed column is missing, or two disagree
    │   └── RejectedError         more rows are bad than `max_reject` allows; carries every issue
    ├── BookError         (2)     the file cannot be used as a book; it is left as it was found
    │   ├── NotABookError         no such file, an existing one, or a file of another program
    │   ├── NewerBookError        written by a newer version of strikeout
    │   └── DamagedBookError      truncated, or bytes that are not those that were written
    ├── RefusedError      (3)     the call is right, but no honest number can be given
    │   ├── BusyError             another process is using the book
    │   ├── UnknownIdError        an id that no quote of the book has, or one given twice
    │   ├── NothingMeantError     a condition that no quote matches
    │   └── UnidentifiedError     the quotes do not determine the parameters
    └── ServiceError      (2)     a request to the desk that cannot be answered as it was sent
        ├── SignInError           without a valid token or session
        ├── RoleError             the role of the person does not permit it
        ├── NoSuchPageError       no such book, entry, job or address
        ├── MissingHeadError      a change that does not name the head of the ledger it was made for
        ├── MovedHeadError        the book changed since that head
        ├── ReusedKeyError        an Idempotency-Key that was used with another request
        ├── TooLargeError         more bytes than the desk takes
        ├── TooManyError          too many attempts in a short time
        └── CancelledError        a job that was cancelled before it ended

The number is the exit code of the command line. `code` is stable and meant for programs; the sentence is meant for
people and may be reworded: no program compares, searches or cuts it. Facts (row, column, count, ...) are attributes.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, ClassVar, Self

from strikeout.text import Argument, Mention, render


class StrikeoutError(Exception):
    """The root of every error: what was asked, what was found, what to do next.

    A message is given in parts: text, and mentions (``text.Mention``) of arguments and advice. ``sentence`` renders
    the mentions for Python; the command line renders them as options.

    Args:
        parts: text and mentions, joined without a separator.
        facts: values for programs; each is an attribute of the error.

    >>> from strikeout.text import Argument
    >>> error = UsageError("Give ", Argument("panel", None), ".", panel="day")
    >>> error.sentence, error.arguments, error.panel
    ('Give panel=None.', frozenset({'panel'}), 'day')
    """

    code: ClassVar[str] = "strikeout"
    exit_code: ClassVar[int] = 4

    def __init__(self, *parts: str | Mention, **facts: Any) -> None:
        self.parts = parts
        self.sentence = render(parts)
        self.facts = facts
        super().__init__(self.sentence)

    @property
    def without_folder(self) -> str:
        """The sentence with the name of the file it is about in place of its path, for readers on other machines."""
        path = str(self.facts.get("path") or "")
        if not path:
            return self.sentence
        return render(
            [part.replace(path, PurePath(path).name) if isinstance(part, str) else part for part in self.parts]
        )

    @property
    def arguments(self) -> frozenset[str]:
        """The names of the arguments that the message mentions."""
        return frozenset(part.name for part in self.parts if isinstance(part, Argument))

    def extended(self, *parts: str | Mention, **facts: Any) -> Self:
        """Return the same error with more at the end of its message, and more facts."""
        return type(self)(*self.parts, *parts, **{**self.facts, **facts})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.parts, self.facts)  # so that facts survive a process boundary

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(f"{type(self).__name__} has no fact named {name!r}; it has {sorted(facts)}")


def _rebuild(kind: type[StrikeoutError], parts: tuple[str | Mention, ...], facts: dict[str, Any]) -> StrikeoutError:
    return kind(*parts, **facts)


class UsageError(StrikeoutError):
    code = "usage"
    exit_code = 2


class ParameterError(UsageError):
    code = "parameter"


class QuotesError(StrikeoutError):
    code = "quotes"
    exit_code = 2


class UnreadableFileError(QuotesError):
    code = "unreadable-file"


class ColumnError(QuotesError):
    code = "column"


class RejectedError(QuotesError):
    code = "rejected"


class BookError(StrikeoutError):
    code = "book"
    exit_code = 2


class NotABookError(BookError):
    code = "not-a-book"


class NewerBookError(BookError):
    code = "newer-book"


class DamagedBookError(BookError):
    code = "damaged-book"


class RefusedError(StrikeoutError):
    code = "refused"
    exit_code = 3


class BusyError(RefusedError):
    code = "busy"


class UnknownIdError(RefusedError):
    code = "unknown-id"


class NothingMeantError(RefusedError):
    code = "nothing-meant"


class UnidentifiedError(RefusedError):
    code = "unidentified"


class ServiceError(StrikeoutError):
    code = "service"
    exit_code = 2


class SignInError(ServiceError):
    code = "sign-in"


class RoleError(ServiceError):
    code = "role"


class NoSuchPageError(ServiceError):
    code = "no-such-page"


class MissingHeadError(ServiceError):
    code = "missing-head"


class MovedHeadError(ServiceError):
    code = "moved-head"


class ReusedKeyError(ServiceError):
    code = "reused-key"


class TooLargeError(ServiceError):
    code = "too-large"


class TooManyError(ServiceError):
    code = "too-many"


class CancelledError(ServiceError):
    code = "cancelled"
