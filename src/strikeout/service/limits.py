"""Limits on requests: bytes of a body, seconds to send it, and the names by which the server is addressed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strikeout.errors import ServiceError, TooLargeError
from strikeout.service.answers import problem_response
from strikeout.service.problems import problem_of

MOST_BYTES = 1 << 20  # of a body that is not an upload
PATIENCE = 30.0  # seconds for the next part of a body
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Limits:
    """Refuses bodies that are too large or too slow, and requests for another host.

    A page of another site can make a browser send requests to a loopback address under the name of that site; the
    check of the host refuses them.
    """

    def __init__(self, app: ASGIApp, *, uploads: int, hosts: Sequence[str] = LOOPBACK) -> None:
        """Wrap an application.

        Args:
            uploads: the most bytes of a file.
            hosts: names by which the server may be addressed, without port.
        """
        self._app, self._uploads, self._hosts = app, uploads, {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        most = self._uploads if scope["path"].endswith(("/imports", "/import")) else MOST_BYTES
        if name not in self._hosts:
            error: ServiceError = ServiceError(
                "This host name is not one of this server's. See: strikeout serve --name"
            )
            await problem_response(problem_of(error))(scope, receive, send)
            return
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            await problem_response(problem_of(_too_large(most)))(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            async with asyncio.timeout(None if scope.get("limits.read") else PATIENCE):
                message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                scope["limits.read"] = not message.get("more_body", False)
                if read > most:
                    raise _too_large(most)
            return message

        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, counted, noting)
        except (TooLargeError, TimeoutError) as error:
            if begun:
                raise
            known = error if isinstance(error, TooLargeError) else ServiceError("The body was sent too slowly.")
            await problem_response(problem_of(known))(scope, receive, send)


def _too_large(most: int) -> TooLargeError:
    return TooLargeError(f"The body has more than {most:,} bytes, which is the limit here.", most=most)
