"""The report: one offline page, every figure and number as a file, units everywhere."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import fields

import numpy as np
import pytest
from click.testing import CliRunner

from strikeout.cli import strikeout
from strikeout.cli.paper import SectionLine
from strikeout.errors import UsageError
from strikeout.paper.experiments import equivalence
from strikeout.paper.experiments.report import (
    QUICK,
    SECTIONS,
    Column,
    Finding,
    Picture,
    Section,
    Table,
    chosen,
    csv_of,
    html_of,
    section_of,
    time_text,
    write_report,
)

SECTION = Section("made-up", "A <title>", "Is it so?")


def figure():
    from strikeout.plots.style import blank, styled

    with styled():
        drawn = blank(2.0)
        drawn.subplots().plot([0, 1], [0, 1])
    return drawn


def finding():
    columns = (Column("what"), Column("time", "s"), Column("error", "currency", ".1e"))
    rows = [("one", 2.5e-6, 0.25), ("two", None, float("nan"))]
    return Finding(
        ("It is & it is not.",),
        {"shown": Table("A table.", columns, rows), "hidden": Table("Raw.", columns, rows, is_shown=False)},
        {"first": Picture("One.", figure), "second": Picture("Two.", figure)},
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    return write_report([(SECTION, finding())], out, scale=QUICK)


def test_every_figure_is_there_as_svg_and_png_and_every_table_as_csv(written):
    names = sorted(path.relative_to(written.parent).as_posix() for path in written.parent.rglob("*.*"))
    assert names == [
        "figures/made-up-first.png",
        "figures/made-up-first.svg",
        "figures/made-up-second.png",
        "figures/made-up-second.svg",
        "numbers/made-up-hidden.csv",
        "numbers/made-up-shown.csv",
        "numbers/made-up.json",
        "report.html",
    ]


def test_the_page_loads_nothing_and_holds_the_figures_the_table_and_the_command(written):
    page = written.read_text()
    assert page.count("<svg") == 2
    assert page.count("<table>") == 1
    assert "A &lt;title&gt;" in page
    assert "It is &amp; it is not." in page
    assert "strikeout paper made-up" in page
    outside = [link for link in re.findall(r'(?:src|href)="([^"]*)"', page) if not link.startswith("#")]
    assert outside == []


def test_no_two_parts_of_the_page_have_one_name_and_every_reference_finds_its_part(written):
    page = written.read_text()
    names = re.findall(r' id="([^"]+)"', page)
    assert len(names) == len(set(names))
    used = re.findall(r"url\(#([^)]+)\)", page) + re.findall(r'href="#([^"]+)"', page)
    assert used
    assert set(used) <= set(names)


def test_numbers_keep_all_digits_and_say_their_units(written):
    rows = list(csv.reader((written.parent / "numbers" / "made-up-shown.csv").open()))
    assert rows[0] == ["what", "time [s]", "error [currency]"]
    assert float(rows[1][1]) == 2.5e-6
    told = json.loads((written.parent / "numbers" / "made-up.json").read_text())
    assert told["tables"]["shown"]["rows"] == [["one", 2.5e-6, 0.25], ["two", None, None]]
    assert told["tables"]["shown"]["columns"][2] == {"name": "error", "unit": "currency"}


def test_a_table_on_the_page_has_its_units_in_the_heading_or_the_cell():
    text = html_of(finding().tables["shown"])
    assert "error (currency)" in text
    assert "2.5 µs" in text
    assert text.count(">-<") == 2


def test_a_column_with_any_number_in_it_is_set_to_the_right():
    text = html_of(Table("Mixed.", (Column("book"), Column("error", "SE")), [("small", "no price"), ("large", 2.0)]))
    assert text.count('class="words"') == 3  # the heading and two cells of the first column


def test_a_column_can_be_asked_for_by_name():
    table = finding().tables["shown"]
    assert table.column("what") == ["one", "two"]
    assert csv_of(table).splitlines()[2] == "two,,nan"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(18.164, "18.2 s"), (0.5, "500 ms"), (1.84e-6, "1.84 µs"), (3e-7, "0.3 µs"), (1234.0, "1,234 s")],
)
def test_times_choose_their_unit(seconds, text):
    assert time_text(seconds) == text


def test_a_report_cannot_go_where_a_file_is(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="taken"):
        write_report([], tmp_path / "taken", scale=QUICK)


def test_sections_come_in_the_order_of_the_report_whatever_the_order_asked():
    assert chosen(["tables", "equivalence"]) == ("equivalence", "tables")
    assert chosen([]) == SECTIONS


def test_an_unknown_section_is_refused_with_the_names_there_are():
    done = CliRunner().invoke(strikeout, ["paper", "appendix"])
    assert done.exit_code == 2
    assert "appendix" in done.stderr
    assert "equivalence" in done.stderr


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_asks_something_and_names_its_command(name):
    section = section_of(name)
    assert section.name == name
    assert section.question.endswith((".", "?"))
    assert section.command == f"strikeout paper {name}"


def test_the_same_scale_gives_the_same_numbers():
    runs = [equivalence.measured("small", seed=42, fractions=QUICK.fractions, runs=5) for _ in range(2)]
    for field in fields(equivalence.Runs):
        first, again = (getattr(one, field.name) for one in runs)
        assert np.array_equal(first, again), field.name


def test_the_command_writes_the_report_and_says_where(tmp_path):
    done = CliRunner().invoke(strikeout, ["paper", "sensitivity", "--quick", "--out", str(tmp_path / "here"), "--json"])
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["scale"] == "quick"
    assert list(told["seconds"]) == ["sensitivity"]
    page = (tmp_path / "here" / "report.html").read_text()
    assert "1. Leave one shard out" in page
    assert page.count("<svg") == 2


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_a_line_on_a_terminal_that_leaves_no_trace():
    screen = Screen()
    line = SectionLine(sections=2, stream=screen, width=10)
    line.begin("equivalence")
    line.begin("tables")
    line(0.5, "path 42")
    shown = screen.getvalue().split("\r")[-1]
    assert shown.startswith("━" * 8 + "·" * 2 + " 2 of 2, tables: path 42, ")  # one and a half of two, rounded
    line.end()
    assert screen.getvalue().endswith("\r" + " " * len(shown.rstrip()) + "\r")


def test_nothing_is_drawn_where_nobody_looks():
    pipe = io.StringIO()
    line = SectionLine(sections=1, stream=pipe)
    line.begin("tables")
    line(0.5, "path 42")
    line.end()
    assert pipe.getvalue() == ""
