"""The interface for programs: one route per verb of a book, under /v1."""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from strikeout.errors import StrikeoutError
from strikeout.service import readings
from strikeout.service.desk import Desk
from strikeout.service.people import Action
from strikeout.service.problems import JSON, media_type_of, problem_of, tag_of, with_head
from strikeout.service.quotes_view import State

MOST_ROWS, FEW_ROWS = 10_000, 1000  # of a page of quotes: at most, and if no limit is given
Name = Annotated[str, Path(description="The name of a book, without .book.", max_length=200)]
Number = Annotated[int, Path(ge=1, le=2**31, description="The number of an entry of the ledger.")]
IfNoneMatch = Annotated[str | None, Header(description="The head that was seen; 304 if it is still the head.")]


class ProblemDetails(BaseModel):
    """Why a request was not answered (RFC 9457). Other members are the facts of the error."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: str
    code: str


class Why(BaseModel):
    """The reason for the ledger. Name no quote in it: it stays when quotes are erased."""

    model_config = ConfigDict(extra="forbid")
    code: Literal["bad-feed", "licence", "subject-request", "error", "test", "other"]
    text: str = Field("", max_length=1000)
    ticket: str = Field("", max_length=200)


class Choice(BaseModel):
    """Quotes, chosen in one way: by a condition in SQL on columns and labels, or by their ids."""

    model_config = ConfigDict(extra="forbid")
    where: str | None = Field(None, min_length=1, max_length=20_000, examples=["source = 'b' and date = '2024-03-05'"])
    ids: list[str] | None = Field(None, min_length=1, max_length=200_000)
    reason: Why | None = None


class PlanBody(Choice):
    """What to strike out, and within how many standard errors of the optimum one step may end."""

    tolerance: float | None = Field(None, gt=0.0)


router = APIRouter(
    prefix="/v1",
    responses={
        status: {"model": ProblemDetails, "content": {"application/problem+json": {}}}
        for status in (400, 401, 403, 404, 409, 422, 500)
    },
)


def desk_of(request: Request) -> Desk:
    """Return the desk that answers a request."""
    desk: Desk = request.app.state.desk
    return desk


@router.get("/books", summary="List the books")
async def books(request: Request) -> dict[str, Any]:
    """Return every book of the folder at a glance; one that cannot be opened has its problem instead."""
    desk = desk_of(request)
    desk.person(request).check(Action.READ)
    return {"books": [await _glance(desk, request, name) for name in desk.library.paths()]}


async def _glance(desk: Desk, request: Request, name: str) -> dict[str, Any]:
    try:
        found, _ = await desk.read(request, name, readings.described)
    except StrikeoutError as error:
        return {"name": name, "problem": problem_of(error).to_dict()}
    finally:
        request.state.book = None
    return {key: found[key] for key in readings.GLANCE}


@router.get("/books/{name}", summary="Show a book")
async def show(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return what a book holds, its calibration and the head of its ledger, which is also the ETag."""
    found, head = await desk_of(request).read(request, name, readings.described)
    return with_head(found, head, seen=if_none_match)


