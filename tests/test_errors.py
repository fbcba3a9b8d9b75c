"""Errors: a sentence for people, a code and facts for programs, wherever they were raised."""

from __future__ import annotations

import pickle

import strikeout as so
from strikeout.errors import RejectedError


def test_an_error_from_another_process_comes_back_whole():
    sent = RejectedError("3 of 9 rows are bad.", rows=9, rejected=3)
    got = pickle.loads(pickle.dumps(sent))
    assert (type(got), str(got), got.code, got.rows, got.facts) == (RejectedError, str(sent), "rejected", 9, sent.facts)
    assert isinstance(got, so.errors.StrikeoutError)
