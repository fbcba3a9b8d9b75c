"""Errors as answers: one table from the class of an error to an HTTP status, and problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from strikeout import errors
from strikeout.tables import plain

# The status of every class of errors; a class that is not listed has the status of its parent.
STATUS: Mapping[type[errors.StrikeoutError], int] = {
    errors.StrikeoutError: 500,
    errors.UsageError: 400,
    errors.QuotesError: 422,
    errors.BookError: 500,
    errors.NotABookError: 404,
    errors.RefusedError: 409,
    errors.UnknownIdError: 422,
    errors.NothingMeantError: 422,
    errors.UnidentifiedError: 422,
    errors.ServiceError: 400,
    errors.SignInError: 401,
    errors.RoleError: 403,
    errors.NoSuchPageError: 404,
    errors.MissingHeadError: 428,
    errors.MovedHeadError: 412,
    errors.ReusedKeyError: 422,
    errors.TooLargeError: 413,
    errors.TooManyError: 429,
    errors.CancelledError: 409,
}
INTERNAL = "internal"
MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Problem:
    """An error as plain values: a stable code, a status, a sentence for people, facts for programs."""

    code: str
    status: int
    sentence: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem details of RFC 9457; facts are members beside the standard ones."""
        return {
            **self.facts,
            "type": f"urn:strikeout:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.sentence,
            "code": self.code,
        }

    def to_plain(self) -> dict[str, Any]:
        """Return the fields, to send them from a worker process."""
        return {"code": self.code, "status": self.status, "sentence": self.sentence, "facts": dict(self.facts)}

    @staticmethod
    def from_plain(content: Mapping[str, Any]) -> Problem:
        """Return the problem that ``to_plain`` described."""
        return Problem(content["code"], content["status"], content["sentence"], content["facts"])


class ProblemError(Exception):
    """A problem that a worker process reported."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.sentence)


def status_of(kind: type[errors.StrikeoutError]) -> int:
    """Return the HTTP status of a class of errors."""
    return next(STATUS[parent] for parent in kind.__mro__ if parent in STATUS)


def problem_of(error: BaseException) -> Problem:
    """Return an error as a problem; of an error that is not strikeout's own only its class is shown."""
    if isinstance(error, ProblemError):
        return error.problem
    if isinstance(error, errors.StrikeoutError):
        facts = {name: plain(value) for name, value in error.facts.items() if name not in ("path", "status", "code")}
        return Problem(error.code, status_of(type(error)), error.sentence, facts)
    sentence = f"An error in strikeout, not in the request: {type(error).__name__}. The log of the server has more."
    return Problem(INTERNAL, 500, sentence)
