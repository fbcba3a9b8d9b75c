"""The interface for programs: routes that change a book, as jobs, and the jobs themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from strikeout.errors import RoleError, UsageError
from strikeout.service import schemas
from strikeout.service.api import COMMON, NUMBER, TAG, Name, Number, answered, desk_of, problems
from strikeout.service.desk import Desk
from strikeout.service.jobs import Job
from strikeout.service.people import Action, Role
from strikeout.service.problems import ExactJSON, with_head
from strikeout.service.schemas import JobShown
from strikeout.service.uploads import receive


class Stream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


JobNumber = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The number of a job.")]


@dataclass(frozen=True)
class Terms:
    """On which terms a change is made: for which head, under which key, and whether its end is waited for."""

    head: str | None
    key: str | None
    is_async: bool


async def terms_of(
    if_match: Annotated[
        str | None, Header(description="Required: the ETag of the book for which the change was decided.")
    ] = None,
    idempotency_key: Annotated[
        str | None, Header(description="The same key and request get the same answer once more.")
    ] = None,
    prefer: Annotated[str | None, Header(description="respond-async: answer 202 at once, with a job.")] = None,
) -> Terms:
    """Return the terms in the headers of a request. ``*`` as If-Match names no state of the book, so it is none."""
    head = None if if_match is None or if_match.strip() in ("", "*") else if_match.strip().removeprefix("W/").strip('"')
    return Terms(head, idempotency_key, "respond-async" in [part.strip() for part in (prefer or "").lower().split(",")])


Asked = Annotated[Terms, Depends(terms_of)]


def reading_of(
    source: Annotated[str | None, Query(max_length=200, description="The source, if the file has none.")] = None,
    profile: Annotated[str | None, Query(pattern="^[a-z0-9-]+$", max_length=100, description="The layout.")] = None,
    rate: Annotated[float | None, Query(ge=-1.0, le=1.0, description="Per year, if the file has no rate.")] = None,
    exercise: Annotated[
        Literal["auto", "american", "european"], Query(description="The rows whose American prices are converted.")
    ] = "auto",
    max_reject: Annotated[float | None, Query(ge=0.0, le=1.0, description="The share of bad rows allowed.")] = None,
) -> dict[str, Any]:
    """Return how an uploaded file is to be read."""
    return {"source": source, "profile": profile, "rate": rate, "exercise": exercise, "max_reject": max_reject}


Reading = Annotated[dict[str, Any], Depends(reading_of)]


router = APIRouter(prefix="/v1", dependencies=COMMON)
REPLAYED = {
    "Idempotency-Replayed": {"description": "It is the answer to an earlier request.", "schema": {"type": "string"}}
}


def changed(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """Return how the answers of a route that changes a book are described."""
    place = {"Location": {"description": "The address of the job.", "schema": {"type": "string"}}}
    later = {"model": JobShown, "description": "The job is not over.", "headers": {**NUMBER, **REPLAYED, **place}}
    return {
        200: {"model": model, "headers": {**NUMBER, **TAG, **REPLAYED}},
        202: later,
        **problems(400, 401, 403, 404, 409, 412, 413, 422, 428, 500),
    }


async def change(request: Request, name: str, verb: str, asked: Terms, **arguments: Any) -> Response:
    """Start a change as a job, and answer with its result, or with 202 if it takes long or that is preferred."""
    desk = desk_of(request)
    job, is_replayed = desk.change(request, name, verb, head=asked.head, key=asked.key, **arguments)
    return await answer(desk, job, asked, is_replayed=is_replayed)


async def answer(desk: Desk, job: Job, asked: Terms, *, is_replayed: bool) -> Response:
    """Return the result of a job, or 202 if it takes long or that is preferred.

    Raises:
        ProblemError: the job failed.
    """
    await desk.jobs.wait(job, 0.0 if asked.is_async else desk.wait)
    if job.is_over and not asked.is_async:
        done = with_head(job.answer(), job.head or "")
    else:
        done = ExactJSON(job.to_dict(), 202, {"location": f"/v1/jobs/{job.number}"})
    if is_replayed:
        done.headers["idempotency-replayed"] = "true"
    return done


@router.post("/books/{name}/forget", summary="Strike quotes out", responses=changed(schemas.ChangeDone))
async def forget(request: Request, name: Name, body: schemas.ForgetBody, asked: Asked) -> Response:
    """Strike quotes out, as if they had never been seen; answers with parameters before and after, and claims."""
    return await change(request, name, "forget", asked, **body.model_dump())


@router.post("/books/{name}/restore", summary="Bring quotes back", responses=changed(schemas.ChangeDone))
async def restore(request: Request, name: Name, body: schemas.RestoreBody, asked: Asked) -> Response:
    """Bring the quotes of a forget back, as if it had never been."""
    return await change(request, name, "restore", asked, **body.model_dump())


@router.post("/books/{name}/calibrations", summary="Calibrate a book", responses=changed(schemas.ChangeDone))
async def calibrate(request: Request, name: Name, body: schemas.CalibrateBody, asked: Asked) -> Response:
    """Calibrate the quotes that the book holds. ``"panel": null`` asks for one latent parameter for all dates."""
    given = body.model_dump(exclude_unset=True)
    settings = {setting: value for setting, value in given.items() if value is not None or setting == "panel"}
    return await change(request, name, "calibrate", asked, **settings)


@router.post("/books/{name}/erasures", summary="Erase quotes, or rehearse it", responses=changed(schemas.ErasureDone))
async def erase(request: Request, name: Name, body: schemas.EraseBody, asked: Asked) -> Response:
    """Return what an erasure would remove and what it cannot; with ``confirm``, the name of the book, do it."""
    given = body.model_dump(exclude={"confirm"})
    if body.confirm is None:
        found = await desk_of(request).ask(request, name, "rehearse", **given)
        return with_head(found, found["head"])
    check_confirmation(body.confirm, name)
    return await change(request, name, "erase", asked, **given)


def check_confirmation(confirm: str, name: str) -> None:
    """Raise UsageError unless the name of the book was repeated."""
    if confirm != name.removesuffix(".book"):
        raise UsageError("To erase, repeat the name of the book exactly. Nothing was erased.")


@router.post("/books/{name}/requests", summary="Request a removal", responses=changed(schemas.RequestShown))
async def request_removal(request: Request, name: Name, body: schemas.RequestBody, asked: Asked) -> Response:
    """Ask that quotes be struck out or erased; another person approves or rejects it."""
    return await change(request, name, "request", asked, **body.model_dump())


@router.post(
    "/books/{name}/requests/{number}/{decision}", summary="Decide or do a request", responses=changed(schemas.Answer)
)
async def decide(
    request: Request,
    name: Name,
    number: Number,
    decision: Literal["approve", "reject", "withdraw", "carry-out"],
    body: schemas.DecisionBody,
    asked: Asked,
) -> Response:
    """Approve or reject the request of another person, withdraw one's own, or carry out one that was approved."""
    how: dict[str, Any] = {"number": number}
    if decision != "carry-out":
        how["reason"] = None if body.reason is None else body.reason.model_dump()
    verb = decision.replace("-", " ")
    return await change(request, name, verb, asked, **how)


