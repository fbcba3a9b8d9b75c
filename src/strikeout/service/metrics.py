"""Counts and times for Prometheus: quotes by state, seconds by verb, refusals by code, requests, verifications."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Metrics:
    """The metrics of one server. Labels are names of books, verbs and codes; no value comes from a quote."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "strikeout_verb_seconds", "Seconds by verb.", ["verb"], registry=self._registry, buckets=BUCKETS
        )
        self._refusals = Counter(
            "strikeout_refusals_total", "Requests that were refused, by code.", ["code"], registry=self._registry
        )
        self._quotes = self._gauge("strikeout_quotes", "Quotes by book and state.", "book", "state")
        self._pending = self._gauge("strikeout_requests_open", "Requests that wait for a decision.", "book")
        self._oldest = self._gauge(
            "strikeout_requests_oldest_seconds", "Age of the oldest request that waits for a decision.", "book"
        )
        self._verified = self._gauge(
            "strikeout_last_verified_timestamp_seconds", "Time of the last successful verification here.", "book"
        )
        self._broken = self._gauge("strikeout_books_unreadable", "Files that cannot be opened as books.")

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry)

    def ran(self, verb: str, seconds: float) -> None:
        """Count a verb that ended, and its time."""
        self._seconds.labels(verb).observe(seconds)

    def refused(self, code: str) -> None:
        """Count a request that was answered with a problem."""
        self._refusals.labels(code).inc()

    def verified(self, book: str) -> None:
        """Note that a book was verified now."""
        self._verified.labels(book).set(time.time())

    def expose(self, books: Mapping[str, tuple[Mapping[str, int], Sequence[str]]], *, broken: int) -> bytes:
        """Return all metrics as text.

        Args:
            books: quotes by state, and since when requests wait for a decision (``readings.measured``).
            broken: how many files cannot be opened as books.
        """
        now = datetime.now(UTC)
        for gauge in (self._quotes, self._pending, self._oldest):
            gauge.clear()
        for name, (counts, waiting) in books.items():
            for state, count in counts.items():
                self._quotes.labels(name, state).set(count)
            ages = [(now - datetime.fromisoformat(at)).total_seconds() for at in waiting]
            self._pending.labels(name).set(len(ages))
            self._oldest.labels(name).set(max(ages, default=0.0))
        self._broken.set(broken)
        return generate_latest(self._registry)
