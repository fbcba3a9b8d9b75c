"""Quotes computed back from earlier parameters: what the report says about it, in numbers."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.paper.experiments.computing_back import computed_back
from strikeout.paper.experiments.erasure import KINDS, Attack, attacks_table, known_table, prices_off


@pytest.mark.parametrize("seed", [1, 2])
def test_as_many_prices_follow_as_parameters_were_published_and_not_one_more(seed):
    """Five equations determine five prices; of six only sums are known, and prices stay as unknown as their noise."""
    assert max(prices_off(count, seed=seed) for count in (1, 3, 5)) < 1e-6
    assert prices_off(6, seed=seed) > 1e-5


def test_at_parameters_that_never_knew_a_quote_nothing_is_found():
    """The control: the retained quotes' own optimum has a score of zero, and what is computed from it is noise."""
    quotes, model = so.paper.quotes("small", seed=5), so.Heston()
    gone = quotes[[200]]
    kept = quotes.without(gone.ids)
    knew, never = (so.calibrate(book, model).parameters for book in (quotes, kept))
    assert computed_back(model, knew, kept)[0].off(gone) < 1e-9
    assert computed_back(model, never, kept)[0].off(gone) > 1e-6


def test_numbers_that_are_not_a_calibration_s_give_a_wrong_guess_and_no_failure():
    """An attacker tries all numbers a book holds; at the corner of the model no price moves with the parameters."""
    quotes, model = so.paper.quotes("small"), so.Heston()
    corner = dict(zip(model.parameters.names, model.parameters.lower.tolist(), strict=True))
    assert computed_back(model, corner, quotes[1:])[0].off(quotes[:1]) > 0.01


def test_the_tables_count_what_was_computed_back():
    plain, moments = KINDS[0], KINDS[3]
    found = [
        Attack(plain, 1, "bad-feed", True, 2e-11),
        Attack(plain, 2, "bad-feed", False, np.inf),
        Attack(plain, 1, "subject-request", False, np.inf),
        Attack(moments, 1, "bad-feed", True, 4e-11),
    ]
    rows = {row[:2]: row[2:] for row in attacks_table(found).rows}
    assert rows["plain", "bad-feed"] == (2, 1, 2e-11)
    assert rows["plain", "subject-request"] == (1, 0, None)
    assert rows["moments", "bad-feed"] == (1, 1, 4e-11)
    assert known_table({5: [1e-9, 3e-9, 2e-9]}).rows == [(5, 2e-9, 3e-9)]
