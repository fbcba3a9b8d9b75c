"""Sessions of browsers: a signed cookie that expires, the token that every form must carry, and limits on sign-in."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from strikeout.errors import SignInError, TooManyError

COOKIE = "strikeout_session"  # followed by the port, since a browser sends the cookies of a host to all of its ports
SECONDS = 8 * 3600  # a working day; then the person signs in again
LONGEST_COOKIE = 2000
FAILURES, WINDOW = 10, 300.0  # attempts from one address that may fail, and the seconds within which they count
MOST_ADDRESSES = 10_000


def named_for(cookie: str, server: tuple[str, int | None] | None) -> str:
    """Return the name of a cookie of the server at this address, so that two servers of a host keep theirs apart.

    >>> named_for("strikeout_session", ("127.0.0.1", 8000))
    'strikeout_session_8000'
    """
    return cookie if server is None or server[1] is None else f"{cookie}_{server[1]}"


@dataclass(frozen=True)
class Session:
    """What a cookie contains: the proof of who signed in, a random number, and when it ends (seconds since 1970)."""

    proof: str
    number: str
    until: float


@dataclass(frozen=True, eq=False)
class Sessions:
    """Signs and reads the cookies of one server. A restart makes a new secret, so every session ends with it."""

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    clock: Callable[[], float] = time.time

    def begin(self, proof: str) -> Session:
        """Return a new session for who has this proof."""
        return Session(proof, secrets.token_hex(16), self.clock() + SECONDS)

    def seal(self, session: Session) -> str:
        """Return the session as a signed cookie."""
        content = json.dumps([session.proof, session.number, session.until]).encode()
        text = urlsafe_b64encode(content).decode()
        return f"{text}.{self._mark('session', text)}"

    def read(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie; None if it is not signed by this server, or over."""
        if cookie is None or len(cookie) > LONGEST_COOKIE:
            return None
        text, _, mark = cookie.rpartition(".")
        if not hmac.compare_digest(mark.encode("utf-8", "replace"), self._mark("session", text).encode()):
            return None
        try:
            proof, number, until = json.loads(urlsafe_b64decode(text))
        except (Error, ValueError):
            return None
        return Session(proof, number, until) if self.clock() < until else None

    def form_token(self, session: Session) -> str:
        """Return what every form of this session carries; a page of another site cannot read it."""
        return self._mark("form", session.number)

    def check_form(self, session: Session | None, token: str) -> Session:
        """Return the session if a form carries its token.

        Raises:
            SignInError: there is no session, or the form is not of this session.
        """
        is_own = session is not None and hmac.compare_digest(
            token.encode("utf-8", "replace"), self.form_token(session).encode()
        )
        if session is None or not is_own:
            raise SignInError("This form is not of your session, or the session is over. Open the page again.")
        return session

    def _mark(self, what: str, text: str) -> str:
        return hmac.new(self.secret, f"{what}:{text}".encode("utf-8", "replace"), sha256).hexdigest()


class SignInLimit:
    """Counts failed sign-ins by address, so that tokens cannot be tried by the thousand."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[str, list[float]] = {}

    def check(self, address: str) -> None:
        """Raise TooManyError if too many attempts from an address failed lately."""
        now = self._clock()
        recent = [at for at in self._failed.get(address, []) if now - at < WINDOW]
        if len(recent) >= FAILURES:
            raise TooManyError(
                f"{FAILURES} attempts to sign in failed. Wait {WINDOW / 60:.0f} minutes, then try again.",
                failed=FAILURES,
            )

    def failed(self, address: str) -> None:
        """Count a failed attempt."""
        now = self._clock()
        recent = [at for at in self._failed.pop(address, []) if now - at < WINDOW]
        while len(self._failed) >= MOST_ADDRESSES:
            del self._failed[next(iter(self._failed))]
        self._failed[address] = [*recent, now]
