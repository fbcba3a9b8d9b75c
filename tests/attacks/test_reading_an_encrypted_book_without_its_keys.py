"""An attacker has the file of an encrypted book, or an old copy of it, and wants contracts and prices."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, StrikeoutError
from tests.cli.typed import done, run

ROWS = [
    f"2024-01-0{2 + day},{T},{strike},{right},{price}"
    for day in range(2)
    for T in (0.1234567, 0.5123456)
    for strike, right, price in ((80, "P", 0.61), (90, "P", 1.9), (100, "C", 5.3), (110, "C", 1.7), (97.61, "C", 6.4))
]
MADE = "2024-01-02/T0.1234567/80/P"


@pytest.fixture
def file(tmp_path):
    """A vendor's file without ids."""
    path = tmp_path / "q.csv"
    lines = ["quote_date,expiry_years,strike,right,price,forward,discount", *(f"{row},100,1" for row in ROWS)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def book(tmp_path, file):
    """An encrypted book of that file, imported in pieces by the command; the file is gone."""
    folder = tmp_path / "book"
    folder.mkdir()
    done("init", folder / "a.book", "--encrypt")
    done("import", folder / "a.book", file)
    return folder / "a.book"


def test_the_file_holds_no_contract_in_an_id(book):
    data = b"".join(path.read_bytes() for path in book.parent.iterdir())
    assert re.findall(rb"2024-01-0\d/T|/(?:80|90|100|110|97\.61)/[CP]|0\.1234567", data) == []


def test_a_plain_book_has_readable_ids(tmp_path, file):
    """The control: without encryption ids are the contract, as documented."""
    done("init", tmp_path / "plain.book")
    done("import", tmp_path / "plain.book", file)
    assert MADE.encode() in (tmp_path / "plain.book").read_bytes()


def test_the_same_file_again_brings_nothing_new_whichever_way(book, file):
    with so.Book.open(book) as opened:
        assert len(opened.quotes()) == len(ROWS)
        again = opened.import_quotes(so.read_quotes(file))
        assert (again.imported, again.repeated) == (0, len(ROWS))
    assert "0 quotes imported, 20 there already" in run("import", book, file).output


def test_a_quote_is_found_by_its_readable_id_and_by_the_one_it_has(book, file):
    with so.Book.open(book) as opened:
        c, days = opened.quotes().contracts, opened.quotes().labels["date"].astype(str)
        (name,) = opened.quotes().ids[(c.strike == 80) & (c.expiry < 0.3) & (days == "2024-01-02")].tolist()
        assert name.startswith("q-")
        assert (
            opened.plan_erase(ids=[MADE]).count
            == opened.plan_erase(ids=MADE).count
            == opened.plan_erase(ids=[name]).count
            == 1
        )
        assert opened.request("erase", ids=[MADE]).count == 1
        assert opened.erase(ids=[MADE], reason="licence").residue == 0
        assert name not in opened.quotes().ids.tolist()
        back = opened.import_quotes(so.read_quotes(file))
        assert (back.imported, back.erased) == (0, (name,))
    done("erase", book, "--ids", "2024-01-02/T0.1234567/90/P", "--yes")


def test_names_that_say_nothing_stay(tmp_path):
    quotes = so.paper.quotes("small")
    with so.Book.create(tmp_path / "a.book", is_encrypted=True) as book:
        book.import_quotes(quotes)
        assert book.quotes().ids.tolist() == quotes.ids.tolist()


def test_an_old_copy_gives_no_parameters_from_which_erased_quotes_could_be_computed_back(tmp_path):
    """The keys of the other quotes are still there, so the copy opens; what was fitted to the erased one does not."""
    quotes = so.paper.quotes("small", seed=4)
    copy = tmp_path / "copy"
    copy.mkdir()
    with so.Book.create(tmp_path / "a.book", is_encrypted=True) as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None)
        old = book.forget(ids=quotes.ids[:1]).before
    shutil.copy(tmp_path / "a.book", copy / "a.book")
    data = (copy / "a.book").read_bytes()
    numbers = [*old.parameters.values(), *old.standard_errors.values(), old.rmse]
    assert not [x for x in numbers if x.hex().encode() in data or np.float64(x).tobytes() in data]
    with so.Book.open(tmp_path / "a.book") as book:
        book.erase(ids=quotes.ids[300:301], reason="subject-request")
    for name in ("a.book.key", "a.book.shardkeys"):
        shutil.copy(tmp_path / name, copy / name)
    with so.Book.open(copy / "a.book") as backup:
        with pytest.raises(RefusedError, match="destroyed"):
            _ = backup.snapshot().versions
        with pytest.raises(StrikeoutError):
            backup.certificate(4)
