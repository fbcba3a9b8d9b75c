"""The interface for programs: one route per verb of a book, under /v1."""

from __future__ import annotations

from base64 import b64decode
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from strikeout.errors import StrikeoutError, UsageError
from strikeout.service import readings, schemas
from strikeout.service.desk import Desk
from strikeout.service.people import Action
from strikeout.service.problems import (
    ARROW,
    CSV,
    JSON,
    MEDIA_TYPE,
    PARQUET,
    Problem,
    ProblemError,
    media_type_of,
    problem_of,
    tag_of,
    with_head,
)
from strikeout.service.quotes_view import State
from strikeout.service.schemas import ProblemDetails
from strikeout.text import many

MOST_ROWS, FEW_ROWS = 10_000, 1000  # of a page of quotes: at most, and if no limit is given
Name = Annotated[str, Path(description="The name of a book, without .book.", max_length=200)]
Number = Annotated[int, Path(ge=1, le=2**31, description="The number of an entry of the ledger.")]
IfNoneMatch = Annotated[str | None, Header(description="The head that was seen; 304 if it is still the head.")]


TAG = {"ETag": {"description": "The head of the ledger.", "schema": {"type": "string"}}}
NUMBER = {"X-Request-Id": {"description": "The number of the request in the log.", "schema": {"type": "string"}}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how problems with these statuses are described."""
    answer = {"content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}}}
    return {status: {"description": HTTPStatus(status).phrase, "headers": NUMBER, **answer} for status in statuses}


def answered(model: type[BaseModel] | None = None, *, is_tagged: bool = True, **more: Any) -> dict[str, Any]:
    """Return how an answer with status 200 is described."""
    described = {"headers": {**NUMBER, **(TAG if is_tagged else {})}, **more}
    return described if model is None else {"model": model, **described}


SEEN: dict[int | str, dict[str, Any]] = {304: {"description": "Not changed since it was seen.", "headers": TAG}}


def _taken(dependant: Any) -> set[str]:
    """Return the names of the query's parameters, those of dependencies too."""
    own = {parameter.alias for parameter in dependant.query_params}
    return own.union(*(_taken(one) for one in dependant.dependencies))


async def refuse_unknown(request: Request) -> None:
    """Raise ProblemError if the query has a parameter that the route does not take: a misspelt one would do nothing."""
    known = _taken(request.scope["route"].dependant)
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        listed = f"It takes {', '.join(sorted(known))}." if known else "It takes none."
        sentence = f"The query has {many(len(unknown), 'parameter')} that this route does not take. {listed}"
        raise ProblemError(Problem(UsageError.code, 422, sentence))


signed = Security(HTTPBearer(auto_error=False, description="A token; see strikeout serve --tokens and --oidc."))
COMMON = [signed, Depends(refuse_unknown)]  # of every route of the interface
router = APIRouter(prefix="/v1", responses=problems(400, 401, 403, 404, 409, 422, 500), dependencies=COMMON)


def desk_of(request: Request) -> Desk:
    """Return the desk that answers a request."""
    desk: Desk = request.app.state.desk
    return desk


@router.get("/books", summary="List the books", responses={200: answered(schemas.Books, is_tagged=False)})
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


@router.get("/books/{name}", summary="Show a book", responses={200: answered(schemas.BookStatus), **SEEN})
async def show(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return what a book holds, its calibration and the head of its ledger, which is also the ETag."""
    found, head = await desk_of(request).read(request, name, readings.described)
    return with_head(found, head, seen=if_none_match)


@router.get(
    "/books/{name}/versions", summary="List the calibrations", responses={200: answered(schemas.Versions), **SEEN}
)
async def versions(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return parameters, standard errors and fit of every calibration that the book contains."""
    found, head = await desk_of(request).read(request, name, readings.versions)
    return with_head(found, head, seen=if_none_match)


@router.get(
    "/books/{name}/versions/{entry}", summary="Show a calibration", responses={200: answered(schemas.Version), **SEEN}
)
async def version(request: Request, name: Name, entry: Number, if_none_match: IfNoneMatch = None) -> Response:
    """Return everything that the book contains of the calibration of an entry."""
    found, head = await desk_of(request).read(request, name, readings.version, entry)
    return with_head(found, head, seen=if_none_match)


@router.get(
    "/books/{name}/quotes",
    summary="List quotes",
    responses={
        200: answered(
            schemas.QuoteList,
            content={kind: {"schema": {"type": "string", "format": "binary"}} for kind in (CSV, PARQUET, ARROW)},
        )
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


_ENDINGS = {CSV: "csv", PARQUET: "parquet", ARROW: "arrows"}


@router.get("/books/{name}/influence", summary="List influential quotes", responses={200: answered(schemas.Influence)})
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


@router.get(
    "/books/{name}/charts/{kind}", summary="Show the numbers of a picture", responses={200: answered(schemas.Chart)}
)
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


@router.post("/books/{name}/plans", summary="Plan a strike-out", responses={200: answered(schemas.PlanShown)})
async def plan(request: Request, name: Name, body: schemas.PlanBody) -> Response:
    """Return what striking quotes out will do; nothing is changed. The member ``plan`` can be applied with forget."""
    found = await desk_of(request).ask(request, name, "plan", **body.model_dump())
    return with_head(found, found["head"])


@router.get("/books/{name}/log", summary="List the ledger", responses={200: answered(schemas.Log), **SEEN})
async def log(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return every entry of the ledger, in order, and whether a removal had the approval that it needed."""
    found, head = await desk_of(request).read(request, name, readings.log)
    return with_head({"entries": found}, head, seen=if_none_match)


@router.get("/books/{name}/requests", summary="List requests", responses={200: answered(schemas.Requests), **SEEN})
async def requests(request: Request, name: Name, if_none_match: IfNoneMatch = None) -> Response:
    """Return every request for a removal, who asked, who decided, and whether it was done."""
    found, head = await desk_of(request).read(request, name, readings.requests)
    return with_head({"requests": found}, head, seen=if_none_match)


@router.get("/books/{name}/verify", summary="Verify a book", responses={200: answered(schemas.Verification)})
async def verify(
    request: Request,
    name: Name,
    head: Annotated[str | None, Query(max_length=200, description="A head that was kept elsewhere.")] = None,
) -> Response:
    """Check the whole book: bytes, ledger, counts, states, parameters, certificates and erased quotes."""
    found = await desk_of(request).ask(request, name, "verify", head=head)
    return with_head(found, found["head"])


@router.get(
    "/books/{name}/certificates/{entry}", summary="Show a certificate", responses={200: answered(schemas.Answer)}
)
async def certificate(request: Request, name: Name, entry: Number) -> Response:
    """Return the certificate of an entry: the bytes that ``strikeout verify`` reads."""
    found, head = await desk_of(request).read(request, name, readings.certificate, entry, action=Action.VERIFY)
    return Response(found, media_type=JSON, headers={"etag": tag_of(head)})


@router.get("/books/{name}/compare/{other}", summary="Compare two books", responses={200: answered(schemas.Comparison)})
async def compare(request: Request, name: Name, other: Name) -> Response:
    """Compare states and parameters of two books, bit for bit."""
    desk = desk_of(request)
    desk.person(request).check(Action.READ)
    found = await desk.ask(request, name, "compare", other=str(desk.library.path(other)))
    return with_head(found, found["head"])
