"""Templates, static files and the answer of a page."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import floor, isfinite, log10
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from strikeout.errors import NoSuchPageError, SignInError, StrikeoutError
from strikeout.models.named import MODELS
from strikeout.service.desk import Desk
from strikeout.service.people import Action, Person
from strikeout.service.problems import Problem
from strikeout.service.sessions import COOKIE, Session, named_for
from strikeout.statistics.losses import NAMES
from strikeout.store.entry import ReasonCode, counts_in_words
from strikeout.text import many, printable

HERE = Path(__file__).parent
TYPES = {
    "style.css": "text/css; charset=utf-8",
    "script.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
PAGES = (
    ("", "Book"),
    ("what-if", "What if"),
    ("requests", "Requests"),
    ("quotes", "Quotes"),
    ("audit", "Audit"),
    ("compare", "Compare"),
    ("drift", "Drift"),
    ("import", "Import"),
    ("erase", "Erase"),
)


@cache
def static() -> dict[str, bytes]:
    """Return the static files by name: our own and those of drawings, joined so that a page loads two."""
    ours, drawings = HERE / "static", files("strikeout").joinpath("plots")
    return {
        "style.css": (drawings.joinpath("drawing.css").read_text("utf-8") + (ours / "page.css").read_text()).encode(),
        "script.js": (drawings.joinpath("drawing.js").read_text("utf-8") + (ours / "page.js").read_text()).encode(),
        "icon.svg": (ours / "icon.svg").read_bytes(),
    }


@cache
def release() -> str:
    """Return a digest of the static files; it is part of their address, so that a browser may keep them for ever."""
    return sha256(b"".join(static().values())).hexdigest()[:12]


def static_file(digest: str, name: str) -> Response:
    """Return a static file.

    Raises:
        NoSuchPageError: there is no such file.
    """
    if name not in static():
        raise NoSuchPageError("There is no such file.")
    lasting = "public, max-age=31536000, immutable" if digest == release() else "no-store"
    return Response(static()[name], media_type=TYPES[name], headers={"cache-control": lasting})


def address(*parts: object, **query: object) -> str:
    """Return an address of this site; what is None or empty is left out of the query.

    >>> address("books", "a b", "quotes", where="x = 1", id=None)
    '/books/a%20b/quotes?where=x+%3D+1'
    """
    path = "/" + "/".join(quote(str(part), safe="") for part in parts if part != "")
    asked = {name.rstrip("_"): value for name, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(asked)}" if asked else path


def number(value: Any, form: str = ".6g") -> str:
    """Return a number for people, a dash if there is none."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return "–"
    return format(value, form).replace("-", "\N{MINUS SIGN}")


def numeric(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns of a table that hold numbers, in every row that has a value."""
    kinds = {name: {type(row[name]) for row in rows} - {type(None)} for name in (rows[0] if rows else ())}
    return [name for name, found in kinds.items() if found and found <= {int, float} and name != "struck_by"]


def places(values: Sequence[float | None]) -> int:
    """Return how many decimals a column of numbers is shown with: five digits of a usual one, so that points align.

    >>> places([0.0194379, 4.81714, 20.1262]), places([90.0, 110.0]), places([0.998812, 1.0])
    (4, 0, 4)
    """
    known = [abs(value) for value in values if value is not None and isfinite(value)]
    usual = sorted(known)[len(known) // 2] if known else 0.0
    most = 0 if all(value == int(value) for value in known) else 4 - floor(log10(usual)) if usual > 0.0 else 4
    return min(max(most, 0), 6)


def signed(value: Any) -> str:
    """Return a move in standard errors."""
    if value is None:
        return "–"
    return number(value, "+,.0f") if abs(value) >= 100 else number(value, "+.3g")


def moment(text: str) -> str:
    """Return a time for people: day, hour and minute, in UTC."""
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M")


@cache
def templates() -> Environment:
    """Return the templates; every value in them is escaped."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "number": number,
        "signed": signed,
        "when": moment,
        "plain": printable,
        "in_words": counts_in_words,
        "twice": lambda value: (value, value),
    }
    reasons = [code.value for code in ReasonCode]
    found.globals |= {
        "address": address,
        "many": many,
        "pages": PAGES,
        "reasons": reasons,
        "losses": NAMES,
        "models": list(MODELS),
    }
    return found


def desk_of(request: Request) -> Desk:
    """Return the desk that answers a request."""
    desk: Desk = request.app.state.desk
    return desk


def page(request: Request, template: str, *, code: int = 200, **context: Any) -> Response:
    """Return a page, with a session for its forms if the browser has none yet."""
    desk = desk_of(request)
    session = desk.session(request)
    is_new = session is None and desk.people.anonymous is not None
    if is_new:
        session = desk.sessions.begin("")
    person: Person | None = getattr(request.state, "person", None)
    text = (
        templates()
        .get_template(template)
        .render(
            here=request.url.path,
            person=person,
            may=lambda action: person is not None and person.may(Action(action)),
            form_token="" if session is None else desk.sessions.form_token(session),
            new_key=lambda: secrets.token_hex(16),
            can_sign_out=desk.people.anonymous is None,
            static=lambda name: f"/static/{release()}/{name}",
            json=json.dumps,
            **context,
        )
    )
    answer = HTMLResponse(text, code)
    if is_new and session is not None:
        set_session(request, answer, session)
    return answer


def set_session(request: Request, answer: Response, session: Session) -> None:
    """Add the cookie of a session to an answer."""
    is_https = request.url.scheme == "https"
    cookie = desk_of(request).sessions.seal(session)
    name = named_for(COOKIE, request.scope.get("server"))
    answer.set_cookie(name, cookie, httponly=True, samesite="lax", secure=is_https, path="/")


def evidence_answer(text: str) -> Response:
    """Return a printable page: one file with its style inside, without script, that works offline and loads nothing."""
    protected = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    return Response(text, media_type="text/html", headers={"content-security-policy": protected})


def see(where: str) -> Response:
    """Return an answer that sends the browser to another page of this site."""
    return RedirectResponse(where, 303)


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
