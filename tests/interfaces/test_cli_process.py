"""The command line as a process: start-up, exit codes, pipes, a terminal of sixty columns, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import strikeout as so
from strikeout.cli import terminal

COMMAND = [sys.executable, "-m", "strikeout"]
HEAVY = {"polars", "narwhals", "scipy", "matplotlib", "rich", "numpy"}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "small.csv"
    so.write_quotes(so.paper.quotes("small"), path)
    return str(path)


def run(*words, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, env=environment)


def on_a_terminal(*words, columns):
    """What the command writes to a terminal of this width (stdout and stderr together), and its exit code."""
    pty = pytest.importorskip("pty", reason="no pseudo-terminals on this system")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}
    process = subprocess.Popen([*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    chunks = []
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(ours)
    return b"".join(chunks).decode().replace("\r\n", "\n"), process.wait()


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["calibrate", "--help"], ["inspect", "--help"]])
def test_asking_for_help_imports_no_library_that_computes_or_draws(words):
    code = f"""
import json, sys
from strikeout.cli import main
sys.argv = ["strikeout", *{words!r}]
try:
    main()
finally:
    print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stderr.splitlines()[-1])) & HEAVY == set()


def test_the_version_is_the_packages():
    assert run("--version").stdout == f"strikeout {so.__version__}\n"


def test_no_command_at_all_shows_the_help_and_is_a_usage_error():
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert "Commands:" in done.stderr
    assert "calibrate" in done.stderr


def test_an_unknown_command_is_a_usage_error():
    done = run("forgte")
    assert done.returncode == 2
    assert "No such command 'forgte'" in done.stderr


def test_a_result_is_done_and_a_refusal_is_not(book, tmp_path):
    assert run("calibrate", book).returncode == 0
    assert run("calibrate", str(tmp_path / "none.csv")).returncode == 2
    so.write_quotes(so.synthetic.random_quotes(3, maturities=3), tmp_path / "three.csv")
    done = run("calibrate", str(tmp_path / "three.csv"))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


def test_the_json_is_one_object_and_stderr_is_empty(book):
    done = run("calibrate", book, "--json")
    assert json.loads(done.stdout)["converged"]
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_two_runs_print_the_same_bytes(book):
    assert run("calibrate", book, "--json").stdout == run("calibrate", book, "--json", PYTHONHASHSEED="7").stdout


def test_in_a_pipe_there_are_no_colours_and_no_hints(book):
    done = run("calibrate", book, FORCE_COLOR="")
    assert "\x1b" not in done.stdout + done.stderr
    assert "next:" not in done.stdout + done.stderr


def test_a_reader_that_goes_away_is_no_error(book):
    process = subprocess.Popen([*COMMAND, "inspect", book], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise on Windows")
def test_an_interruption_is_quiet(tmp_path):
    fifo = tmp_path / "never.csv"
    code = "import time, strikeout.cli.inspect as i, strikeout.cli as c, sys\n"
    code += "import strikeout.quotes.reading as t\n"
    code += "def wait(*a, **k):\n    print('ready', flush=True)\n    time.sleep(60)\n"
    code += f"t.inspect_quotes = wait\nsys.argv = ['strikeout', 'inspect', {str(fifo)!r}]\nc.main()\n"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said.strip()) == (130, "")


def test_sixty_columns_are_enough_and_no_number_is_cut(book):
    said, code = on_a_terminal("calibrate", book, columns=60)
    assert code == 0
    plain = ESCAPES.sub("", said)
    assert max(len(line) for line in plain.splitlines() if not line.startswith("next:")) <= 60
    cal = so.calibrate(so.read_quotes(book), so.Heston())
    for name, value in cal.parameters.items():
        row = next(line for line in plain.splitlines() if line.startswith(name))
        assert f"{value:.6g}" in row.split()
    assert f"next: {terminal.typed('strikeout plot')}" in plain