@router.post(
    "/books/{name}/imports",
    summary="Import a file of quotes",
    responses=changed(schemas.ImportDone),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def import_file(
    request: Request,
    name: Name,
    asked: Asked,
    file: Annotated[str, Query(max_length=300, description="The name of the file; its ending is the format.")],
    reading: Reading,
    dry_run: Annotated[bool, Query(description="Only report how the file is read.")] = False,
) -> Response:
    """Add the quotes of the file in the body. Bad rows are returned as CSV in ``quarantine``, each with its problem."""
    desk = desk_of(request)
    desk.person(request).check(Action.CHANGE)
    desk.library.path(name)
    upload = await receive(file, request.stream(), desk.library.folder)
    how = {"file": str(upload.path), **reading}
    if dry_run:
        try:
            found = await desk.ask(request, name, "inspect", **how)
        finally:
            upload.remove()
        return with_head(found, found["head"])
    started = False
    try:
        job, is_replayed = desk.change(
            request, name, "import", head=asked.head, key=asked.key, then=upload.remove, digest=upload.digest, **how
        )
        started = True
    finally:
        if not started:
            upload.remove()
    return await answer(desk, job, asked, is_replayed=is_replayed)


@router.get(
    "/jobs/{job}",
    summary="Show a job",
    responses={200: answered(JobShown, is_tagged=False), **problems(400, 401, 403, 404, 422, 500)},
)
async def show_job(request: Request, job: JobNumber) -> Response:
    """Return the state of a job: queued, running, done, failed or cancelled; its progress, result or problem."""
    return ExactJSON(_job(request, job).to_dict())


@router.get(
    "/jobs/{job}/events",
    summary="Watch a job",
    response_class=Stream,
    responses={
        200: answered(is_tagged=False, content={Stream.media_type: {"schema": schemas.EVENT}}),
        **problems(400, 401, 403, 404, 422, 500),
    },
)
async def watch_job(request: Request, job: JobNumber) -> Response:
    """Send an event after every change of a job, until it is over; the last event is called ``over``."""
    desk, found = desk_of(request), _job(request, job)

    async def events() -> AsyncIterator[str]:
        async for facts in desk.jobs.watch(found):
            shown = {name: facts[name] for name in ("job", "verb", "state", "progress", "seconds")}
            kind = "over" if found.is_over else "progress"
            yield f"event: {kind}\ndata: {json.dumps(shown)}\n\n"

    return Stream(events())


@router.delete(
    "/jobs/{job}",
    summary="Cancel a job",
    responses={200: answered(JobShown, is_tagged=False), **problems(400, 401, 403, 404, 422, 500)},
)
async def cancel_job(request: Request, job: JobNumber) -> Response:
    """Cancel a job that is not over. A change that was not committed is undone as a whole."""
    desk, found = desk_of(request), _job(request, job)
    person = desk.person(request)
    if person.name != found.task.who and person.role is not Role.ADMIN:
        raise RoleError(f"The job is of {found.task.who}: only that person or an admin cancels it.")
    desk.jobs.cancel(found)
    await desk.jobs.wait(found, desk.wait)
    return ExactJSON(found.to_dict())


def _job(request: Request, number: str) -> Job:
    desk = desk_of(request)
    desk.person(request).check(Action.READ)
    found = desk.jobs.get(number)
    request.state.book = found.task.book
    return found
