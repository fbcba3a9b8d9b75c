"""Tables in a pipe lose nothing; progress shows late, on a terminal only, and leaves no trace."""

from __future__ import annotations

import io

from strikeout.cli import terminal

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
    terminal.show(
        terminal.table(("name", "value"), [(LONG, "0.123456789")], numbers=(1,)), terminal.facts([("x", LONG)])
    )
    said = capsys.readouterr().out
    assert said.count(LONG.rstrip()) == 2
    assert "0.123456789" in said
    assert "\x1b" not in said
    assert [line for line in said.splitlines() if line != line.rstrip()] == []


def test_square_brackets_are_shown_not_obeyed(capsys):
    terminal.show("line 3: '[bold]' :smile:", terminal.table(("a",), [("[red]x[/red]",)]))
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
