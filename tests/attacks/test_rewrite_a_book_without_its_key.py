"""Somebody with the file of a book and not its key wants it to say something else, and `verify` to find nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.canonical import canonical
from strikeout.errors import DamagedBookError
from tests.attacks.forger import Tables, change_quotes, forging, page, put_back, put_page
from tests.raising import raises

DAY = so.paper.quotes("small", seed=4)[:270]
ASIDE = DAY.ids[10:30].tolist()
SETTINGS: dict[str, Any] = {"starts": 1}


def doubled(quotes: so.Quotes, which: Any) -> so.Quotes:
    return quotes.with_observed(np.where(which, 2 * quotes.observed, quotes.observed))


def relabelled(quotes: so.Quotes, name: str, value: str) -> so.Quotes:
    return replace(quotes, labels={**quotes.labels, name: np.array([value] * len(quotes), object)})


def swapped(quotes: so.Quotes) -> so.Quotes:
    names = quotes.ids.tolist()
    names[0], names[1] = names[1], names[0]
    return replace(quotes, ids=np.array(names))


def dearer(quotes: so.Quotes) -> so.Quotes:
    """Quotes whose strikes are a little higher, for those that are set aside."""
    c = quotes.contracts
    strike = np.where(np.isin(quotes.ids, ASIDE), 1.01 * c.strike, c.strike)
    return replace(quotes, contracts=replace(c, strike=strike))


# --- the books -------------------------------------------------------------------------------------------------------


def forgotten(path: Path, *, panel: str | None = None) -> None:
    with so.Book.create(path) as book:
        book.import_quotes(DAY)
        book.calibrate(panel=panel, **SETTINGS)
        book.forget(ids=ASIDE, reason="bad-feed")


def panel(path: Path) -> None:
    forgotten(path, panel="date")


def uncalibrated(path: Path) -> None:
    with so.Book.create(path) as book:
        book.import_quotes(DAY)


def imported_since(path: Path) -> None:
    with so.Book.create(path) as book:
        book.import_quotes(DAY[:250])
        book.calibrate(panel=None, **SETTINGS)
        book.import_quotes(DAY[250:])


def out_of_the_money(path: Path) -> None:
    with so.Book.create(path) as book:
        book.import_quotes(DAY)
        book.calibrate(panel=None, select="otm", **SETTINGS)


def erased(path: Path) -> None:
    with so.Book.create(path) as book:
        book.import_quotes(DAY)
        book.erase(ids=DAY.ids[:5])


def exported(path: Path) -> None:
    with so.Book.create(path) as book:
        book.import_quotes(DAY)
        book.export(path.with_name("out.csv"))


def requested(path: Path) -> None:
    with so.Book.create(path, who="clerk") as book:
        book.import_quotes(DAY)
        book.request("erase", where="strike = 90", reason="licence")


# --- the edits -------------------------------------------------------------------------------------------------------


def prices_set_aside(tables: Tables) -> None:
    change_quotes(tables, lambda quotes: doubled(quotes, np.isin(quotes.ids, ASIDE)))


def every_price(tables: Tables) -> None:
    change_quotes(tables, lambda quotes: doubled(quotes, True))


def prices_in_the_money(tables: Tables) -> None:
    def change(quotes: so.Quotes) -> so.Quotes:
        c = quotes.contracts
        return doubled(quotes, np.where(c.is_call, c.strike < c.forward, c.strike > c.forward))

    change_quotes(tables, change)


def last_prices(tables: Tables) -> None:
    change_quotes(tables, lambda quotes: doubled(quotes, np.isin(quotes.ids, DAY.ids[250:])))


def sources(tables: Tables) -> None:
    change_quotes(tables, lambda quotes: relabelled(quotes, "source", "elsewhere"))


def dates(tables: Tables) -> None:
    change_quotes(tables, lambda quotes: relabelled(quotes, "date", "2024-12-24"))


def spreads(tables: Tables) -> None:
    change_quotes(tables, lambda quotes: replace(quotes, spread=np.full(len(quotes), 0.5)))


def weights_set_aside(tables: Tables) -> None:
    def change(quotes: so.Quotes) -> so.Quotes:
        return replace(quotes, weight=np.where(np.isin(quotes.ids, ASIDE), 2.0, quotes.weight))

    change_quotes(tables, change)


def strikes_set_aside(tables: Tables) -> None:
    change_quotes(tables, dearer)


def ids_swapped(tables: Tables) -> None:
    change_quotes(tables, swapped)


def quotes_set_aside_taken_away(tables: Tables) -> None:
    tables.execute("DELETE FROM marks")
    change_quotes(tables, lambda quotes: quotes[~np.isin(quotes.ids, ASIDE)])


def a_quote_put_in(tables: Tables) -> None:
    def change(quotes: so.Quotes) -> so.Quotes:
        rows = [*range(len(quotes)), 0]
        return so.Quotes(
            ids=[*quotes.ids.tolist(), f"again {quotes.ids[0]}"],
            contracts=quotes.contracts[rows],
            observed=quotes.observed[rows],
            labels={name: column[rows] for name, column in quotes.labels.items()},
        )

    change_quotes(tables, change)


def a_mark_taken_away(tables: Tables) -> None:
    tables.execute("DELETE FROM marks WHERE id = ?", (ASIDE[0].encode(),))


def a_mark_of_another_entry(tables: Tables) -> None:
    tables.execute("UPDATE marks SET entry = 3 WHERE id = ?", (ASIDE[0].encode(),))


def commitments_removed(tables: Tables) -> None:
    (name,) = tables.execute("SELECT name FROM pages WHERE kind = 'erased'").fetchone()
    put_page(tables, "erased", name, canonical(json.loads(page(tables, "erased", name))[:1]))


def listed(path: str) -> bytes:
    """A list of known files with this one on it, as written and as condemned."""
    return canonical({"written": {path: "0" * 64}, "condemned": {path: "0" * 64}})


def files_named(tables: Tables) -> None:
    put_page(tables, "setting", "files", listed("/elsewhere/precious.txt"))


def files_forgotten(tables: Tables) -> None:
    tables.execute("DELETE FROM pages WHERE kind = 'setting' AND name = 'files'")


def certificate_removed(tables: Tables) -> None:
    tables.execute("DELETE FROM pages WHERE kind = 'certificate'")


def wording(tables: Tables) -> None:
    (name,) = tables.execute("SELECT name FROM pages WHERE kind = 'request'").fetchone()
    put_page(tables, "request", name, canonical({"ids": [], "where": "strike = 100"}))


def sums_exchanged(tables: Tables) -> None:
    tables.execute("UPDATE seal SET sums = x'00'")


@dataclass(frozen=True)
class Edit:
    """A change to a file, to which book, and the word by which it must be named."""

    change: Callable[[Tables], None]
    book: Callable[[Path], None]
    named: str


EDITS = [
    Edit(prices_set_aside, forgotten, "quotes"),
    Edit(prices_set_aside, panel, "quotes"),
    Edit(weights_set_aside, forgotten, "quotes"),
    Edit(strikes_set_aside, panel, "quotes"),
    Edit(sources, forgotten, "quotes"),
    Edit(dates, forgotten, "quotes"),
    Edit(spreads, forgotten, "quotes"),
    Edit(ids_swapped, forgotten, "quotes"),
    Edit(every_price, uncalibrated, "quotes"),
    Edit(last_prices, imported_since, "quotes"),
    Edit(prices_in_the_money, out_of_the_money, "quotes"),
    Edit(quotes_set_aside_taken_away, panel, "quotes"),
    Edit(a_quote_put_in, uncalibrated, "quotes"),
    Edit(a_mark_taken_away, forgotten, "marks"),
    Edit(a_mark_of_another_entry, panel, "marks"),
    Edit(commitments_removed, erased, "erased"),
    Edit(files_named, uncalibrated, "'files'"),
    Edit(files_forgotten, exported, "setting"),
    Edit(certificate_removed, forgotten, "certificate"),
    Edit(wording, requested, "request"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[[Callable[[Path], None]], Path]:
    """A folder with the book that a function makes; made once, copied for every edit."""
    folders: dict[str, Path] = {}

    def folder_of(make: Callable[[Path], None]) -> Path:
        if make.__name__ not in folders:
            folders[make.__name__] = tmp_path_factory.mktemp(make.__name__)
            make(folders[make.__name__] / "px.book")
        return folders[make.__name__]

    return folder_of


def copied(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "copied")
    return tmp_path / "copied" / "px.book"


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: f"{edit.change.__name__}-{edit.book.__name__}")
def test_an_edit_without_the_key_is_found_and_named(edit, made, tmp_path):
    path = copied(made(edit.book), tmp_path)
    with so.Book.open(path) as book:
        assert book.verify().holds
    with forging(path) as tables:
        edit.change(tables)
    with so.Book.open(path) as book:
        found = book.verify()
        assert not found.holds
        assert any(edit.named in reason for reason in found.reasons), found.reasons


def test_the_price_of_a_quote_set_aside_cannot_be_restored_to_another(made, tmp_path):
    path = copied(made(panel), tmp_path)
    with forging(path) as tables:
        prices_set_aside(tables)
    with so.Book.open(path) as book:
        with pytest.raises(DamagedBookError, match="book's key"):
            book.restore()
        assert len(book.log()) == 4


def test_an_erasure_deletes_no_file_that_somebody_else_put_on_the_list(made, tmp_path):
    path, precious = copied(made(uncalibrated), tmp_path), tmp_path / "precious.txt"
    precious.write_text("x")
    with forging(path) as tables:
        put_page(tables, "setting", "files", listed(str(precious)))
    with so.Book.open(path) as book, pytest.raises(DamagedBookError):
        book.erase(ids=[str(DAY.ids[0])])
    assert precious.exists()


def test_erased_quotes_cannot_come_back_because_their_commitments_were_removed(made, tmp_path):
    path = copied(made(erased), tmp_path)
    with forging(path) as tables:
        commitments_removed(tables)
    with so.Book.open(path) as book:
        with pytest.raises(DamagedBookError):
            book.import_quotes(DAY[:5])
        assert not book.verify().holds


def test_rows_that_were_once_true_cannot_be_put_back(tmp_path):
    path, older = tmp_path / "px.book", tmp_path / "older.book"
    exported(path)
    shutil.copy(path, older)
    with so.Book.open(path) as book:
        book.erase(ids=DAY.ids[:3])
    with forging(path) as tables:
        put_back(tables, older, "chunks")
        put_back(tables, older, "names")
    with so.Book.open(path) as book:
        found = book.verify()
        assert any(reason.startswith("STORE") and "quotes" in reason for reason in found.reasons), found.reasons


def test_everything_put_back_but_the_ledger_is_said_to_be_of_an_earlier_entry(tmp_path):
    path, older = tmp_path / "px.book", tmp_path / "older.book"
    uncalibrated(path)
    shutil.copy(path, older)
    with so.Book.open(path) as book:
        book.import_quotes(so.paper.quotes("small", seed=4)[270:280])
        book.erase(ids=DAY.ids[:3])
    with forging(path) as tables:
        for table in ("chunks", "names", "marks", "pages", "footprints", "states", "seal"):
            put_back(tables, older, table)
    with so.Book.open(path) as book:
        found = {check.name: check for check in book.verify().checks}
        assert found["CONTENTS"].holds is False
        assert "of entry 2." in found["CONTENTS"].found
        with raises(DamagedBookError, count=5):
            book.import_quotes(so.paper.quotes("small", seed=4)[280:281])


def test_sums_that_were_exchanged_are_found_and_nothing_is_built_on_them(made, tmp_path):
    path = copied(made(uncalibrated), tmp_path)
    with forging(path) as tables:
        sums_exchanged(tables)
    with so.Book.open(path) as book:
        assert not book.verify().holds
        with raises(DamagedBookError, count=2):
            book.import_quotes(so.paper.quotes("small", seed=4)[270:280])
