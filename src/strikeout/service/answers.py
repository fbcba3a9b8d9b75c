"""Answers: problems as problem+json, heads as entity tags, and quotes in the format that was asked for."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from strikeout.quotes.spreadsheets import guarded
from strikeout.service.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    import polars as pl

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


def with_head(content: Mapping[str, Any], head: str, *, status: int = 200, seen: str | None = None) -> Response:
    """Return plain values with the head of the ledger as entity tag; 304 if the client has seen it.

    Args:
        seen: the header If-None-Match of the request.
    """
    tag = tag_of(head)
    if seen is not None and tag in [part.strip().removeprefix("W/") for part in seen.split(",")]:
        return Response(status_code=304, headers={"etag": tag})
    return ExactJSON(dict(content), status, {"etag": tag})


def media_type_of(accept: str) -> str:
    """Return the first media type that a client accepts and that quotes have; JSON if it names none of them.

    >>> media_type_of("text/html, text/csv;q=0.5"), media_type_of("*/*")
    ('text/csv', 'application/json')
    """
    asked = (part.partition(";")[0].strip().lower() for part in accept.split(","))
    return next((kind for kind in asked if kind in (JSON, CSV, PARQUET, ARROW)), JSON)


def frame_bytes(frame: pl.DataFrame, kind: str) -> bytes:
    """Return a table as CSV, Parquet or an Arrow stream. Texts of a CSV that begin like formulas are guarded."""
    out = io.BytesIO()
    if kind == CSV:
        guarded(frame).write_csv(out)
    elif kind == PARQUET:
        frame.write_parquet(out)
    else:
        frame.write_ipc_stream(out)
    return out.getvalue()
