"""Removals from all books of a folder on a page: the plan, requests, an approval by ticket, and the evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

import strikeout as so
from strikeout.service.people import Role, Tokens, new_token
from tests.service.conftest import copied, serving
from tests.service.test_pages import HTML

WHERE = "strike = 90"


@pytest.fixture
def folder(shelf, tmp_path):
    """Two books with the same quotes; in the second a removal needs two persons."""
    place = tmp_path / "books"
    place.mkdir()
    for name in ("free", "strict"):
        copied(shelf, place, name)
    with so.Book.open(place / "strict.book", who="operator") as book:
        book.set_approval("two-person")
    return place


@pytest.fixture
def desk(folder, tmp_path):
    made = {role: new_token(role, Role(role)) for role in ("operator", "approver", "reader")}
    file = tmp_path / "tokens"
    file.write_text("".join(f"{line}\n" for _, line in made.values()))
    file.chmod(0o600)
    yield from serving(folder, Tokens(file), {role: token for role, (token, _) in made.items()}, workers=1)


@contextmanager
def signed_in(desk, role) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=desk.address, headers=HTML, timeout=60, follow_redirects=True) as client:
        client.post("/sign-in", data={"token": desk.tokens[role], "then": "/removals"})
        yield client


def fill(page: httpx.Response, **more: str) -> dict[str, str]:
    """The hidden fields of the page, and those that a person fills in."""
    return {**dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page.text)), **more}


def outcomes(page: httpx.Response) -> dict[str, str]:
    """What became of each book."""
    assert page.status_code == 200, page.text
    rows = re.findall(r"<tr><td><a[^>]*>(\w+)</a>.*?<td class=\"words[^>]*>([^<]*)</td></tr>", page.text, re.DOTALL)
    return dict(rows)


def state(folder, name) -> tuple[int, int]:
    with so.Book.open(folder / f"{name}.book") as book:
        status = book.status()
        return status.set_aside, status.erased


def test_a_book_that_cannot_be_opened_has_a_row_of_its_own_and_no_problem_names_a_folder(desk, folder):
    (folder / "broken.book").write_bytes(b"not a book")
    with signed_in(desk, "operator") as operator:
        plan = operator.get("/removals", params={"where": WHERE})
        seen = [plan, operator.get("/"), operator.get("/books/broken"), operator.get("/v1/books")]
        assert outcomes(plan).keys() == {"broken", "free", "strict"}
        assert outcomes(plan)["free"] == "planned"
        assert all("broken.book" in page.text and str(folder) not in page.text for page in seen)


def test_one_plan_one_approval_and_one_page_of_evidence_for_all_books(desk, folder):
    with signed_in(desk, "operator") as operator, signed_in(desk, "approver") as approver:
        plan = operator.get("/removals", params={"where": WHERE})
        assert outcomes(plan) == {"free": "planned", "strict": "planned"}
        assert state(folder, "free") == (0, 0)
        why = {"code": "licence", "ticket": "L-7"}
        first = operator.post("/removals/do", data=fill(plan, **why))
        assert outcomes(first) == {"free": "done", "strict": "approval requested"}
        assert outcomes(approver.post("/removals/approve", data=fill(approver.get("/removals"), ticket="L-7"))) == {
            "strict": "approved"
        }
        again = operator.get("/removals", params={"where": WHERE})
        done = operator.post("/removals/do", data=fill(again, **why))
        assert outcomes(done) == {"free": "no quote matches", "strict": "done"}
        assert state(folder, "free") == state(folder, "strict") == (state(folder, "free")[0], 0)
        assert state(folder, "free")[0] > 0
        evidence = operator.get("/removals/evidence", params={"ticket": "L-7"})
        assert evidence.status_code == 200
        assert "free" in evidence.text
        assert "strict" in evidence.text
        assert operator.get("/removals/evidence", params={"ticket": "other"}).status_code == 422
    for name in ("free", "strict"):
        with so.Book.open(folder / f"{name}.book") as book:
            assert book.verify()


def test_an_erasure_needs_the_name_of_the_folder_and_the_books_as_they_were_shown(desk, folder):
    with signed_in(desk, "operator") as operator:
        plan = operator.get("/removals", params={"where": WHERE, "what": "erase"})
        wrong = operator.post("/removals/do", data=fill(plan, code="licence", confirm="other"))
        assert wrong.status_code == 400
        with so.Book.open(folder / "free.book", who="operator") as book:
            book.calibrate(loss="huber")
        moved = operator.post("/removals/do", data=fill(plan, code="licence", confirm="books"))
        assert moved.status_code == 412
        assert state(folder, "free") == (0, 0)
        plan = operator.get("/removals", params={"where": WHERE, "what": "erase"})
        done = operator.post("/removals/do", data=fill(plan, code="licence", confirm="books"))
        assert outcomes(done)["free"] == "done"
        assert state(folder, "free")[1] > 0


def test_a_form_of_another_site_and_a_reader_change_nothing(desk, folder):
    with signed_in(desk, "reader") as reader, signed_in(desk, "operator") as operator:
        plan = reader.get("/removals", params={"where": WHERE})
        assert outcomes(plan) == {"free": "planned", "strict": "planned"}
        assert reader.post("/removals/do", data=fill(plan, code="test")).status_code == 403
        shown = operator.get("/removals", params={"where": WHERE})
        forged = {**fill(shown, code="test"), "form_token": "0" * 64}
        assert operator.post("/removals/do", data=forged).status_code == 401
        markup = operator.get("/removals", params={"where": "<b>x</b> = 1"})
        assert "<b>x</b>" not in markup.text
    assert state(folder, "free") == (0, 0)
