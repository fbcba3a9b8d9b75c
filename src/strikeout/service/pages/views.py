"""Pages that read: each asks the book or a worker for plain values and renders a template."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from strikeout.book.results import moved
from strikeout.errors import NoSuchPageError, StrikeoutError
from strikeout.quotes.conditions import literal
from strikeout.service import readings
from strikeout.service.pages.site import (
    address,
    desk_of,
    evidence_answer,
    numeric,
    page,
    places,
    see,
    static_file,
)
from strikeout.service.people import Action
from strikeout.service.problems import CSV, JSON, ProblemError, problem_of
from strikeout.service.quotes_view import State

router = APIRouter(include_in_schema=False)
ROWS = 100  # quotes of a page
Text = Annotated[str | None, Query(max_length=20_000)]
Short = Annotated[str | None, Query(max_length=300)]


@router.get("/static/{digest}/{file}")
async def static_files(digest: str, file: str) -> Response:
    """Return the style, the script or the icon."""
    return static_file(digest, file)


@router.get("/")
async def books(request: Request) -> Response:
    """List the books; one alone is opened."""
    desk = desk_of(request)
    desk.person(request).check(Action.READ)
    names = list(desk.library.paths())
    if len(names) == 1:
        return see(address("books", names[0]))
    found = []
    for name in names:
        try:
            facts, _ = await desk.read(request, name, readings.described)
            found.append(facts)
        except StrikeoutError as error:
            found.append({"name": name, "problem": problem_of(error).sentence})
    return page(request, "books.html", books=found, folder=desk.library.folder.name)


@router.get("/books/{name}")
async def book(request: Request, name: str, by: Short = None, parameter: Short = None, date: Short = None) -> Response:
    """Show a book: parameters, counts, influence, smiles, residuals and the latest entries of its log."""
    desk = desk_of(request)
    status, head = await desk.read(request, name, readings.shown)
    name = status["name"]
    chosen = {"by": by or None, "parameter": parameter or None, "date": date or None}
    link = f"{address('books', name, 'quotes')}?state=all&id="
    shown: dict[str, Any] = {"refusal": status["sentence"], "pictures": {}}
    if status["calibration"] is not None and status["current"]:
        shown = await desk.ask(request, name, "board", link=link, **chosen)
    return page(request, "book.html", tab="", name=name, head=head, book=status, board=shown, chosen=chosen)


@router.get("/books/{name}/what-if")
async def what_if(
    request: Request,
    name: str,
    where: Text = None,
    ids: Text = None,
    view: Literal["smiles", "difference"] = "smiles",
    exact: bool | None = None,
) -> Response:
    """Show what striking quotes out will do. Nothing is changed."""
    desk = desk_of(request)
    status, head = await desk.read(request, name, readings.described)
    name, found, problem = status["name"], None, None
    asked = {"ids": ids.split()} if ids else {"where": where}
    if ids or where:
        link = f"{address('books', name, 'quotes')}?state=all&id="
        try:
            found = await desk.ask(
                request, name, "what if", difference=view == "difference", exact=exact, link=link, **asked
            )
            head = found["head"]
        except (ProblemError, StrikeoutError) as error:
            problem = problem_of(error).sentence
    return page(
        request, "what_if.html", tab="what-if", name=name, head=head, book=status, found=found, problem=problem,
        where=where or "", ids=ids or "", view=view,
    )  # fmt: skip


@router.get("/books/{name}/what-if/{table}.{ending}")
async def what_if_table(
    request: Request,
    name: str,
    table: Literal["parameters", "smiles"],
    ending: Literal["csv", "json"],
    where: Text = None,
    ids: Text = None,
) -> Response:
    """Return a table of the effect of striking quotes out, in full as CSV or JSON."""
    asked = {"ids": ids.split()} if ids else {"where": where or None}
    whole = (await desk_of(request).ask(request, name, "what if", tables=True, **asked))[f"{table}_table"]
    if whole is None:
        raise NoSuchPageError("There are no smiles of these quotes.")
    body = whole["csv"] if ending == "csv" else json.dumps(whole["records"])
    headers = {"content-disposition": f'attachment; filename="what-if-{table}.{ending}"'}
    return Response(body, media_type=CSV if ending == "csv" else JSON, headers=headers)


@router.get("/books/{name}/requests")
async def requests(request: Request, name: str, number: int | None = None) -> Response:
    """Show the requests for removals; beside one of them the plan of what it will do."""
    desk = desk_of(request)
    status, _ = await desk.read(request, name, readings.described)
    listed, head = await desk.read(request, name, readings.requests)
    name, found = status["name"], listed[::-1]
    waiting = [one["request"] for one in found if one["state"] in ("open", "approved")]
    number = number if number is not None else (waiting[-1] if waiting else None)
    shown = next((one for one in found if one["request"] == number), None)
    plan = problem = None
    if shown is not None and shown["state"] in ("open", "approved") and shown["what"] in ("forget", "erase"):
        is_erasure = shown["what"] == "erase"
        asked = {"where": shown["where"]} if shown["where"] else {"ids": shown["ids"]}
        how = {"all_quotes": True, "reason": shown["why"]} if is_erasure else {}
        try:
            plan = await desk.ask(request, name, "rehearse" if is_erasure else "what if", **asked, **how)
        except (ProblemError, StrikeoutError) as error:
            problem = problem_of(error).sentence
    return page(
        request, "requests.html", tab="requests", name=name, head=head, book=status, requests=found, shown=shown,
        found=plan, problem=problem,
    )  # fmt: skip


@router.get("/books/{name}/quotes")
async def quotes(
    request: Request, name: str, where: Text = None, state: State = "all", id: Short = None, cursor: Short = None
) -> Response:
    """List quotes with facets; struck-out ones are struck through."""
    desk, problem = desk_of(request), None
    status, head = await desk.read(request, name, readings.described)
    asked = f"id = {literal(id)}" if id else where or None
    found: dict[str, Any] = {"quotes": [], "columns": [], "total": 0, "cursor": None}
    try:
        found = await desk.ask(request, name, "quotes", where=asked, state=state, limit=ROWS, cursor=cursor or None)
    except ProblemError as error:
        problem = error.problem.sentence
    facets = (await desk.ask(request, name, "facets"))["facets"]
    return page(
        request, "quotes.html", tab="quotes", name=status["name"], head=head, book=status, where=where or "",
        state=state, id=id, facets=facets, asked=asked or "", found=found, problem=problem,
        decimals={column: places([row[column] for row in found["quotes"]]) for column in numeric(found["quotes"])},
    )  # fmt: skip


@router.get("/books/{name}/quotes.{ending}")
async def quote_files(
    request: Request, name: str, ending: Literal["csv", "json"], where: Text = None, state: State = "all"
) -> Response:
    """Return the quotes of a page in full as CSV or JSON."""
    kind = CSV if ending == "csv" else JSON
    found = await desk_of(request).ask(request, name, "quote file", kind=kind, where=where or None, state=state)
    headers = {"content-disposition": f'attachment; filename="quotes.{ending}"'}
    return Response(b64decode(found["body"]), media_type=kind, headers=headers)


@router.get("/books/{name}/audit")
async def audit(request: Request, name: str, verify: bool = False) -> Response:
    """Show the ledger as a timeline, certificates, and on request the check of the whole book."""
    desk = desk_of(request)
    status, _ = await desk.read(request, name, readings.described)
    entries, head = await desk.read(request, name, readings.timeline, action=Action.VERIFY)
    name = status["name"]
    checked = await desk.ask(request, name, "verify") if verify else None
    return page(request, "audit.html", tab="audit", name=name, head=head, book=status, entries=entries, checked=checked)


@router.get("/books/{name}/compare")
async def compare(
    request: Request,
    name: str,
    other: Short = None,
    first: int | None = None,
    second: int | None = None,
    date: Short = None,
    view: Literal["smiles", "difference"] = "smiles",
) -> Response:
    """Compare two versions of a book, or two books: parameters, and their curves over the quotes of a date."""
    desk = desk_of(request)
    status, _ = await desk.read(request, name, readings.described)
    history, head = await desk.read(request, name, readings.versions)
    name, stages = status["name"], history["stages"]
    found = problem = None
    drawn: dict[str, Any] = {}
    asked: dict[str, Any] = {}
    try:
        if other:
            asked = {"other": str(desk.library.path(other))}
            found = {**await desk.ask(request, name, "compare", **asked), "names": [name, other]}
        elif len(stages) > 1:
            entries = {stage["entry"]: stage for stage in stages}
            pair = [entries.get(first or stages[-2]["entry"]), entries.get(second or stages[-1]["entry"])]
            if None in pair:
                raise NoSuchPageError("The book has no such calibration.", entries=list(entries))
            found = _versions(*pair)  # type: ignore[arg-type]
            asked = {"first": found["entries"][0], "second": found["entries"][1]}
    except (ProblemError, StrikeoutError) as error:
        problem = problem_of(error).sentence
    if found is not None:
        try:
            drawn = await desk.ask(request, name, "curves", date=date, difference=view == "difference", **asked)
        except ProblemError as error:
            drawn = {"refusal": error.problem.sentence}
    others = [one for one in desk.library.paths() if one != name]
    return page(
        request, "compare.html", tab="compare", name=name, head=head, book=status, stages=stages, found=found,
        problem=problem, others=others, other=other or "", drawn=drawn, view=view,
        query={"other": other, "first": asked.get("first"), "second": asked.get("second"), "date": drawn.get("date")},
    )  # fmt: skip


def _versions(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    shared = [name for name in one["parameters"] if name in two["parameters"]]
    errors = {name: two["standard_errors"].get(name) or 0.0 for name in shared}
    before, after = ({name: stage["parameters"][name] for name in shared} for stage in (one, two))
    return {
        "names": [f"entry {one['entry']}, {one['what']}", f"entry {two['entry']}, {two['what']}"],
        "entries": [one["entry"], two["entry"]],
        "counts": [one["count"], two["count"]],
        "parameters": {name: [before[name], after[name]] for name in shared},
        "apart": moved(before, after, errors),
        "rmse": [one["rmse"], two["rmse"]],
        "same_parameters": one["parameters"] == two["parameters"],
        "same_state": None,
    }


@router.get("/books/{name}/drift")
async def drift(request: Request, name: str) -> Response:
    """Show parameters over versions and dates, with bands and the strike-outs."""
    desk = desk_of(request)
    status, head = await desk.read(request, name, readings.described)
    found = await desk.ask(request, status["name"], "drift")
    return page(request, "drift.html", tab="drift", name=status["name"], head=head, book=status, found=found)


@router.get("/books/{name}/erase")
async def erase(
    request: Request, name: str, where: Text = None, code: Short = None, text: Short = None, ticket: Short = None,
    all_quotes: bool = False,
) -> Response:  # fmt: skip
    """Show what an erasure will and will not remove, then the form that does it."""
    desk = desk_of(request)
    status, head = await desk.read(request, name, readings.described)
    name, found, problem = status["name"], None, None
    reason = {"code": code, "text": text or "", "ticket": ticket or ""} if code else None
    if where:
        try:
            found = await desk.ask(request, name, "rehearse", where=where, all_quotes=all_quotes, reason=reason)
            head = found["head"]
        except (ProblemError, StrikeoutError) as error:
            problem = problem_of(error).sentence
    return page(
        request, "erase.html", tab="erase", name=name, head=head, book=status, found=found, problem=problem,
        where=where or "", reason=reason, all_quotes=all_quotes,
    )  # fmt: skip


@router.get("/books/{name}/import")
async def import_page(request: Request, name: str) -> Response:
    """Show the form for a file of quotes."""
    status, head = await desk_of(request).read(request, name, readings.described)
    return page(
        request, "import.html", tab="import", name=status["name"], head=head, found=None, held="", file="", fields={}
    )


@router.get("/books/{name}/jobs/{job}")
async def job_page(request: Request, name: str, job: str) -> Response:
    """Show how far a change is, then its result or why it failed."""
    desk = desk_of(request)
    status, head = await desk.read(request, name, readings.described)
    found = desk.jobs.get(job)
    if found.task.book != status["name"]:
        raise NoSuchPageError("There is no such job of this book.")
    facts = {**found.to_dict(), "is_over": found.is_over, "arguments": found.task.arguments}
    return page(request, "job.html", tab="", name=status["name"], head=head, book=status, job=facts)


@router.get("/books/{name}/jobs/{job}/quarantine.csv")
async def quarantine(request: Request, name: str, job: str) -> Response:
    """Return the bad rows of an import as CSV, each with its problem."""
    desk = desk_of(request)
    desk.person(request).check(Action.CHANGE)
    found = desk.jobs.get(job)
    if found.task.book != desk.library.path(name).stem or not (found.result or {}).get("quarantine"):
        raise NoSuchPageError("This job has no bad rows.")
    headers = {"content-disposition": 'attachment; filename="quarantine.csv"'}
    return Response(found.answer()["quarantine"], media_type="text/csv", headers=headers)


@router.get("/books/{name}/evidence")
async def evidence(request: Request, name: str, number: int | None = None) -> Response:
    """Return the printable page on removals: who, when, why, what, proof of inclusion, and the check of the book."""
    desk = desk_of(request)
    found = await desk.ask(request, name, "evidence", number=number)
    return evidence_answer(found["page"])


@dataclass(frozen=True)
class Pair:
    """What curves compare: the book with another one, or two of its calibrations."""

    other: Short = None
    first: int | None = None
    second: int | None = None


@router.get("/books/{name}/tables/{kind}.{ending}")
async def tables(
    request: Request,
    name: str,
    kind: Literal["influence", "smiles", "residuals", "curves", "history", "log", "requests"],
    ending: Literal["csv", "json"],
    pair: Annotated[Pair, Depends()],
    by: Short = None,
    parameter: Short = None,
    date: Short = None,
) -> Response:  # fmt: skip
    """Return a table of a page in full as CSV or JSON."""
    desk = desk_of(request)
    if kind == "curves":
        of = (
            {"other": str(desk.library.path(pair.other))}
            if pair.other
            else {"first": pair.first, "second": pair.second}
        )
        found = await desk.ask(request, name, "curves", date=date, **of)
        csv, records = found["csv"], found["records"]
    elif kind in ("influence", "smiles", "residuals"):
        found = await desk.ask(request, name, "picture", kind=kind, by=by or None, parameter=parameter, date=date)
        csv, records = found["csv"], found["records"]
    else:
        table, _ = await desk.read(request, name, readings.table, kind)
        csv, records = table.to_text("csv"), table.records()
    body = csv if ending == "csv" else json.dumps(records)
    headers = {"content-disposition": f'attachment; filename="{kind}.{ending}"'}
    return Response(body, media_type=CSV if ending == "csv" else JSON, headers=headers)
