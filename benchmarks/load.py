"""Readers and writers on several books over a real socket, while the server is killed and started again.

The server is a process of its own (``strikeout serve``), the client a bounded number of connections of this process.
Half-way the server is killed (SIGKILL) and started again at the same port. Afterwards every book is verified, and every
change that was acknowledged must be in the ledger of its book.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import strikeout as so
from benchmarks.rows import Result, Row
from strikeout.store.ledger import Head

READS = ("", "/log", "/versions", "/requests", "/quotes?limit=50")
HONEST = {409, 412}  # another writer was quicker: the answers of a book that has changed
STARTING = 60.0  # seconds that a server may take to start
LONGEST = 300.0  # seconds, on a machine that is busy with other things
PAUSE = 0.05  # seconds that a client waits after an answer that was not served, so that it does not turn in circles


@dataclass(frozen=True)
class Load:
    """How many clients, on how many books, for how long; the server is killed half-way."""

    readers: int = 50
    writers: int = 4
    books: int = 20
    seconds: float = 60.0
    least: int = 1  # changes that are acknowledged before the server is killed, and after; it takes longer if need be


@dataclass
class Found:
    """What the clients saw."""

    reads: list[float] = field(default_factory=list)  # seconds of each read that was answered
    changes: list[float] = field(default_factory=list)
    acknowledged: list[tuple[str, str]] = field(default_factory=list)  # book and head of each change
    refused: Counter[int] = field(default_factory=Counter)  # 409 and 412
    errors: Counter[str] = field(default_factory=Counter)  # every other answer
    before: int | None = None  # changes that were acknowledged when the server was killed
    is_over: bool = False
    lost: int = 0  # requests without an answer, because the server was killed
    missing: list[tuple[str, str]] = field(default_factory=list)  # acknowledged, and not in the ledger
    unverified: list[str] = field(default_factory=list)


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Readers and writers for a minute, the server killed half-way, and the check of every book."""
    load = Load(12, 2, 4, 8.0) if is_quick else Load()
    with tempfile.TemporaryDirectory(prefix="strikeout-") as folder:
        found = under_load(Path(folder), load)
    rows = [
        Row(f"{what}, {name}", "strikeout", float(np.quantile(seconds, share)), note=f"{len(seconds):,} answers")
        for what, seconds in (("read", found.reads), ("forget or restore", found.changes))
        for name, share in (("median", 0.5), ("99 of 100", 0.99))
        if seconds
    ]
    wrong = sum(found.errors.values()) + len(found.missing) + len(found.unverified)
    rows.append(Row("answers that were wrong, or changes lost", "strikeout", None, 1.0 if wrong else 2.0, 1.5))
    facts: dict[str, float | str] = {
        "clients": f"{load.readers} readers and {load.writers} writers on {load.books} books for {load.seconds:.0f} s",
        "acknowledged changes": f"{len(found.acknowledged):,}, {len(found.missing)} of them missing afterwards",
        "409 and 412": ", ".join(f"{status}: {count:,}" for status, count in sorted(found.refused.items())) or "none",
        "other answers": ", ".join(f"{what}: {count}" for what, count in found.errors.items()) or "none",
        "without an answer, server killed": found.lost,
        "books that do not verify": ", ".join(found.unverified) or "none",
    }
    return Result("load", is_quick, tuple(rows), facts)


def under_load(folder: Path, load: Load) -> Found:
    """Serve copies of a small book, read and change them, kill the server half-way, and check every book."""
    names = [f"book{number:02d}" for number in range(load.books)]
    _make_books(folder, names)
    port, found = _free_port(), Found()
    server = _Server(folder, port)
    try:
        asyncio.run(_clients(server, names, load, found))
    finally:
        server.stop()
    for name in names:
        with so.Book.open(folder / f"{name}.book") as book:
            ledger = book.snapshot().ledger
            heads = {str(Head(size, ledger.root(size))) for size in range(1, len(ledger) + 1)}
            found.missing += [(name, head) for at, head in found.acknowledged if at == name and head not in heads]
            if not book.verify():
                found.unverified.append(name)
    return found


