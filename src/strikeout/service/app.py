"""The application: routes, errors as problems, limits, and the headers that protect a browser."""

from __future__ import annotations

import asyncio
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import IO, Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse

from strikeout import __version__
from strikeout.errors import NoSuchPageError, StrikeoutError, UsageError
from strikeout.service import api, changes, readings
from strikeout.service.access_log import AccessLog
from strikeout.service.desk import Desk
from strikeout.service.library import Library
from strikeout.service.limits import LOOPBACK, Limits
from strikeout.service.pages import forms, oidc_sign_in, removals, views
from strikeout.service.pages.site import problem_page, wants_page
from strikeout.service.people import Action, Authentication
from strikeout.service.problems import INTERNAL, ExactJSON, Problem, ProblemError, problem_of, problem_response
from strikeout.service.uploads import remove_left_uploads


def create_app(desk: Desk, *, hosts: Sequence[str] = LOOPBACK, log: IO[str] | None = None) -> FastAPI:
    """Return the application for a desk.

    Args:
        hosts: names by which the server may be addressed.
        log: where the access log is written; standard error by default.
    """

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        remove_left_uploads(desk.library.folder)
        starting = asyncio.create_task(desk.jobs.questions.start())
        yield
        await asyncio.gather(starting, return_exceptions=True)
        desk.held.remove_all()
        await desk.jobs.close()

    app = FastAPI(
        title="strikeout",
        version=__version__,
        summary="Books of option quotes over HTTP: calibrate, strike quotes out, approve, erase, verify.",
        lifespan=running,
        docs_url=None,  # these pages load their scripts from another host
        redoc_url=None,
        default_response_class=ExactJSON,
        separate_input_output_schemas=False,
    )
    app.state.desk = desk
    app.include_router(api.router)
    app.include_router(changes.router)
    app.include_router(views.router)
    app.include_router(forms.router)
    app.include_router(oidc_sign_in.router)
    app.include_router(removals.router)
    _add_health(app, desk)
    for kind in (StrikeoutError, ProblemError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _answer_error)
    app.add_exception_handler(Exception, _answer_defect)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=6)
    app.add_middleware(Limits, uploads=desk.uploads, hosts=hosts)
    app.add_middleware(AccessLog, stream=log)
    return app


def _add_health(app: FastAPI, desk: Desk) -> None:
    @app.get("/livez", summary="Report that the server runs")
    async def livez() -> dict[str, Any]:
        """Answer at once."""
        return {"status": "ok", "version": __version__}

    @app.get("/readyz", summary="Report that the server can work")
    async def readyz() -> Response:
        """Answer 200 if the folder of books can be read and a worker process has started, else 503."""
        has_folder, has_worker = desk.library.folder.is_dir(), desk.jobs.questions.is_ready
        status = "no folder" if not has_folder else "ok" if has_worker else "starting"
        return ExactJSON({"status": status}, 200 if status == "ok" else 503)

    @app.get("/metrics", summary="Report counts and times", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Return the metrics of the server and its books for Prometheus."""
        desk.person(request).check(Action.OPERATE)
        books, broken = {}, 0
        for name, path in desk.library.paths().items():
            try:
                books[name], _ = await desk.jobs.findings.read(path, readings.measured)
            except StrikeoutError:
                broken += 1
        return Response(desk.jobs.metrics.expose(books, broken=broken), media_type=CONTENT_TYPE_LATEST)


async def _answer_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        known = NoSuchPageError("There is nothing at this address. GET /openapi.json lists the routes.")
        is_unknown = error.status_code == 404
        other = Problem("method" if error.status_code == 405 else "http", error.status_code, str(error.detail))
        shown = problem_of(known) if is_unknown else other
        return problem_page(request, shown) if wants_page(request) else problem_response(shown, headers=error.headers)
    problem = _invalid(error) if isinstance(error, RequestValidationError) else problem_of(error)
    desk: Desk = request.app.state.desk
    desk.jobs.metrics.refused(problem.code)
    return problem_page(request, problem) if wants_page(request) else problem_response(problem)


def _invalid(error: RequestValidationError) -> Problem:
    """Return which members of a request are not as they should be; their values are not repeated."""
    members = [".".join(str(part) for part in each["loc"]) for each in error.errors()]
    reasons = [str(each["msg"]) for each in error.errors()]
    listed = "; ".join(f"{member}: {reason}" for member, reason in zip(members, reasons, strict=True))
    return Problem(UsageError.code, 422, f"The request is not as it should be. {listed}", {"members": members})


async def _answer_defect(request: Request, error: Exception) -> Response:  # noqa: ARG001
    traceback.print_exception(error, file=sys.stderr)
    problem = problem_of(error)
    assert problem.code == INTERNAL
    return problem_response(problem)


MOST_CONNECTIONS = 500
KEEP_ALIVE = 5  # seconds that an idle connection stays open


def serve_forever(
    library: Library,
    people: Authentication,
    *,
    host: str,
    port: int,
    hosts: Sequence[str],
    workers: int = 2,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the books of a folder until Ctrl-C or SIGTERM.

    Args:
        port: 0 for a free one.
        hosts: names by which the server may be addressed.
        workers: processes for long work.
        ready: called with the address as soon as requests are accepted.

    Raises:
        UsageError: the address cannot be listened at.
    """
    place = host.strip("[]")
    bound = socket.socket(socket.AF_INET6 if ":" in place else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((place, port))
    except OSError as error:
        bound.close()
        raise UsageError(f"{host}:{port}: cannot listen there ({error.strerror}). Give another --port.") from error
    with bound:
        app = create_app(Desk.of(library, people, workers=workers), hosts=hosts)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=5,
        )
        shown = f"[{place}]" if ":" in place else place
        bound.listen()
        ready(f"http://{shown}:{bound.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[bound])
