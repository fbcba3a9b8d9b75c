"""What the README shows is what the commands print."""

from __future__ import annotations

import re

from click.testing import CliRunner

from strikeout.cli import strikeout
from strikeout.cli.story import story


def test_the_output_in_the_readme_is_what_the_commands_print(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = next(b for b in re.findall(r"```console\n(.*?)```", (root / "README.md").read_text(), re.S) if "value" in b)
    commands = re.findall(r"^\$ strikeout (.*)$", block, re.M)
    shown = block[block.rindex(commands[-1]) + len(commands[-1]) + 1 :]
    assert len(commands) == 2
    done = [CliRunner().invoke(strikeout, command.split()) for command in commands]
    assert [result.exit_code for result in done] == [0, 0]
    assert done[-1].stdout == shown


def test_the_figures_of_the_demo_in_the_readme_are_the_demos(root):
    said, told = " ".join((root / "README.md").read_text().split()), story()
    found = re.search(
        r"(\d+) bad quotes of ([\d,]+) move the correlation from (\S+) to its bound at (\S+), "
        r"more than ([\d,]+) standard errors off",
        said,
    )
    bad, every, truth, bound, off = (float(word.replace(",", "")) for word in found.groups())
    assert (bad, every) == (len(told.bad_ids), told.clean.count)
    assert truth == told.truth["correlation"]
    assert told.arrived.on_bound == {"correlation": bound}
    assert off < abs(told.errors(told.arrived)["correlation"]) < 1.5 * off