@router.get("/books/{name}/versions", summary="List the calibrations")
async def versions(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return parameters, standard errors and fit of every calibration that the book contains."""
    found, head = await desk_of(request).read(request, name, readings.versions)
    return with_head(found, head, seen=if_none_match)


@router.get("/books/{name}/versions/{entry}", summary="Show a calibration")
async def version(request: Request, name: Name, entry: Number, if_none_match: IfNoneMatch = None) -> Response:
    """Return everything that the book contains of the calibration of an entry."""
    found, head = await desk_of(request).read(request, name, readings.version, entry)
    return with_head(found, head, seen=if_none_match)


@router.get(
    "/books/{name}/quotes",
    summary="List quotes",
    responses={
        200: {
            "content": {
                kind: {}
                for kind in ("text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream")
            }
        }
    },
)
async def quotes(
    request: Request,
    name: Name,
    where: Annotated[str | None, Query(min_length=1, max_length=20_000, description="A condition in SQL.")] = None,
    state: Annotated[State, Query(description="Quotes that are held, struck out, or both.")] = "held",
    limit: Annotated[int | None, Query(ge=1, le=MOST_ROWS, description="The most rows of a page.")] = None,
    cursor: Annotated[str | None, Query(max_length=2000, description="Of the page before.")] = None,
    accept: Annotated[str, Header()] = JSON,
) -> Response:
    """Return quotes by id, page by page as JSON, or all of them as CSV, Parquet or an Arrow stream (header Accept)."""
    desk, kind = desk_of(request), media_type_of(accept)
    asked = {"where": where, "state": state, "cursor": cursor}
    if kind == JSON:
        found = await desk.ask(request, name, "quotes", limit=limit or FEW_ROWS, **asked)
        shown = {key: found[key] for key in ("total", "cursor", "quotes")}
        return with_head(shown, found["head"], headers={"vary": "accept"})
    found = await desk.ask(request, name, "quote file", kind=kind, limit=limit, **asked)
    headers = {
        "etag": tag_of(found["head"]),
        "vary": "accept",
        "content-disposition": f"attachment; filename=quotes.{_ENDINGS[kind]}",
        **({} if found["cursor"] is None else {"x-next-cursor": found["cursor"]}),
    }
    return Response(b64decode(found["body"]), media_type=kind, headers=headers)


_ENDINGS = {
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.apache.arrow.stream": "arrows",
}


@router.get("/books/{name}/influence", summary="List influential quotes")
async def influence(
    request: Request,
    name: Name,
    by: Annotated[
        str | None, Query(max_length=500, description="What makes a group: labels and cuts such as date,source.")
    ] = None,
    top: Annotated[int, Query(ge=1, le=1000, description="How many rows.")] = 20,
) -> Response:
    """Return the quotes or groups with the largest influence, each with the condition that selects it."""
    found = await desk_of(request).ask(request, name, "influence", by=by, top=top)
    return with_head(found, found["head"])


@router.get("/books/{name}/charts/{kind}", summary="Show the numbers of a picture")
async def chart(
    request: Request,
    name: Name,
    kind: Literal["smiles", "residuals", "variance", "influence", "path"],
    by: Annotated[str | None, Query(max_length=200, description="The label across a map of influence.")] = None,
    date: Annotated[str | None, Query(max_length=40, description="One date of quotes.")] = None,
) -> Response:
    """Return what a picture of the current calibration shows, as plain values."""
    found = await desk_of(request).ask(request, name, "chart", kind=kind, by=by, date=date)
    return with_head(found, found["head"])


@router.post("/books/{name}/plans", summary="Plan a strike-out")
async def plan(request: Request, name: Name, body: PlanBody) -> Response:
    """Return what striking quotes out will do; nothing is changed. The member ``plan`` can be applied with forget."""
    found = await desk_of(request).ask(request, name, "plan", **body.model_dump())
    return with_head(found, found["head"])


@router.get("/books/{name}/log", summary="List the ledger")
async def log(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return every entry of the ledger, in order, and whether a removal had the approval that it needed."""
    found, head = await desk_of(request).read(request, name, readings.log)
    return with_head({"entries": found}, head, seen=if_none_match)


@router.get("/books/{name}/requests", summary="List requests")
async def requests(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return every request for a removal, who asked, who decided, and whether it was done."""
    found, head = await desk_of(request).read(request, name, readings.requests)
    return with_head({"requests": found}, head, seen=if_none_match)


@router.get("/books/{name}/verify", summary="Verify a book")
async def verify(
    request: Request,
    name: Name,
    head: Annotated[str | None, Query(max_length=200, description="A head that was kept elsewhere.")] = None,
) -> Response:
    """Check the whole book: bytes, ledger, counts, states, parameters, certificates and erased quotes."""
    found = await desk_of(request).ask(request, name, "verify", head=head)
    return with_head(found, found["head"])


@router.get("/books/{name}/certificates/{entry}", summary="Show a certificate")
async def certificate(request: Request, name: Name, entry: Number) -> Response:
    """Return the certificate of an entry: the bytes that ``strikeout verify`` reads."""
    found, head = await desk_of(request).read(request, name, readings.certificate, entry, action=Action.VERIFY)
    return Response(found, media_type=JSON, headers={"etag": tag_of(head)})


@router.get("/books/{name}/compare/{other}", summary="Compare two books")
async def compare(request: Request, name: Name, other: Name) -> Response:
    """Compare states and parameters of two books, bit for bit."""
    desk = desk_of(request)
    desk.person(request).check(Action.READ)
    found = await desk.ask(request, name, "compare", other=str(desk.library.path(other)))
    return with_head(found, found["head"])
