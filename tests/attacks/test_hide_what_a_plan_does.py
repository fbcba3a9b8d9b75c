"""An attacker rewrites the plan that somebody else decides on, and wants it applied all the same."""

from __future__ import annotations

import dataclasses

import pytest

import strikeout as so
from strikeout.book.forget import Plan
from strikeout.errors import RefusedError, UsageError
from tests.cli.typed import done, run

LIES = (
    "before",
    "after",
    "moved",
    "path",
    "touched",
    "refit",
    "reason",
    "ticket",
    "tolerance",
    "ids",
    "latent",
    "seal",
)


def lie_about(plan, what):
    """The plan with one thing rewritten."""
    group = next(iter(plan.latent), "2024-01-02")
    changes = {
        "before": {"before": dict(plan.after)},
        "after": {"after": dict(plan.before)},
        "moved": {"moved": dict.fromkeys(plan.moved, 0.0)},
        "path": {"path": ("recalibrate: nothing to see",)},
        "touched": {"touched": {"2024-01-02 0.1": 1}},
        "refit": {"refit": ("the forward of 2024-01-02 moves by nothing",)},
        "reason": {"reason": {"code": "test", "text": "", "ticket": ""}},
        "ticket": {"reason": {**plan.reason, "ticket": "OPS-1"}},
        "tolerance": {"tolerance": 1e-300},
        "ids": {"ids": plan.ids[1:]},
        "latent": {"latent": {**plan.latent, group: (0.1, 0.1)}},
        "seal": {"seal": "0" * 64},
    }
    return dataclasses.replace(plan, **changes[what])


# How a lie shows, where not by its own name.
NAMED = {"reason": "seal", "ticket": "seal", "tolerance": "seal", "ids": "certificate"}


@pytest.fixture(scope="module", params=["plain", "panel"])
def book(request, tmp_path_factory):
    quotes = so.paper.quotes("small", seed=6) if request.param == "plain" else so.synthetic.panel_quotes(6, seed=6)
    with so.Book.create(tmp_path_factory.mktemp("book") / "a.book") as made:
        made.import_quotes(quotes)
        made.calibrate(panel=None if request.param == "plain" else "date")
        yield made


@pytest.fixture(scope="module")
def plan(book):
    return book.plan_forget(ids=book.quotes().ids[:20], reason="bad-feed")


@pytest.mark.parametrize("lie", LIES)
def test_a_plan_that_lies_is_refused_and_the_refusal_names_the_lie(book, plan, lie):
    lying = Plan.from_bytes(lie_about(plan, lie).to_bytes())
    assert lying != plan
    before = book.status()
    with pytest.raises(RefusedError) as error:
        book.apply(lying)
    assert NAMED.get(lie, lie) in error.value.differ
    assert book.status() == before


def test_a_plan_that_lies_in_everything_is_refused_for_everything(book, plan):
    lying = dataclasses.replace(
        plan,
        after=dict(plan.before),
        moved=dict.fromkeys(plan.moved, 0.0),
        touched={"2024-01-02 0.1": 1},
        reason={"code": "test", "text": "", "ticket": ""},
    )
    with pytest.raises(RefusedError) as error:
        book.apply(Plan.from_bytes(lying.to_bytes()))
    assert {"after", "moved", "touched", "seal"} <= {*error.value.differ}


def test_a_plan_with_the_seal_of_another_book_is_refused(book, plan, tmp_path):
    with so.Book.create(tmp_path / "b.book") as other:
        other.import_quotes(book.quotes())
        other.calibrate(panel=None)
        seal = other.plan_forget(ids=plan.ids, reason="bad-feed").seal
    with pytest.raises(RefusedError) as error:
        book.apply(dataclasses.replace(plan, seal=seal))
    assert error.value.differ == ["seal"]


@pytest.mark.parametrize(
    "change",
    [
        {"touched": {"2024-01-02 0.1": "1"}},
        {"reason": {"code": 1, "text": "", "ticket": ""}},
        {"ids": (1, 2)},
        {"path": (None,)},
        {"position": "1"},
        {"moved": {}},
    ],
    ids=str,
)
def test_a_plan_of_other_kinds_is_no_plan(plan, change):
    with pytest.raises(UsageError):
        Plan.from_bytes(dataclasses.replace(plan, **change).to_bytes())


def test_the_command_refuses_a_lying_plan_and_an_honest_one_is_applied(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    so.write_quotes(so.paper.quotes("small", seed=6), "a.csv")
    done("init", "a.book")
    done("import", "a.book", "a.csv")
    done("calibrate", "a.book", "--panel", "none")
    done("forget", "a.book", "--where", "strike = 90", "--reason", "bad-feed")
    path = next(tmp_path.glob("*plan*"))
    honest = path.read_bytes()
    path.write_bytes(dataclasses.replace(Plan.from_bytes(honest), touched={"2024-01-02 0.1": 1}).to_bytes())
    assert run("apply", "a.book").exit_code == 3
    path.write_bytes(honest)
    done("apply", "a.book")


def test_a_number_that_no_float_can_hold_is_refused_and_crashes_nothing(plan):
    name, value = next(iter(plan.after.items()))
    data = plan.to_bytes().replace(f'["{name}","{value.hex()}"]'.encode(), f'["{name}","{"9" * 400}"]'.encode())
    assert data != plan.to_bytes()
    with pytest.raises(UsageError):
        Plan.from_bytes(data)
