"""Tables in a pipe lose nothing; progress shows late, on a terminal only, and leaves no trace."""

from __future__ import annotations

import io

import pytest

import strikeout as so
from strikeout.calibration.smiles import smile_table
from strikeout.cli import terminal
from strikeout.tables import Table

LONG = "a sentence that is longer than any terminal is wide, and which a pipe must neither wrap nor cut " * 3


class Screen(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Seconds that pass when told to."""

    now = 0.0

    def __call__(self):
        return self.now


def test_in_a_pipe_nothing_is_wrapped_cut_or_coloured(capsys):
    terminal.show(Table(("name", "value"), [(LONG, "0.123456789")], numbers=(1,)), terminal.facts([("x", LONG)]))
    said = capsys.readouterr().out
    assert said.count(LONG.rstrip()) == 2
    assert "0.123456789" in said
    assert "\x1b" not in said
    assert [line for line in said.splitlines() if line != line.rstrip()] == []


def test_a_terminal_without_capabilities_has_its_own_width(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(terminal, "_columns", lambda: 60)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    terminal.show(terminal.facts([("x", LONG)]))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_square_brackets_are_shown_not_obeyed(capsys):
    terminal.show("line 3: '[bold]' :smile:", Table(("a",), [("[red]x[/red]",)]))
    said = capsys.readouterr().out
    assert "'[bold]' :smile:" in said
    assert "[red]x[/red]" in said


def test_hints_are_kept_from_pipes(capsys):
    terminal.hint("strikeout demo")
    assert capsys.readouterr() == ("", "")


def test_progress_is_silent_for_two_seconds_then_shows_and_leaves_nothing():
    clock, screen = Clock(), Screen()
    progress = terminal.ProgressLine(starts=4, stream=screen, clock=clock)
    progress(0, None)
    clock.now = 1.9
    progress(1, None)
    assert screen.getvalue() == ""
    clock.now = 2.5
    progress(2, None)
    assert "start 3 of 4, 3 steps, 2 s" in screen.getvalue()
    progress.end()
    assert screen.getvalue().endswith("\r")
    assert screen.getvalue().split("\r")[-2].strip() == ""


def test_a_comparison_says_which_model_it_is_at():
    clock, screen = Clock(), Screen()
    line = terminal.ComparingLine(stream=screen, clock=clock)
    line("heston", 0, 9)
    assert screen.getvalue() == ""
    clock.now = 3.0
    line("bates", 1, 9)
    assert "bates, 1 of 9 models done, 3 s" in screen.getvalue()


def test_progress_is_not_written_more_often_than_an_eye_can_read():
    clock, screen = Clock(), Screen()
    progress = terminal.ProgressLine(starts=4, stream=screen, clock=clock)
    for step in range(1000):
        clock.now = 3.0 + step * 1e-4
        progress(0, None)
    assert screen.getvalue().count("\r") <= 2


def test_progress_never_shows_where_nobody_looks():
    clock, pipe = Clock(), io.StringIO()
    progress = terminal.ProgressLine(starts=4, stream=pipe, clock=clock)
    clock.now = 100.0
    progress(0, None)
    progress.end()
    assert pipe.getvalue() == ""


def test_a_hint_can_be_typed_where_strikeout_is_not_on_the_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "")
    command = "strikeout import strikeout.book quotes.csv"
    assert terminal.typed(command) == ".venv/bin/python -m strikeout import strikeout.book quotes.csv"
    (folder / "strikeout").write_text("")
    assert terminal.typed(command) == ".venv/bin/strikeout import strikeout.book quotes.csv"
    (folder / "strikeout").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    assert terminal.typed(command) == command


def test_how_much_of_a_file_is_read_shows_after_a_second_and_only_on_a_terminal():
    clock, screen, pipe = Clock(), Screen(), io.StringIO()
    on_screen, in_pipe = (terminal.ReadingLine(stream=stream, clock=clock) for stream in (screen, pipe))
    on_screen(0.1)
    assert screen.getvalue() == ""
    clock.now = 3.0
    on_screen(0.5)
    in_pipe(0.5)
    assert "reading ━━━━━━━━━━··········  50%, 3 s" in screen.getvalue()
    on_screen.end()
    in_pipe.end()
    assert screen.getvalue().split("\r")[-2].strip() == ""
    assert pipe.getvalue() == ""


LOG = (
    ("entry", "when", "who", "what", "counts", "why"),
    [
        ("1", "2024-03-01T12:00:00Z", "ann", "create", "retained 0", ""),
        ("5", "2024-03-01T12:00:00Z", "ann", "restore", "of 4, restored 36, retained 540", "bad-feed (a long story)"),
        ("8", "2024-03-01T12:00:00Z", "ben", "request forget", "asked 36, retained 504", "other"),
    ],
)
AUDIT = (
    ("check", "result", "found"),
    [("LEDGER", "holds", f"11 entries, numbered and signed; the root is {'c4ea0a2b' * 8}."), ("STATES", "-", LONG)],
)


def drawn_at(monkeypatch, capsys, columns, *, headings, rows, **how):
    monkeypatch.setattr(terminal, "_columns", lambda: columns)
    terminal.show(Table(headings, rows, **how))
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", [60, 66, 72, 80, 100, 140])
def test_a_narrow_terminal_wraps_and_cuts_nothing(monkeypatch, capsys, columns):
    for (headings, rows), how in (
        (LOG, {"numbers": (0,), "whole": (1,), "spare": (2, 5)}),
        (AUDIT, {"whole": (0, 1)}),
    ):
        said = drawn_at(monkeypatch, capsys, columns, headings=headings, rows=rows, **how)
        assert max(map(len, said.splitlines())) <= columns
        caption = said.partition("Wider terminals show ")[2].removesuffix(" too.\n").split(", ")
        spare = {headings[place] for place in how.get("spare", ()) if headings[place] in caption}
        cells = [cell for row in rows for name, cell in zip(headings, row, strict=True) if name not in spare]
        letters = sorted("".join([*cells, *(name for name in headings if name not in spare)]).replace(" ", ""))
        told = said.split("Wider terminals")[0]
        assert sorted("".join(told.split())) == letters, f"{columns} columns"


@pytest.mark.parametrize("columns", [50, 60, 80])
def test_a_long_id_is_wrapped_before_a_number_or_a_heading_is(monkeypatch, capsys, columns):
    names = [f"SPX/SPXW/2022-01-07/16:00:00/2022-01-{day}/4450/P" for day in (24, 31)]
    rows = [(name, "2022-01-24", "4450", "12.170", "0.16") for name in names]
    heads = ("id", "expiry", "strike", "expected", "score")
    said = drawn_at(
        monkeypatch, capsys, columns, headings=heads, rows=rows, numbers=(2, 3, 4), whole=(0, 1), spare=(4,)
    )
    assert max(map(len, said.splitlines())) <= columns
    assert all(said.split().count(word) == 2 for word in ("4450", "12.170", "2022-01-24"))
    assert {"strike", "expected", "expiry"} <= set(said.split())


def test_who_did_it_is_in_a_log_of_80_columns(monkeypatch, capsys):
    said = drawn_at(monkeypatch, capsys, 80, headings=LOG[0], rows=LOG[1], numbers=(0,), whole=(1,), spare=(2, 5))
    assert "ann" in said
    assert "Wider" not in said


def test_long_lines_go_on_beside_the_name_they_begin_with_on_a_terminal_and_stay_whole_in_a_pipe(monkeypatch, capsys):
    text = f"gone   {LONG.strip()}\n- {LONG.strip()}\nshort"
    terminal.show_lines(text)
    assert capsys.readouterr().out == text + "\n"
    monkeypatch.setattr(terminal, "_columns", lambda: 60)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    terminal.show_lines(text)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[1].startswith(" " * 7)
    assert not lines[1].startswith(" " * 8)
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())


def test_a_narrow_log_leaves_out_the_reason_before_the_person():
    from strikeout.cli.book_commands import ENTRY_HEADINGS, entry_table

    spare = [ENTRY_HEADINGS[place] for place in entry_table([], {}).spare]
    assert spare == ["why", "who"]


@pytest.fixture(scope="module")
def smiles():
    quotes = so.synthetic.random_quotes(14, maturities=1, seed=3)
    return smile_table(so.calibrate(quotes, so.SVI(), starts=1))


@pytest.mark.parametrize("columns", [60, 70, 80, 120])
def test_every_part_of_a_table_of_smiles_names_the_expiry_and_cuts_no_number(monkeypatch, smiles, columns):
    monkeypatch.setattr(terminal, "_columns", lambda: columns)
    table = smiles
    for part in terminal.split(table):
        if not isinstance(part, Table):
            continue
        assert part.headings[0] == "expiry"
        widths = [
            2 + max(map(len, [head, *(terminal.cell_text(row[at]) for row in part.rows)]))
            for at, head in enumerate(part.headings)
        ]
        assert sum(widths) - 2 <= columns


def test_a_narrow_table_leaves_out_empty_columns_first_and_does_not_offer_them(monkeypatch, capsys):
    table = {"headings": ("entry", "approval", "why"), "rows": [("1", "", "a" * 40)], "spare": (2,)}
    assert drawn_at(monkeypatch, capsys, 50, **table).splitlines() == ["entry  why", "1      " + "a" * 40]
    assert "approval" in drawn_at(monkeypatch, capsys, 80, **table)


@pytest.mark.parametrize("condition", ["", "strike >", "date > 2022-05-01"])
def test_errors_of_conditions_name_the_option(condition):
    from strikeout.cli.exit_codes import spelled
    from strikeout.errors import StrikeoutError
    from strikeout.quotes.selection import nothing_matches, select
    from strikeout.synthetic import random_quotes

    quotes = random_quotes(10, maturities=2, seed=1)
    with pytest.raises(StrikeoutError) as caught:
        select(quotes, condition)
    nothing = nothing_matches(quotes, "1 = 2", verb="erase")
    assert all(spelled(error.parts).startswith("--where") for error in (caught.value, nothing))
