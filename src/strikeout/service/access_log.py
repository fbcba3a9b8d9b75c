"""The access log: one line of JSON per request. It names routes, never addresses, so it contains no condition."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from secrets import token_hex
from typing import IO

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}


class AccessLog:
    """Adds the headers that protect a browser and a request id to every answer, and writes a line about it.

    The line has the route and the name of the book. Queries, bodies and other parts of the address are left out: a
    condition contains strikes, prices and expiries.
    """

    def __init__(self, app: ASGIApp, *, stream: IO[str] | None = None) -> None:
        self._app = app
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and write its line."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        number, begun, status = token_hex(8), time.perf_counter(), 500
        scope.setdefault("state", {})["request_id"] = number

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                added = {**SECURITY, b"x-request-id": number.encode(), b"cache-control": b"no-store"}
                message["headers"] = [*message["headers"], *(h for h in added.items() if h[0] not in present)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            self._write(Request(scope), number, status, time.perf_counter() - begun)

    def _write(self, request: Request, number: str, status: int, seconds: float) -> None:
        route, person = request.scope.get("route"), request.scope["state"].get("person")
        line = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request": number,
            "method": request.method,
            "route": getattr(route, "path", None),
            "book": request.scope["state"].get("book"),
            "who": None if person is None else person.name,
            "role": None if person is None else person.role.value,
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        print(json.dumps(line), file=self._stream or sys.stderr, flush=True)
