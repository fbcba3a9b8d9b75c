"""Processes that work on one book at the same time, each told what to do over a pipe; any of them may be killed.

A clerk is forked from the test, opens books, carries out verbs and says what was acknowledged. It never outlives the
test: it ends when its pipe does.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import strikeout as so

MODEL = so.BlackScholes()
A_DAY = 6  # quotes
VERBS = (
    "import", "calibrate", "forget", "plan and apply", "restore", "learn", "roll", "erase", "rotate", "verify",
    "look", "reopen", "open twice", "copy the file",
)  # fmt: skip


def quotes(begin: int, end: int) -> so.Quotes:
    """Quotes of these numbers, six a day; small, so that a verb takes milliseconds."""
    number = np.arange(begin, end)
    contracts = so.Contracts(
        forward=100.0, strike=90.0 + number % 7 * 3.0, expiry=0.5, discount=1.0, is_call=np.ones(len(number), bool)
    )
    wave = (number * 7919 % 1000) / 1e5
    return so.Quotes(
        ids=[f"q{one:06d}" for one in number],
        contracts=contracts,
        observed=MODEL.price([0.2], contracts) + wave,
        labels={"date": (np.datetime64("2024-01-01") + number // A_DAY).astype(str).astype(object)},
    )


_PIPES: set[int] = set()  # ends that this process has of the pipes of its clerks


@dataclass
class Told:
    """What became of a verb: the entries it acknowledged, or the code and the sentence it was refused with."""

    entries: list[tuple[int, str]] = field(default_factory=list)
    code: str = ""
    sentence: str = ""


class Clerk:
    """A process that works on books under a name of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.busy_with = ""
        their_end, self._out = os.pipe()
        self._in, my_end = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            code = 1
            try:
                for pipe in (*_PIPES, self._out, self._in):  # or no clerk would see the end of its pipe
                    os.close(pipe)
                _work(name, their_end, my_end)
                code = 0
            except BaseException:  # a defect of the clerk itself: pytest shows what it printed
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)
        os.close(their_end)
        os.close(my_end)
        _PIPES.update((self._out, self._in))
        self._said = b""

    def ask(self, verb: str, book: Path, number: int, *, then_close: bool = False) -> None:
        """Sends a verb; ``answer`` waits for what becomes of it.

        Args:
            then_close: whether the book is closed after it, as by the command line, or stays open, as in a notebook.
        """
        self.busy_with = verb
        try:
            os.write(self._out, json.dumps([verb, str(book), number, then_close]).encode() + b"\n")
        except BrokenPipeError:
            raise AssertionError(f"{self.name} ended by itself before {verb}: {self._how_it_ended()}") from None

    def answer(self, patience: float = 60.0) -> Told:
        """What became of the verb."""
        end = time.monotonic() + patience
        while b"\n" not in self._said:
            assert select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0], f"{self.busy_with} hangs"
            said = os.read(self._in, 65536)
            assert said, f"{self.name} ended by itself in {self.busy_with}: {self._how_it_ended()}"
            self._said += said
        line, _, self._said = self._said.partition(b"\n")
        self.busy_with = ""
        return Told(**json.loads(line))

    def _how_it_ended(self) -> str:
        """Its exit code, or the signal (9: the machine had no memory left, if nobody here sent it)."""
        status = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        self._process = 0
        return f"signal {-status}" if status < 0 else f"exit code {status}"

    def kill(self) -> None:
        """Ends it at once, whatever it is doing."""
        if self._process:
            os.kill(self._process, signal.SIGKILL)
        self.gone()

    def gone(self) -> None:
        """Closes the pipes and waits for its end."""
        _PIPES.difference_update((self._out, self._in))
        os.close(self._out)
        if self._process:
            os.waitpid(self._process, 0)
        os.close(self._in)


def _work(name: str, commands: int, answers: int) -> None:
    held: dict[str, list[so.Book]] = {}
    with os.fdopen(commands) as lines:
        for line in lines:
            verb, path, number, then_close = json.loads(line)
            told = Told()
            try:
                try:
                    told.entries = _done(name, held, verb, path, random.Random(number), number)
                finally:
                    if then_close:
                        _closed(held, path)
            except AssertionError as error:
                told.code, told.sentence = "assertion", str(error)
            except so.errors.StrikeoutError as error:
                told.code, told.sentence = error.code, error.sentence
            except Exception:  # a defect: the law names it, and the other interleavings go on
                told.code, told.sentence = "defect", traceback.format_exc()
            os.write(answers, json.dumps(vars(told)).encode() + b"\n")


def _closed(held: dict[str, list[so.Book]], path: str) -> None:
    for book in held.pop(path, []):
        book.close()


def _done(
    name: str, held: dict[str, list[so.Book]], verb: str, path: str, draw: random.Random, number: int
) -> list[tuple[int, str]]:
    if verb == "close":
        _closed(held, path)
        return []
    if verb == "reopen":
        _closed(held, path)
    for _ in range((path not in held) + (verb == "open twice")):
        held.setdefault(path, []).append(so.Book.open(path, who=name))
    book = draw.choice(held[path])
    if verb == "copy the file":  # as a notebook would, with no thought of locks
        if sys.platform == "linux":
            shutil.copy(path, f"{path}.{name}.copy")
            with suppress(shutil.Error):  # another clerk may end the log while it is being copied
                shutil.copytree(Path(path).parent, Path(path).parent.parent / f"{number} copied", dirs_exist_ok=True)
        return []
    known = book.quotes().ids.tolist()
    few = draw.sample(known, min(2, len(known)))
    new = quotes(100 + 10 * number, 102 + 10 * number)
    entry: Any = None
    if verb == "import":
        entry = book.import_quotes(new).entry
    elif verb == "calibrate":
        entry = book.calibrate(MODEL, starts=1, panel=None).entry
    elif verb == "forget":
        entry = book.forget(ids=few).entry
    elif verb == "plan and apply":
        plan = book.plan_forget(ids=few)
        time.sleep(draw.uniform(0, 0.02))  # somebody looks at it
        entry = book.apply(plan).entry
    elif verb == "restore":
        entry = book.restore().entry
    elif verb == "learn":
        entry = book.learn(new).entry
    elif verb == "roll":
        entry = book.roll(new, window=3).entry
    elif verb == "erase":
        done = book.erase(ids=few)
        searched = [] if done.search is None else [(done.search.entry, "residue")]
        return [(done.entry, "erase"), *searched]
    elif verb == "rotate":
        entry = book.rotate_key().entry
        return [(entry - 1, "rotate key"), (entry, "rotate key")]
    elif verb == "verify":
        found = book.verify()
        assert found.holds, found.summary()
        return []
    else:
        book.status()
        return []
    said = {"plan and apply": "forget"}.get(verb, verb)
    return [] if entry is None else [(entry, said)]
