"""Commands as they are typed, in this process: what they print and how they end."""

from __future__ import annotations

import json

from click.testing import CliRunner

from strikeout.cli import strikeout


def run(*words):
    ended = CliRunner().invoke(strikeout, [str(word) for word in words])
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.output
    return ended


def done(*words):
    ended = run(*words)
    assert ended.exit_code == 0, ended.output
    return ended


def told(*words):
    return json.loads(done(*words, "--json").stdout)
