"""People of an OpenID Connect provider: code flow with PKCE for browsers, signed tokens (JWT) for programs.

A file in TOML names the provider and who has which role:

    issuer = "https://login.example.org"
    client_id = "strikeout"
    client_secret_file = "/etc/strikeout/client-secret"   # not needed for a public client
    address = "https://desk.example.org"                   # of this server, as browsers see it
    roles_claim = "groups"

    [roles]
    desk-quants = "operator"
    risk = "approver"
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import jwt

from strikeout.errors import SignInError, UsageError
from strikeout.quotes.toml_files import read_toml
from strikeout.service.people import LONGEST_NAME, PERMITTED, Person, Role
from strikeout.text import printable

# Signatures with a key of the provider. None that the client's own secret could make, and not "none".
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
TIMEOUT = 10.0  # seconds for an answer of the provider
WAIT = 2.0  # seconds that a request waits for keys of the provider
BETWEEN_FETCHES = 30.0  # seconds between two fetches of its keys
FRESH_KEYS, OLDEST_KEYS = 300.0, 3600.0  # seconds after which they are fetched again, and no longer used
LARGEST_ANSWER = 1 << 20
LEEWAY = 30  # seconds by which the clocks of the provider and of this server may differ
PATIENCE = 600.0  # seconds from the first step of a sign-in to the last
MOST_KEPT = 10_000  # sessions, names of persons, states that came back
LONGEST_PAGE = 1_000  # letters of the address that a sign-in leads to
SECONDS = 8 * 3600  # of a session
NOT_BEGUN = "This sign-in was not begun in this browser, or is over. Sign in again."
LONGEST_TOKEN = 16_384
MEMBERS = {
    "issuer",
    "client_id",
    "client_secret_file",
    "address",
    "roles_claim",
    "name_claim",
    "audience",
    "scopes",
    "roles",
}


@dataclass(frozen=True)
class Provider:
    """The settings of a provider, as the file gives them."""

    issuer: str
    client_id: str
    address: str
    roles: Mapping[str, Role]
    secret: str = field(default="", repr=False)
    roles_claim: str = "roles"
    name_claim: str = "preferred_username"
    audience: str = ""  # of tokens of programs; the client's id by default
    scopes: str = "openid profile email"

    @staticmethod
    def read(path: Path) -> Provider:
        """Read the file of a provider.

        Raises:
            UsageError: it cannot be read, or a member is missing, unknown or not as it should be.
        """
        given = read_toml(path, "the file of the OIDC provider")
        unknown = sorted(set(given) - MEMBERS)
        if unknown:
            raise UsageError(f"{path.name}: {unknown[0]} is unknown. Members are {', '.join(sorted(MEMBERS))}.")
        missing = [name for name in ("issuer", "client_id", "address", "roles") if not given.get(name)]
        if missing:
            raise UsageError(f"{path.name}: {missing[0]} is missing.")
        for name in ("issuer", "address"):
            _check_address(path.name, name, given[name])
        roles = given.pop("roles")
        if not isinstance(roles, dict) or not set(map(str, roles.values())) <= set(Role):
            raise UsageError(f"{path.name}: [roles] gives each value of the claim one of {', '.join(Role)}.")
        place = given.pop("client_secret_file", None)
        try:
            secret = "" if place is None else Path(path.parent, place).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"{place}: the client secret cannot be read ({error.strerror}).") from error
        texts = {
            name: str(value).rstrip("/") if name in ("issuer", "address") else str(value)
            for name, value in given.items()
        }
        return Provider(roles={str(name): Role(role) for name, role in roles.items()}, secret=secret, **texts)

    @property
    def callback(self) -> str:
        """The address to which the provider sends a browser back."""
        return f"{self.address}/sign-in/callback"


def _check_address(file: str, name: str, given: object) -> None:
    if not given:
        raise UsageError(f"{file}: {name} is missing.")
    parts = urlsplit(str(given))
    is_own = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_own):
        raise UsageError(f"{file}: {name} is {given}; it must begin with https:// (http:// for loopback only).")


class Oidc:
    """The people of a provider. Sessions are kept in memory and end with the server."""

    anonymous: Person | None = None

    def __init__(self, provider: Provider, clock: Callable[[], float] = time.time) -> None:
        """Ask the provider for its addresses and keys.

        Raises:
            UsageError: it does not answer, or under another name.
        """
        self.provider = provider
        self._clock = clock
        place = f"{provider.issuer}/.well-known/openid-configuration"
        found = _fetched(Request(place))
        if str(found.get("issuer", "")).rstrip("/") != provider.issuer:
            raise UsageError(f"{place}: the provider calls itself {printable(str(found.get('issuer')))!r}.")
        # The client's secret and the browsers' codes go to these addresses, and signatures are trusted by the last.
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _check_address(place, name, found.get(name))
        self._authorize, self._exchange = str(found["authorization_endpoint"]), str(found["token_endpoint"])
        self._keys = ProviderKeys(str(found["jwks_uri"]))
        self._secret = secrets.token_bytes(32)
        self._used: dict[str, None] = {}  # states that came back
        self._sessions: dict[str, tuple[Person, float]] = {}
        self._name_of: dict[str, str] = {}  # by subject
        self._subject_of: dict[str, str] = {}  # by name

    # --- programs -------------------------------------------------------------------------------------------------

    def of_token(self, token: str) -> Person | None:
        """Return the person of a signed token; None if it is not valid or names no role of this server."""
        try:
            return self._person(self._claims(token, self.provider.audience or self.provider.client_id))
        except SignInError:
            return None

    def _claims(self, token: str, audience: str, nonce: str | None = None) -> dict[str, Any]:
        """Return the claims of a token of this provider for this server.

        Raises:
            SignInError: the signature, issuer, audience, times or nonce are not as they must be.
        """
        if len(token) > LONGEST_TOKEN:
            raise SignInError("The token is too long.")
        try:
            key = self._key_of(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=audience,
                issuer=[self.provider.issuer, f"{self.provider.issuer}/"],
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise SignInError(
                "The provider's token is not valid for this server.", cause=type(error).__name__
            ) from None
        if nonce is not None and not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise SignInError("The provider's token belongs to another sign-in.")
        return claims

    def _key_of(self, token: str) -> jwt.PyJWK:
        """Return the provider's key for a token: the one that it names, or the only one.

        Raises:
            PyJWTError: there is none, or the provider does not answer.
        """
        name = jwt.get_unverified_header(token).get("kid")
        for refresh in (False, True):  # a provider changes its keys from time to time
            known = [key for key in self._keys.current(refresh=refresh) if key.public_key_use in (None, "sig")]
            fitting = known if name is None and len(known) == 1 else [key for key in known if key.key_id == name]
            if fitting and (name is not None or len(fitting) == 1):
                return fitting[0]
        raise jwt.InvalidKeyError("no key of the provider fits")

    def _person(self, claims: Mapping[str, Any]) -> Person:
        """Return the person of some claims: the name for the ledger, and of their roles the one that permits most.

        Raises:
            SignInError: there is no name that can be written to a ledger, or no role.
        """
        given = claims.get(self.provider.roles_claim, [])
        values = {str(value) for value in (given if isinstance(given, list) else [given])}
        roles = {role for name, role in self.provider.roles.items() if name in values}
        # No other claim in its place: a person with two kinds of tokens would have two names, and approve their own
        # requests.
        name = str(claims.get(self.provider.name_claim) or "")
        if not name.strip() or len(name) > LONGEST_NAME or printable(name) != name:
            raise SignInError(
                f"The provider gives no {self.provider.name_claim} that can be written to a ledger.",
                claim=self.provider.name_claim,
            )
        if not roles:
            raise SignInError("The provider gives you no role on this server. Ask your administrator.")
        self._tie(str(claims["sub"]), name)
        return Person(name, max(roles, key=lambda role: (len(PERMITTED[role]), list(Role).index(role))))

    def _tie(self, subject: str, name: str) -> None:
        """Raise SignInError if the name was another person's on this server, or the person had another name.

        Some providers let people choose their name; two names are two persons for an approval.
        """
        if self._name_of.get(subject, name) != name or self._subject_of.get(name, subject) != subject:
            raise SignInError(
                "The provider gives you another name than before, or the name of another person. Ask your "
                "administrator: names are tied to persons until the server is started again.",
                claim=self.provider.name_claim,
            )
        for known in (self._name_of, self._subject_of):
            _make_room(known)
        self._name_of[subject], self._subject_of[name] = name, subject

    # --- browsers -------------------------------------------------------------------------------------------------

    def begin(self, then: str) -> tuple[str, str]:
        """Begin the sign-in of a browser: return the provider's address to send it to, and the state to keep there.

        The server keeps nothing: what it must recognise is sealed in the state, or follows from the state and a secret.
        """
        page = then if len(then) <= LONGEST_PAGE else "/"
        given = json.dumps([secrets.token_urlsafe(16), self._clock() + PATIENCE, page])
        body = _encoded(given.encode())
        state = f"{body}.{self._derived('seal', body)}"
        nonce, verifier = self._derived("nonce", state), self._derived("verifier", state)
        asked = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": self.provider.callback,
            "scope": self.provider.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": _encoded(sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        mark = "&" if "?" in self._authorize else "?"
        return f"{self._authorize}{mark}{urlencode(asked)}", state

    def finish(self, state: str, kept: str | None, code: str) -> tuple[str, str]:
        """Finish the sign-in of a browser: return the proof of a session, and the page it is for.

        Args:
            state: as the provider sent it back.
            kept: as the browser kept it.
            code: to be exchanged for a token, once.

        Raises:
            SignInError: the answer does not belong to a sign-in of this browser, or the provider refuses it.
        """
        then, until = self._opened(state)
        is_new = state not in self._used
        _make_room(self._used)
        self._used[state] = None
        is_own = kept is not None and hmac.compare_digest(
            kept.encode("utf-8", "replace"), state.encode("utf-8", "replace")
        )
        if not is_new or not is_own or until < self._clock():
            raise SignInError(NOT_BEGUN)
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.provider.callback,
            "client_id": self.provider.client_id,
            "code_verifier": self._derived("verifier", state),
        }
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if self.provider.secret:
            pair = f"{quote(self.provider.client_id, safe='')}:{quote(self.provider.secret, safe='')}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        try:
            answer = _fetched(Request(self._exchange, urlencode(body).encode(), headers))
        except UsageError:
            raise SignInError("The provider did not accept the sign-in. Sign in again.") from None
        claims = self._claims(str(answer.get("id_token", "")), self.provider.client_id, self._derived("nonce", state))
        proof = secrets.token_urlsafe(32)
        _make_room(self._sessions)
        self._sessions[proof] = self._person(claims), self._clock() + SECONDS
        return proof, then

    def _opened(self, state: str) -> tuple[str, float]:
        """Return the page that a sign-in leads to, and until when it can be finished.

        Raises:
            SignInError: the state is not one of this server.
        """
        body, _, seal = state.partition(".")
        if not hmac.compare_digest(seal.encode("utf-8", "replace"), self._derived("seal", body).encode()):
            raise SignInError(NOT_BEGUN)
        _, until, then = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return then, until

    def _derived(self, what: str, text: str) -> str:
        return _encoded(hmac.digest(self._secret, f"{what} {text}".encode("utf-8", "replace"), "sha256"))

    def of_proof(self, proof: str) -> Person | None:
        """Return the person of a session; None if it is over."""
        person, until = self._sessions.get(proof, (None, 0.0))
        return person if self._clock() < until else None

    def end(self, proof: str) -> None:
        """End a session."""
        self._sessions.pop(proof, None)


class ProviderKeys:
    """The keys that a provider signs with, fetched by a thread: a request never waits long for the provider.

    Anybody can send a token that names an unknown key. Without the limits the server would ask the provider for each,
    and other requests would wait for the answer.

    Args:
        address: of the keys (JWKS).
    """

    def __init__(self, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = jwt.PyJWKClient(address, cache_jwk_set=False, timeout=int(TIMEOUT))
        self._clock = clock
        self._known: tuple[list[jwt.PyJWK], float] = [], -inf
        self._asked = -inf
        self._fetching: Thread | None = None

    def current(self, *, refresh: bool) -> list[jwt.PyJWK]:
        """Return the keys; not those that were fetched more than `OLDEST_KEYS` seconds ago.

        Args:
            refresh: fetch them again first, unless that was done in the last `BETWEEN_FETCHES` seconds.
        """
        keys, fetched = self._known
        now = self._clock()
        if now - fetched > FRESH_KEYS or refresh:
            self._fetch(now, wait=refresh or now - fetched > OLDEST_KEYS)
            keys, fetched = self._known
        return keys if now - fetched <= OLDEST_KEYS else []

    def _fetch(self, now: float, *, wait: bool) -> None:
        if now - self._asked > BETWEEN_FETCHES:
            self._asked = now
            self._fetching = Thread(target=self._fetch_now, daemon=True)
            self._fetching.start()
        elif self._clock() - self._asked > WAIT:
            return
        if wait and self._fetching is not None:
            self._fetching.join(WAIT)

    def _fetch_now(self) -> None:
        with suppress(jwt.PyJWTError, OSError, ValueError):  # the keys known so far are used until they are too old
            self._known = self._client.get_jwk_set().keys, self._clock()


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _make_room(kept: dict[str, Any]) -> None:
    while len(kept) >= MOST_KEPT:
        del kept[next(iter(kept))]


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the secret of the client goes to the address that discovery named, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _fetched(request: Request) -> dict[str, Any]:
    """Return the JSON object that the provider answers.

    Raises:
        UsageError: it does not answer, or with something else.
    """
    place = request.full_url
    try:
        with build_opener(_NoRedirect).open(request, timeout=TIMEOUT) as answer:
            found = json.loads(answer.read(LARGEST_ANSWER))
    except (URLError, OSError, ValueError) as error:
        raise UsageError(f"{place}: the OIDC provider does not answer as it should ({error}).", address=place) from None
    if not isinstance(found, dict):
        raise UsageError(f"{place}: the OIDC provider's answer is not an object.", address=place)
    return found
