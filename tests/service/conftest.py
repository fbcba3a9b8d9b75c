"""A desk with small books, served over a real socket; people with tokens of every role."""

from __future__ import annotations

import io
import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import httpx
import pytest
import uvicorn

import strikeout as so
from strikeout.service.app import create_app
from strikeout.service.desk import Desk
from strikeout.service.library import Library
from strikeout.service.people import OnePerson, Person, Role, Tokens, new_token


@pytest.fixture(scope="session")
def shelf(tmp_path_factory) -> Path:
    """One small calibrated book, to be copied with its key file."""
    folder = tmp_path_factory.mktemp("books")
    quotes = so.paper.quotes("small")
    with so.Book.create(folder / "small.book", who="maker") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None)
    return folder


class Client(httpx.Client):
    """A client that knows the book of its test."""

    book = "small"

    def at(self, *parts: str) -> str:
        """The address of the book, or of something of it."""
        return "/".join(["/v1/books", self.book, *parts])


@dataclass(frozen=True)
class Served:
    """A running server: its address, its folder, the tokens by role, its access log, and the book of the test."""

    address: str
    folder: Path
    tokens: dict[str, str]
    log: io.StringIO
    desk: Desk
    name: str = "small"

    def client(self, role: str | None = None, **more) -> Client:
        headers = {} if role is None else {"authorization": f"Bearer {self.tokens[role]}"}
        made = Client(base_url=self.address, headers=headers | more.pop("headers", {}), timeout=60, **more)
        made.book = self.name
        return made

    def line(self, answer: httpx.Response) -> dict:
        """The line of the access log about an answer. It is written after the answer was sent."""
        for _ in range(500):
            lines = map(json.loads, self.log.getvalue().splitlines())
            found = [line for line in lines if line["request"] == answer.headers["x-request-id"]]
            if found:
                return found[0]
            time.sleep(0.01)
        raise AssertionError("the access log has no line about the answer")

    def book(self, who: str = "tester") -> so.Book:
        return so.Book.open(self.folder / f"{self.name}.book", who=who)


class Background(uvicorn.Server):
    """A server in a thread."""

    def __init__(self, app) -> None:
        super().__init__(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False))
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def install_signal_handlers(self) -> None:
        pass

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets)
        self.ready.set()

    def begin(self) -> str:
        self.thread.start()
        assert self.ready.wait(30), "the server did not start"
        return f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}"

    def end(self) -> None:
        self.should_exit = True
        self.thread.join(30)


def serving(folder: Path, people, tokens: dict[str, str], **how) -> Iterator[Served]:
    log = io.StringIO()
    desk = Desk.of(Library(folder), people, **how)
    server = Background(create_app(desk, log=log))
    try:
        yield Served(server.begin(), folder, tokens, log, desk)
    finally:
        server.end()


def copied(shelf: Path, folder: Path, name: str = "small") -> Path:
    for file in shelf.iterdir():
        shutil.copy(file, folder / file.name.replace("small", name, 1))
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Served]:
    """A server with sign-in; one person per role, named after it, and another admin."""
    folder = tmp_path_factory.mktemp("desk")
    made = {role.value: new_token(role.value, role) for role in Role}
    made["other"] = new_token("other", Role.ADMIN)
    file = folder / "tokens"
    file.write_text("".join(f"{line}\n" for _, line in made.values()))
    file.chmod(0o600)
    (folder / "books").mkdir()
    tokens = {name: token for name, (token, _) in made.items()}
    yield from serving(folder / "books", Tokens(file), tokens, uploads=200_000)


NUMBERS = count()


@pytest.fixture
def served(server, shelf) -> Served:
    """The server with a book of its own for the test."""
    name = f"book{next(NUMBERS)}"
    copied(shelf, server.folder, name)
    return replace(server, name=name)


@pytest.fixture(scope="session")
def open_desk(shelf, tmp_path_factory) -> Iterator[Served]:
    """A server without sign-in for tests that change nothing."""
    folder = copied(shelf, tmp_path_factory.mktemp("open"))
    yield from serving(folder, OnePerson(Person("owner", Role.ADMIN)), {})
