"""Sign in with an OpenID Connect provider: to the provider, and back."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from strikeout.errors import NoSuchPageError, SignInError
from strikeout.service.oidc import PATIENCE, Oidc
from strikeout.service.pages.forms import own_address
from strikeout.service.pages.site import desk_of, see, set_session
from strikeout.service.sessions import named_for

router = APIRouter(include_in_schema=False)
STATE = "strikeout_sign_in"  # the cookie that ties the two steps to one browser


def provider_of(request: Request) -> Oidc:
    """Return the provider of this server.

    Raises:
        NoSuchPageError: people sign in with tokens here, or not at all.
    """
    people = desk_of(request).people
    if not isinstance(people, Oidc):
        raise NoSuchPageError("There is no sign-in with a provider here.")
    return people


@router.get("/sign-in/provider")
async def to_provider(request: Request, then: str = "/") -> Response:
    """Send a browser to the provider."""
    people = provider_of(request)
    place, state = people.begin(own_address(then))
    answer = see(place)
    is_https = people.provider.address.startswith("https:")
    # Lax: the browser comes back from another site, and must bring this cookie.
    answer.set_cookie(
        named_for(STATE, request.scope.get("server")),
        state,
        max_age=int(PATIENCE),
        httponly=True,
        samesite="lax",
        secure=is_https,
        path="/sign-in",
    )
    return answer


@router.get("/sign-in/callback")
async def from_provider(request: Request, state: str = "", code: str = "", error: str = "") -> Response:
    """Begin the session of a browser that the provider sends back."""
    people, desk = provider_of(request), desk_of(request)
    client = "" if request.client is None else request.client.host
    desk.sign_ins.check(client)
    if error or not code:
        raise SignInError("The provider did not sign you in.")
    try:
        proof, then = await run_in_threadpool(
            people.finish, state, request.cookies.get(named_for(STATE, request.scope.get("server"))), code
        )
    except SignInError:
        desk.sign_ins.failed(client)
        raise
    answer = see(then)
    set_session(request, answer, desk.sessions.begin(proof))
    answer.delete_cookie(named_for(STATE, request.scope.get("server")), path="/sign-in")
    return answer