def _make_books(folder: Path, names: list[str]) -> None:
    with so.Book.create(folder / f"{names[0]}.book") as book:
        book.import_quotes(so.paper.quotes("small"))
        book.calibrate(panel=None, starts=1)
    made = [path for path in folder.iterdir() if path.name.startswith(names[0])]
    for name in names[1:]:
        for path in made:
            shutil.copy(path, folder / path.name.replace(names[0], name, 1))


class _Server:
    """``strikeout serve`` in a process of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "strikeout", "serve", str(self.folder), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + STARTING
        while time.monotonic() < until:
            try:
                httpx.get(f"{self.address}/livez", timeout=5).raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.1)
            else:
                return
        raise TimeoutError(f"strikeout serve did not start within {STARTING:.0f} seconds")

    def kill(self) -> None:
        """End the server as a crash would. Its workers notice that it is gone and end by themselves."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


async def _clients(server: _Server, names: list[str], load: Load, found: Found) -> None:
    async with AsyncExitStack() as stack:
        context = ssl.create_default_context()  # shared: to make one takes longer than many requests

        async def client() -> httpx.AsyncClient:
            """A client with a connection of its own: a pool of many is searched at every request."""
            return await stack.enter_async_context(
                httpx.AsyncClient(base_url=server.address, timeout=60, verify=context)
            )

        work = [_read(await client(), names, found, seed) for seed in range(load.readers)]
        work += [_write(await client(), names, found, seed) for seed in range(load.writers)]

        async def kill() -> None:
            await _pass(load.seconds / 2, lambda: len(found.acknowledged) >= load.least)
            await asyncio.to_thread(server.kill)
            found.before = len(found.acknowledged)
            await asyncio.to_thread(server.start)
            await _pass(load.seconds / 2, lambda: len(found.acknowledged) >= (found.before or 0) + load.least)
            found.is_over = True

        await asyncio.gather(kill(), *work)


async def _pass(seconds: float, enough: Callable[[], bool]) -> None:
    """Wait for this time, and then until enough was done."""
    begun = time.monotonic()
    await asyncio.sleep(seconds)
    while not enough() and time.monotonic() - begun < LONGEST:
        await asyncio.sleep(0.1)


async def _read(client: httpx.AsyncClient, names: list[str], found: Found, seed: int) -> None:
    draw = random.Random(seed)
    while not found.is_over:
        begun = time.perf_counter()
        try:
            answer = await client.get(f"/v1/books/{draw.choice(names)}{draw.choice(READS)}")
        except httpx.TransportError:
            found.lost += 1
            await asyncio.sleep(PAUSE)
            continue
        if answer.status_code == 200:
            found.reads.append(time.perf_counter() - begun)
        else:
            _wrong(found, answer)
            await asyncio.sleep(PAUSE)


async def _write(client: httpx.AsyncClient, names: list[str], found: Found, seed: int) -> None:
    """Strike out a quote of a book, or bring one back, for the head that was just read."""
    draw = random.Random(1000 + seed)
    why = {"code": "test", "text": "", "ticket": ""}
    while not found.is_over:
        name = draw.choice(names)
        try:
            book = await client.get(f"/v1/books/{name}")
            if book.status_code != 200:
                _wrong(found, book)
                continue
            if book.json()["set_aside"] > 3:
                place, body = "restore", {"reason": why}
            else:
                page = (await client.get(f"/v1/books/{name}/quotes", params={"limit": 100})).json()
                place, body = "forget", {"ids": [draw.choice(page["quotes"])["id"]], "reason": why}
            begun = time.perf_counter()
            answer = await client.post(
                f"/v1/books/{name}/{place}", json=body, headers={"if-match": book.headers["etag"]}
            )
        except httpx.TransportError:
            found.lost += 1
            await asyncio.sleep(PAUSE)
            continue
        if answer.status_code == 200:
            found.changes.append(time.perf_counter() - begun)
            found.acknowledged.append((name, answer.headers["etag"].strip('"')))
        else:
            _wrong(found, answer)


def _wrong(found: Found, answer: httpx.Response) -> None:
    if answer.status_code in HONEST:
        found.refused[answer.status_code] += 1
        return
    code: Any = answer.json().get("code") if "json" in answer.headers.get("content-type", "") else ""
    found.errors[f"{answer.status_code} {code}".strip()] += 1


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
