"""Problems as pages, for requests of a browser."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from strikeout.errors import SignInError, StrikeoutError
from strikeout.service.pages.site import address, desk_of, page, see
from strikeout.service.problems import Problem

OF_PROGRAMS = ("/v1/", "/metrics", "/livez", "/readyz", "/openapi.json")


def wants_page(request: Request) -> bool:
    """Return whether a request is of a browser that shows a page."""
    is_page = not request.url.path.startswith(OF_PROGRAMS)
    return is_page and "text/html" in request.headers.get("accept", "")


def problem_page(request: Request, problem: Problem) -> Response:
    """Return a problem as a page; a person who must sign in first is sent there."""
    is_signed_out = problem.code == SignInError.code and desk_of(request).people.anonymous is None
    if is_signed_out and request.method == "GET":
        then = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return see(address("sign-in", then=then))
    if getattr(request.state, "person", None) is None:
        try:
            desk_of(request).person(request)
        except StrikeoutError:
            request.state.person = None
    return page(request, "problem.html", code=problem.status, problem=problem)
