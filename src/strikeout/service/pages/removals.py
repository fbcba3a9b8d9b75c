"""The page of removals from all books of the folder, with the functions of ``strikeout fleet``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from strikeout.book.folder import FolderOutcome, approve_in_folder, evidence_of_folder, remove_in_folder
from strikeout.errors import MovedHeadError, StrikeoutError, UsageError
from strikeout.plots.page import evidence_page
from strikeout.service import readings
from strikeout.service.desk import Desk
from strikeout.service.pages.forms import Fields, fields_of, own_form, reason_in
from strikeout.service.pages.site import desk_of, evidence_answer, page
from strikeout.service.people import Action
from strikeout.service.problems import problem_of
from strikeout.service.verbs import reason_of

router = APIRouter(include_in_schema=False)
Found = TypeVar("Found")
Text = Annotated[str | None, Query(max_length=20_000)]
Short = Annotated[str | None, Query(max_length=300)]
PERMITS = {"forget": Action.CHANGE, "erase": Action.ERASE}


async def state_of(desk: Desk) -> str:
    """Return a digest of the heads of all books: a plan is done for the books as they were shown."""
    digest = sha256()
    for name, path in desk.library.paths().items():
        try:
            _, head = await desk.jobs.findings.read(path, readings.described)
        except StrikeoutError:
            head = ""  # a book that cannot be opened has a row of its own in the plan
        digest.update(f"{name} {head}\n".encode())
    return digest.hexdigest()


async def _work(function: Callable[[], Found]) -> Found:
    return await run_in_threadpool(function)


@router.get("/removals")
async def removals(
    request: Request, what: Literal["forget", "erase"] = "forget", where: Text = None, ticket: Short = None
) -> Response:
    """Show what striking matching quotes out of every book does, or erasing them; nothing is changed."""
    desk = desk_of(request)
    person = desk.person(request)
    person.check(Action.READ)
    found, problem, state = None, None, ""
    if where:
        try:
            state = await state_of(desk)
            found = await _work(
                partial(remove_in_folder, desk.library.folder, what, where=where, who=person.name, is_plan=True)
            )
        except StrikeoutError as error:
            problem = problem_of(error).sentence
    return _shown(request, found, what=what, where=where, ticket=ticket, state=state, problem=problem)


@router.post("/removals/do")
async def do(request: Request) -> Response:
    """Carry the removal out in every book, or ask for the approvals that it needs."""
    desk, form = await own_form(request)
    fields = fields_of(form)
    what = fields.get("what", "forget")
    if what not in PERMITS:
        raise UsageError(f"what: expected {' or '.join(PERMITS)}, got {what!r}.")
    person = desk.person(request)
    person.check(PERMITS[what])
    if what == "erase" and fields.get("confirm") != desk.library.folder.name:
        raise UsageError("To erase, repeat the name of the folder exactly. Nothing was erased.")
    if fields.get("state") != await state_of(desk):
        raise MovedHeadError("A book has changed since you looked at the plan. Look again, then decide.")
    where, reason = fields.get("where", ""), reason_of(reason_in(fields))
    found = await _work(
        partial(remove_in_folder, desk.library.folder, what, where=where, reason=reason, who=person.name, is_plan=False)  # type: ignore[arg-type]
    )
    if what == "erase":
        for book in found.books:
            await desk.jobs.drop_results(str(desk.library.path(book.name)))
    return _shown(request, found, what=what, where=where, ticket=fields.get("ticket"), is_done=True)


@router.post("/removals/approve")
async def approve(request: Request) -> Response:
    """Approve the open requests with one ticket in every book."""
    desk, form = await own_form(request)
    fields: Fields = fields_of(form)
    person = desk.person(request)
    person.check(Action.DECIDE)
    ticket, reason = fields.get("ticket", ""), reason_of(reason_in(fields))
    found = await _work(partial(approve_in_folder, desk.library.folder, ticket, reason=reason, who=person.name))
    return _shown(request, found, ticket=ticket, is_done=True)


@router.get("/removals/evidence")
async def evidence(request: Request, ticket: Short = None) -> Response:
    """Return one printable page on the removals of all books, or on those with a ticket."""
    desk = desk_of(request)
    person = desk.person(request)
    person.check(Action.VERIFY)
    facts = await _work(partial(evidence_of_folder, desk.library.folder, ticket=ticket or None, who=person.name))
    return evidence_answer(evidence_page(*facts))


def _shown(
    request: Request,
    found: FolderOutcome | None,
    *,
    what: str = "forget",
    where: str | None = None,
    ticket: str | None = None,
    **more: Any,
) -> Response:
    context = {"is_done": False, "problem": None, "state": "", **more}
    return page(
        request, "removals.html", folder=desk_of(request).library.folder.name, found=found, what=what,
        where=where or "", ticket=ticket or "", **context,
    )  # fmt: skip
