"""Errors as answers: one table from the class of an error to an HTTP status, and problem details (RFC 9457).

Answers: problems as problem+json, heads as entity tags, and quotes in the format that was asked for.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from strikeout import errors
from strikeout.quotes.spreadsheets import guarded
from strikeout.tables import plain

if TYPE_CHECKING:
    import polars as pl

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
        return Problem(error.code, status_of(type(error)), error.without_folder, facts)
    sentence = f"An error in strikeout, not in the request: {type(error).__name__}. The log of the server has more."
    return Problem(INTERNAL, 500, sentence)


JSON, CSV = "application/json", "text/csv"
PARQUET, ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"


class ExactJSON(JSONResponse):
    """JSON without numbers that do not exist; they must be null. In ASCII: a text may hold half a character."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return json.dumps(content, allow_nan=False).encode()


def problem_response(problem: Problem, *, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as an answer."""
    more = {"www-authenticate": 'Bearer realm="strikeout"'} if problem.status == 401 else {}
    return ExactJSON(problem.to_dict(), problem.status, {**more, **(headers or {})}, MEDIA_TYPE)


def tag_of(head: str) -> str:
    """Return the entity tag of a book whose ledger ends at this head."""
    return f'"{head}"'


def with_head(
    content: Mapping[str, Any], head: str, *, seen: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return plain values with the head of the ledger as entity tag; 304 if the client has seen it.

    Args:
        seen: the header If-None-Match of the request.
    """
    tag = tag_of(head)
    if seen is not None and tag in [part.strip().removeprefix("W/") for part in seen.split(",")]:
        return Response(status_code=304, headers={"etag": tag})
    return ExactJSON(dict(content), headers={"etag": tag, **(headers or {})})


def media_type_of(accept: str) -> str:
    """Return the first media type that a client accepts and that quotes have; JSON if it names none of them.

    >>> media_type_of("text/html, text/csv;q=0.5"), media_type_of("*/*")
    ('text/csv', 'application/json')
    """
    asked = (part.partition(";")[0].strip().lower() for part in accept.split(","))
    return next((kind for kind in asked if kind in (JSON, CSV, PARQUET, ARROW)), JSON)


def frame_bytes(frame: pl.DataFrame, kind: str) -> bytes:
    """Return a table as JSON, CSV, Parquet or an Arrow stream. Texts of a CSV that begin like formulas are guarded."""
    out = io.BytesIO()
    if kind == JSON:
        out.write(json.dumps(frame.fill_nan(None).to_dicts(), allow_nan=False).encode())
    elif kind == CSV:
        guarded(frame).write_csv(out)
    elif kind == PARQUET:
        frame.write_parquet(out)
    else:
        frame.write_ipc_stream(out)
    return out.getvalue()
