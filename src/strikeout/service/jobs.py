"""Verbs that run in worker processes: a pool of workers, and jobs with a state, progress, a result or a problem."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

from strikeout.errors import CancelledError, NoSuchPageError
from strikeout.service.library import Findings
from strikeout.service.metrics import Metrics
from strikeout.service.problems import INTERNAL, Problem, ProblemError, problem_of
from strikeout.service.verbs import VERBS

LONGEST_ANSWER = 1 << 28  # bytes of one line
KEPT = 500  # jobs that are over and can still be asked for
MOST_KEPT = 200  # quotes of an answer that is kept until the book changes
OVER = ("done", "failed", "cancelled")
REMOVED = {"removed": True}  # in place of the result of a job, after an erasure


@dataclass(frozen=True)
class Task:
    """A verb on a book: what a worker is asked to do."""

    verb: str
    book: str
    path: str
    who: str
    head: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)

    def to_line(self) -> bytes:
        """Return the line of JSON for the worker."""
        names = ("verb", "path", "who", "head", "arguments")
        return json.dumps({name: getattr(self, name) for name in names}).encode() + b"\n"


@dataclass(eq=False)
class Job:
    """A task and what became of it. ``changed`` is set, and replaced, whenever something changes."""

    task: Task
    number: str = field(default_factory=lambda: token_hex(8))
    state: str = "queued"  # then running, then done, failed or cancelled
    progress: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] | None = None
    head: str | None = None  # of the book afterwards
    problem: Problem | None = None
    begun: float = field(default_factory=time.time)
    seconds: float | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state in OVER

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "job": self.number,
            "verb": self.task.verb,
            "book": self.task.book,
            "who": self.task.who,
            "state": self.state,
            "progress": self.progress,
            "seconds": self.seconds,
            "head": self.head,
            "result": self.result,
            "problem": None if self.problem is None else self.problem.to_dict(),
        }

    def move(self, state: str) -> None:
        """Set the state and wake those who wait for a change."""
        self.state = state
        if self.is_over:
            self.seconds = time.time() - self.begun
        self.changed.set()
        self.changed = asyncio.Event()

    def answer(self) -> dict[str, Any]:
        """Return the result of a job that is over.

        Raises:
            ProblemError: it failed or was cancelled.
        """
        if self.problem is not None:
            raise ProblemError(self.problem)
        return self.result or {}


class Pool:
    """Worker processes, started when they are needed and used again. A cancelled task ends its worker."""

    def __init__(self, size: int, *options: str) -> None:
        """Run at most this many workers at a time, each started with these options."""
        self._free, self._options = asyncio.Semaphore(size), options
        self._idle: list[asyncio.subprocess.Process] = []
        self._renewals = 0
        self.is_ready = False  # a worker has been started

    async def run(self, task: Task, progress: Callable[[dict[str, Any]], None]) -> tuple[dict[str, Any], str]:
        """Run a task, and return its result and the head of the book afterwards.

        Raises:
            ProblemError: the verb raised an error, or the worker ended.
        """
        async with self._free:
            worker, renewals = await self._worker(), self._renewals
            try:
                answer = await self._ask(worker, task, progress)
            except BaseException:
                await _end(worker)
                raise
            if renewals == self._renewals:
                self._idle.append(worker)
            else:
                await _end(worker)
        if "problem" in answer:
            raise ProblemError(Problem.from_plain(answer["problem"]))
        return answer["done"], answer["head"]

    async def start(self) -> None:
        """Start one worker before it is needed: it takes about a second."""
        async with self._free:
            self._idle.append(await self._worker())

    async def renew(self) -> None:
        """End the workers: what they hold in memory is gone, for example quotes that were erased since.

        One that is working ends after its answer.
        """
        workers, self._idle = self._idle, []
        self._renewals += 1
        for worker in workers:
            await _end(worker)

    async def _worker(self) -> asyncio.subprocess.Process:
        while self._idle:
            worker = self._idle.pop()
            if worker.returncode is None:
                return worker
        pipe = asyncio.subprocess.PIPE
        words = (sys.executable, "-m", "strikeout.service.worker", *self._options)
        worker = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, limit=LONGEST_ANSWER)
        assert worker.stdout is not None
        try:
            self.is_ready = bool(await worker.stdout.readline())  # it writes a line when it has imported everything
        except BaseException:
            await _end(worker)
            raise
        return worker

    async def _ask(
        self, worker: asyncio.subprocess.Process, task: Task, progress: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        assert worker.stdin is not None
        assert worker.stdout is not None
        ended = ProblemError(Problem(INTERNAL, 500, "The worker process ended before the work was done. Try again."))
        try:
            worker.stdin.write(task.to_line())
            await worker.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ended from error
        while True:
            line = await worker.stdout.readline()
            if not line.endswith(b"\n"):
                raise ended
            answer: dict[str, Any] = json.loads(line)
            if "progress" not in answer:
                return answer
            progress(answer["progress"])


async def _end(worker: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        worker.kill()
    await worker.wait()


class Jobs:
    """The jobs of a server. Changes of one book run one after another.

    Questions have workers of their own, so that a page does not wait for a calibration.
    """

    def __init__(self, workers: int, metrics: Metrics) -> None:
        self.metrics = metrics
        self.questions, self.changes = Pool(workers), Pool(workers, "--changes")
        self.findings = Findings()
        self._jobs: dict[str, Job] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def ask(self, task: Task) -> dict[str, Any]:
        """Run a task that changes nothing, and return its result.

        Raises:
            ProblemError: the verb raised an error.
        """
        if VERBS[task.verb].is_kept and task.arguments.get("limit", 0) <= MOST_KEPT:
            question = task.verb, json.dumps(task.arguments, sort_keys=True)
            compute = partial(self._timed, self.questions, task)
            result, head = await self.findings.ask(Path(task.path), question, compute)
        else:
            result, head = await self._timed(self.questions, task)
        if task.verb == "verify" and result["verdict"] == "verified":
            self.metrics.verified(task.book)
        return {**result, "head": head}

    async def _timed(
        self, pool: Pool, task: Task, progress: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> tuple[dict[str, Any], str]:
        begun = time.perf_counter()
        try:
            return await pool.run(task, progress)
        finally:
            self.metrics.ran(task.verb, time.perf_counter() - begun)

    def submit(self, task: Task, *, then: Callable[[], object] | None = None) -> Job:
        """Start a job.

        Args:
            then: called when it is over, however it ended.
        """
        job = Job(task)
        over = [number for number, other in self._jobs.items() if other.is_over]
        for number in over[: max(0, len(self._jobs) - KEPT)]:
            del self._jobs[number]
        self._jobs[job.number] = job
        job.running = asyncio.create_task(self._run(job, then))
        return job

    async def _run(self, job: Job, then: Callable[[], object] | None) -> None:
        turn = self._turns.setdefault(job.task.path, asyncio.Lock())
        try:
            async with turn:
                job.move("running")
                job.result, job.head = await self._timed(self.changes, job.task, lambda facts: self._note(job, facts))
                if job.task.verb in ("erase", "carry out"):
                    await self.drop_results(job.task.path)
                    job.task = replace(job.task, arguments={})  # ids and conditions
            job.move("done")
        except asyncio.CancelledError:
            job.problem = problem_of(
                CancelledError("The job was cancelled. Look at the log: it was done or not at all.")
            )
            job.move("cancelled")
        except Exception as error:
            job.problem = problem_of(error)
            job.move("failed")
        finally:
            if then is not None:
                then()

    async def drop_results(self, path: str) -> None:
        """Drop the results of earlier jobs of a book after an erasure: parameters and rows that knew its quotes.

        A repeated request still finds that its job was done, and not what it found. Workers that may have read the
        book are replaced.
        """
        earlier = [job for job in self._jobs.values() if job.task.path == path and job.is_over]
        for job in earlier:
            job.result = None if job.result is None else REMOVED
            job.task = replace(job.task, arguments={})
            del self._jobs[job.number]
        await self.findings.drop(path)
        await self._renew()

    async def _renew(self) -> None:
        for pool in (self.questions, self.changes):
            await pool.renew()

    @staticmethod
    def _note(job: Job, facts: dict[str, Any]) -> None:
        job.progress = facts
        job.move("running")

    def get(self, number: str) -> Job:
        """Return a job.

        Raises:
            NoSuchPageError: there is no such job, or it was over long ago.
        """
        found = self._jobs.get(number)
        if found is None:
            raise NoSuchPageError("There is no such job. Jobs that are over are kept for a while only.")
        return found

    def cancel(self, job: Job) -> None:
        """Cancel a job that is not over; its worker ends, and a transaction that is not committed is undone."""
        if job.running is not None and not job.is_over:
            job.running.cancel()

    async def wait(self, job: Job, seconds: float) -> None:
        """Wait until a job is over, or for this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not job.is_over:
                    await job.changed.wait()

    async def watch(self, job: Job) -> AsyncIterator[dict[str, Any]]:
        """Yield the job after every change, until it is over."""
        while True:
            changed = job.changed
            yield job.to_dict()
            if job.is_over:
                return
            await changed.wait()

    async def close(self) -> None:
        """Cancel every job and end the workers."""
        waiting = [job.running for job in self._jobs.values() if job.running is not None and not job.is_over]
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await self._renew()
        await self.findings.close()
