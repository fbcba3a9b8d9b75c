"""A worker process: runs verbs on books, one after another. Requests and answers are lines of JSON.

    first     {"ready": true}, once
    request   {"verb": ..., "path": ..., "who": ..., "head": null or text, "arguments": {...}}
    answers   {"progress": {...}}, any number, then {"done": {...}, "head": ...} or {"problem": {...}}

Books that are only read stay open between requests, so that a second question about one does not calibrate it again.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from strikeout.book import Book
from strikeout.errors import MovedHeadError, StrikeoutError
from strikeout.service.library import Shelf, head_of, read_whole
from strikeout.service.people import Action
from strikeout.service.problems import INTERNAL, problem_of
from strikeout.service.verbs import VERBS, Verb

MOST_OPEN = 8  # books that stay open to be read
NICE = 5  # of workers that change books, so that pages do not wait for the processor while a book is calibrated


class Worker:
    """Runs one request after another, and writes the answers to a stream."""

    def __init__(self, answers: IO[str]) -> None:
        self._answers = answers
        self._shelf = Shelf(MOST_OPEN)

    def run(self, request: dict[str, Any]) -> None:
        """Run one request; whatever happens, the last answer is ``done`` or ``problem``."""
        try:
            verb = VERBS[request["verb"]]
            with self._book(verb, request["path"], request["who"]) as book:
                _check_head(book, request["head"])

                def work(book: Book) -> dict[str, Any]:
                    return verb.run(book, lambda facts: self._answer({"progress": facts}), **request["arguments"])

                is_once = verb.changes or verb.action is Action.VERIFY  # a check of the whole book takes long
                done, head = (work(book), head_of(book)) if is_once else read_whole(book, work)
                answer = {"done": done, "head": head}
        except Exception as error:
            problem = problem_of(error)
            if problem.code == INTERNAL:
                traceback.print_exc()
            self._shelf.close(request["path"])
            answer = {"problem": problem.to_plain()}
        self._answer(answer)

    @contextmanager
    def _book(self, verb: Verb, path: str, who: str) -> Iterator[Book]:
        if not verb.changes:
            yield self._shelf.book(path)
            return
        self._shelf.close(path)
        with Book.open(path, who=who) as book:
            yield book

    def _answer(self, answer: dict[str, Any]) -> None:
        self._answers.write(json.dumps(answer, allow_nan=False) + "\n")
        self._answers.flush()


def _check_head(book: Book, head: str | None) -> None:
    """Raise MovedHeadError if the ledger of a book does not end at this head."""
    found = head_of(book)
    if head is not None and found != head:
        raise MovedHeadError("The book has changed since you looked at it. Look again, then decide.", head=found)


def main() -> None:
    """Run the requests of standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints goes to the log, not between the answers
    if "--changes" in sys.argv:
        with suppress(OSError):
            os.nice(NICE)
    worker = Worker(answers)
    try:
        print('{"ready": true}', file=answers, flush=True)
        for line in sys.stdin:
            worker.run(json.loads(line))
    except (KeyboardInterrupt, BrokenPipeError, StrikeoutError):
        return


if __name__ == "__main__":
    main()
