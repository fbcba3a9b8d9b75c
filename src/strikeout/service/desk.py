"""What all routes share: the books, the people, the jobs, and how a change is made."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

from fastapi import Request

from strikeout.errors import MissingHeadError, ReusedKeyError, SignInError, UsageError
from strikeout.service.jobs import Job, Jobs, Task
from strikeout.service.library import Library
from strikeout.service.metrics import Metrics
from strikeout.service.people import Action, Authentication, Person
from strikeout.service.sessions import COOKIE, Session, Sessions, SignInLimit, named_for
from strikeout.service.uploads import HeldUploads
from strikeout.service.verbs import VERBS

Found = TypeVar("Found")
LONGEST_KEY = 200
KEPT_KEYS = 5000
UPLOADS = 256 << 20


@dataclass(frozen=True, eq=False)
class Desk:
    """A folder of books as it is served: people, worker processes and limits."""

    library: Library
    people: Authentication
    jobs: Jobs
    uploads: int = UPLOADS  # the most bytes of a file
    wait: float = 30.0  # seconds that a change is waited for before the answer is 202
    keys: dict[tuple[str, str], tuple[str, Job]] = field(default_factory=dict)  # by person and Idempotency-Key
    sessions: Sessions = field(default_factory=Sessions)
    sign_ins: SignInLimit = field(default_factory=SignInLimit)
    held: HeldUploads = field(default_factory=HeldUploads)

    @staticmethod
    def of(library: Library, people: Authentication, *, workers: int = 2, **limits: Any) -> Desk:
        """Return a desk with this many worker processes, which start when they are needed."""
        return Desk(library, people, Jobs(workers, Metrics()), **limits)

    def person(self, request: Request) -> Person:
        """Return who sends a request: by its token, or by the session of a browser.

        A browser adds the cookie of a session to requests of other sites too, so it counts for reading, and for a form
        that was found to be of the session.

        Raises:
            SignInError: the token is not valid, or one is needed.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        found = None
        if scheme:
            found = self.people.of_token(token.strip()) if scheme.lower() == "bearer" else None
        else:
            session = self.session(request)
            is_safe = request.method in ("GET", "HEAD") or getattr(request.state, "is_own_form", False)
            found = self.people.of_proof(session.proof) if session is not None and is_safe else self.people.anonymous
        if found is None:
            raise SignInError("This needs a valid token: send the header Authorization: Bearer TOKEN.")
        request.state.person = found
        return found

    def session(self, request: Request) -> Session | None:
        """Return the session of a browser; None if there is none."""
        return self.sessions.read(request.cookies.get(named_for(COOKIE, request.scope.get("server"))))

    async def read(
        self,
        request: Request,
        name: str,
        work: Callable[..., Found],
        *arguments: Hashable,
        action: Action = Action.READ,
    ) -> tuple[Found, str]:
        """Return what a function of ``readings`` finds in a book, and the head of its ledger; kept until it changes.

        Raises:
            RoleError: the role does not permit it.
            NoSuchPageError: there is no such book.
        """
        person = self.person(request)
        person.check(action)
        path = self.library.path(name)
        request.state.book = path.stem
        return await self.jobs.findings.read(path, work, *arguments)

    async def ask(self, request: Request, name: str, verb: str, **arguments: Any) -> dict[str, Any]:
        """Run a verb that changes nothing in a worker process, and return its result with the head of the book.

        Raises:
            RoleError: the role does not permit it.
            ProblemError: the verb raised an error.
        """
        return await self.jobs.ask(self._task(request, name, verb, arguments, head=None))

    def change(
        self,
        request: Request,
        name: str,
        verb: str,
        *,
        head: str | None,
        key: str | None = None,
        then: Callable[[], object] | None = None,
        **arguments: Any,
    ) -> tuple[Job, bool]:
        """Start a verb that changes a book as a job; return it, and whether it is the job of an earlier same request.

        Args:
            head: of the ledger for which the change was decided.
            key: the Idempotency-Key: a second request with it gets the job of the first.
            then: called when the job is over, or at once if there is an earlier one.

        Raises:
            RoleError: the role does not permit it.
            MissingHeadError: no head is given.
            ReusedKeyError: the Idempotency-Key was used with another request.
        """
        task = self._task(request, name, verb, arguments, head=head)
        if head is None:
            raise MissingHeadError(
                "A change names the state of the book it is meant for: send the ETag of the book as If-Match."
            )
        if key is None:
            return self.jobs.submit(task, then=then), False
        if not 1 <= len(key) <= LONGEST_KEY:
            raise UsageError(f"An Idempotency-Key has 1 to {LONGEST_KEY} characters.")
        same = sha256(json.dumps([verb, task.book, head, _comparable(arguments)], sort_keys=True).encode()).hexdigest()
        known = self.keys.get((task.who, key))
        if known is not None:
            if then is not None:
                then()
            if known[0] != same:
                raise ReusedKeyError("This Idempotency-Key was used with another request. Make a new one.")
            return known[1], True
        while len(self.keys) >= KEPT_KEYS:
            del self.keys[next(iter(self.keys))]
        job = self.jobs.submit(task, then=then)
        self.keys[task.who, key] = same, job
        return job, False

    def _task(self, request: Request, name: str, verb: str, arguments: Mapping[str, Any], *, head: str | None) -> Task:
        person = self.person(request)
        person.check(VERBS[verb].action)
        path = self.library.path(name)
        request.state.book = path.stem
        return Task(verb, path.stem, str(path), person.name, head, dict(arguments))


def _comparable(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without the place of an uploaded file, which is another one each time; its digest stays."""
    return {name: value for name, value in arguments.items() if name != "file"}
