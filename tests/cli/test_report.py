"""``strikeout report`` and ``strikeout summary``: a book on one page, and in a few lines."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

EARLY = "date < '2024-01-10'"


@pytest.fixture
def path(tmp_path):
    with so.Book.create(tmp_path / "<a>.book", who="ann & bob") as book:
        book.import_quotes(so.paper.quotes("small"))
    return tmp_path / "<a>.book"


def run(*words, code=0):
    done = CliRunner().invoke(strikeout, list(map(str, words)))
    assert done.exit_code == code, done.output
    return done.stdout


def written(path):
    out = path.with_name("fit.html")
    run("report", path, "--out", out)
    return out.read_text()


def test_the_page_holds_fit_influence_certificate_and_log_and_loads_nothing(path):
    with so.Book.open(path) as book:
        book.calibrate()
        certificate = book.forget(where=EARLY, reason="bad-feed").certificate
        parameters = book.status().version.parameters
        root = book.status().root
    page = written(path)
    for heading in ("Calibration", "Smiles", "Residuals", "Total variance", "Influence", "Last certificate", "Log"):
        assert f"<h2>{heading}</h2>" in page
    assert page.count("<svg") == 8  # the path of a panel besides, for the book has many dates
    assert certificate.digest() in page
    assert root in page
    assert "bad-feed" in page
    assert f"{parameters['mean_reversion']:.4g}"[:5] in page
    assert re.findall(r"<script|<link|<img|src=[\"']?http|url\(http|<a>|ann & bob", page) == []
    assert "&lt;a&gt;.book" in page


def test_a_book_without_a_calibration_has_a_page_that_says_so(path):
    page = written(path)
    assert "not calibrated yet" in page
    assert page.count("<table") == 2
    assert "<svg" not in page


def test_the_influence_of_a_single_day_goes_by_expiry_and_is_drawn_by_moneyness(tmp_path):
    path = tmp_path / "day.book"
    with so.Book.create(path) as book:
        book.import_quotes(so.inspect_quotes(so.synthetic.write_sample(tmp_path / "chain.csv")).quotes)
        book.calibrate(select="otm", weights="spread")
    told = written(path).partition("<h2>Influence</h2>")[2].partition("<h2>")[0]
    assert told.count("<tr><td>202") == 8  # the expiries of the sample
    assert "standard deviations to expiry" in told
    assert "inf<" not in told  # without the only day nothing would be left to compare with


def test_a_label_that_the_quotes_lack_is_told_on_the_page(path):
    with so.Book.open(path) as book:
        book.calibrate()
    out = path.with_name("fit.html")
    run("report", path, "--out", out, "--by", "moon")
    assert "moon" in out.read_text().partition("<h2>Influence</h2>")[2].partition("<h2>")[0]


def test_a_report_shows_quotes_so_erasing_takes_it_away(path):
    with so.Book.open(path) as book:
        book.calibrate()
    written(path)
    with so.Book.open(path) as book:
        assert book.log()[-1].what == "report"
        assert any("fit.html" in line for line in book.plan_erase(where=EARLY).gone)
        assert book.erase(where=EARLY).residue == 0
    assert not path.with_name("fit.html").exists()


def test_a_report_ends_in_html_and_one_that_cannot_be_written_leaves_no_entry(path, tmp_path):
    run("report", path, "--out", tmp_path / "fit.pdf", code=2)
    run("report", path, "--out", tmp_path / "nowhere" / "fit.html", code=2)
    with so.Book.open(path) as book:
        assert [entry.what for entry in book.log()] == ["create", "import"]


def test_the_summary_is_the_books_own(path):
    with so.Book.open(path) as book:
        book.calibrate()
        assert run("summary", path).strip() == book.summary(one_value="--panel none").strip()
        told = json.loads(run("summary", path, "--json"))
        assert told["calibration"]["parameters"] == dict(book.status().version.parameters)


def test_a_page_that_exists_is_replaced_only_on_request(path, tmp_path):
    out = tmp_path / "fit.html"
    out.write_text("mine")
    with so.Book.open(path) as book:
        entries = len(book.log())
    run("report", path, "--out", out, code=2)
    with so.Book.open(path) as book:
        assert len(book.log()) == entries
    assert out.read_text() == "mine"
    run("report", path, "--out", out, "--force")
    assert "<html" in out.read_text("utf-8")