@pytest.mark.parametrize(
    "words",
    [
        ["inspect"],
        ["demo", "--no-page"],
        ["influence", "--by", "date,expiry", "--confirm", "1"],
        ["forget", "--where", "date < '2024-01-10'"],
    ],
    ids=lambda words: words[0],
)
def test_the_other_commands_fit_sixty_columns_too(book, words):
    said, code = on_a_terminal(*words, *([book] if words[0] != "demo" else []), columns=60)
    assert code == 0
    lines = [line for line in ESCAPES.sub("", said).splitlines() if not line.startswith(("next:", "note:"))]
    assert [line for line in lines if len(line) > 60] == []


def test_sixty_columns_show_the_forwards_of_a_chain_without_cutting_a_number(tmp_path):
    path = so.synthetic.write_sample(tmp_path / "chain.csv")
    said, code = on_a_terminal("inspect", path, columns=60)
    assert code == 1  # some of its rows are no quotes
    lines = [line for line in ESCAPES.sub("", said).splitlines() if not line.startswith(("next:", "note:"))]
    assert [line for line in lines if len(line) > 60] == []
    for row in so.inspect_quotes(path).forwards.to_frame().iter_rows(named=True):
        assert any(f"{row['forward']:.8g}" in line.split() for line in lines), row["slice"]


def test_the_next_command_takes_along_how_the_file_was_calibrated(tmp_path):
    path = so.synthetic.write_sample(tmp_path / "chain.csv")
    how = ["--weights", "spread", "--bound", "mean_reversion=0.1:5", "--select", "otm", "--check", "Q209=off"]
    said, code = on_a_terminal("calibrate", path, *how, columns=200)
    assert code == 0
    again = "--weights spread --bound mean_reversion=0.1:5.0 --select otm --check Q209=off"
    assert f"{path} {again} --out smiles.html" in said.replace("\r", "")
    said, _ = on_a_terminal("inspect", path, "--check", "Q208=0.5,reject", columns=200)
    assert f"{path} --check Q208=0.5,reject --quarantine bad.csv" in said


def test_on_sixty_columns_forget_leaves_a_column_out_and_says_so_but_cuts_no_number(book):
    words = ("forget", book, "--where", "date < '2024-01-10'")
    said, _ = on_a_terminal(*words, columns=60)
    plain = ESCAPES.sub("", said)
    assert "Wider terminals show SE before too." in plain
    wide = [line.split() for line in run(*words).stdout.splitlines() if line.startswith("long_variance")]
    narrow = [line.split() for line in plain.splitlines() if line.startswith("long_variance")]
    assert [row[:2] + row[3:] for row in wide] == narrow


def test_on_sixty_columns_the_demo_cuts_no_number():
    narrow, _ = on_a_terminal("demo", "--no-page", columns=60)
    wide = run("demo", "--no-page").stdout
    rows = [line.split() for line in wide.splitlines() if line.startswith(("mean_reversion", "initial_variance"))]
    assert len(rows) == 6
    shown = [line.split() for line in ESCAPES.sub("", narrow).splitlines()]
    assert [row for row in rows if row not in shown] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_names_our_command(shell):
    done = run("completion", shell)
    assert done.returncode == 0, done.stderr
    assert "_STRIKEOUT_COMPLETE" in done.stdout


def test_commands_and_options_complete():
    done = run(_STRIKEOUT_COMPLETE="bash_complete", COMP_WORDS="strikeout cal", COMP_CWORD="1")
    assert "calibrate" in done.stdout
    done = run(_STRIKEOUT_COMPLETE="bash_complete", COMP_WORDS="strikeout calibrate --qu", COMP_CWORD="2")
    assert "--quarantine" in done.stdout


def test_an_error_of_our_own_ends_with_four_and_one_line():
    code = "import strikeout.cli as c, strikeout.quotes.reading as t, sys\n"
    code += "t.inspect_quotes = lambda *a, **k: 1 / 0\nsys.argv = ['strikeout', 'inspect', 'x.csv']\nc.main()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "ZeroDivisionError" in done.stderr
    loud = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "STRIKEOUT_TRACEBACK": "1"},
    )
    assert "Traceback" in loud.stderr
