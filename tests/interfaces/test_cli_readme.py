"""What the README shows is what the commands print."""

from __future__ import annotations

import re
import shlex

from click.testing import CliRunner

from strikeout.cli import strikeout
from strikeout.cli.demo_data import build_story


def test_the_output_in_the_readme_is_what_the_commands_print(root, tmp_path, monkeypatch):
    """In order, in one empty folder; what stands below a command is its output, and nothing is where none is shown."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", (root / "README.md").read_text(), re.S)
    commands = [part.partition("\n") for block in blocks for part in block.split("$ strikeout ")[1:]]
    shown = [(shlex.split(command), output) for command, _, output in commands]
    assert {words[0] for words, output in shown if output} == {"forget"}
    for words, output in shown:
        done = CliRunner().invoke(strikeout, words)
        assert done.exit_code == 0, done.output
        assert not output or done.stdout == output


def test_the_figures_of_the_demo_in_the_readme_are_the_demos(root):
    said, told = " ".join((root / "README.md").read_text().split()), build_story()
    found = re.search(
        r"(\d+) bad quotes of ([\d,]+) move the correlation from (\S+) to its bound at (\S+), "
        r"more than ([\d,]+) standard errors off",
        said,
    )
    bad, every, truth, bound, off = (float(word.replace(",", "")) for word in found.groups())
    assert (bad, every) == (len(told.bad_ids), told.clean.count)
    assert truth == told.truth["correlation"]
    assert told.arrived.on_bound == {"correlation": bound}
    assert off < abs(told.errors(told.arrived.parameters)["correlation"]) < 1.5 * off
    step = re.search(r"own measure and more than ([\d,]+) standard errors from the truth", said)
    assert told.paper == told.paper_baseline
    assert float(step[1].replace(",", "")) < told.worst(told.paper) < 1.5 * float(step[1].replace(",", ""))
    assert told.is_as_never_seen
