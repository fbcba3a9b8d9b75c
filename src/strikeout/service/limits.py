"""Limits on requests: bytes of a body, seconds to send it, and the names by which the server is addressed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strikeout.errors import ServiceError, TooLargeError
from strikeout.service.problems import problem_of, problem_response

MOST_BYTES = 1 << 20  # of a body that is not an upload
PATIENCE = 30.0  # seconds for the next part of a body
SLOWEST = 20_000.0  # bytes per second of a whole body, after the first PATIENCE seconds
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
        read, arrived = 0, asyncio.get_running_loop().time()
        refusal: ServiceError | None = None  # the application may turn an error of reading into an answer of its own
        begun = False

        async def counted() -> Message:
            nonlocal read, refusal
            # One byte every few seconds would keep one of the connections for days.
            left = arrived + PATIENCE + read / SLOWEST - asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(None if scope.get("limits.read") else min(left, PATIENCE)):
                    message = await receive()
            except TimeoutError:
                refusal = ServiceError("The body was sent too slowly.")
                raise refusal from None
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                scope["limits.read"] = not message.get("more_body", False)
                if read > most:
                    refusal = _too_large(most)
                    raise refusal
            return message

        async def answered(message: Message) -> None:
            nonlocal begun
            if refusal is None or begun:
                begun = True
                await send(message)

        try:
            await self._app(scope, counted, answered)
        except ServiceError:
            if refusal is None or begun:
                raise
        if refusal is not None and not begun:
            await problem_response(problem_of(refusal))(scope, receive, send)


def _too_large(most: int) -> TooLargeError:
    return TooLargeError(f"The body has more than {most:,} bytes, which is the limit here.", most=most)
