"""Run the application with uvicorn until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import uvicorn

from strikeout.errors import UsageError
from strikeout.service.app import create_app
from strikeout.service.desk import Desk
from strikeout.service.library import Library
from strikeout.service.people import Authentication

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
