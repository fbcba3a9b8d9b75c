"""An attacker gives a file a name that no file can have, so that a command ends in an error of our own."""

from __future__ import annotations

import pytest

import strikeout as so
from strikeout.errors import StrikeoutError
from tests.cli.typed import run

NAMES = {"long": "a" * 3000, "brackets": "[" * 300, "deep": "a/" * 3000 + "a", "escape": "\x1b[2J" + "a" * 300}
WORDS = [
    "inspect FILE", "calibrate FILE", "influence FILE", "rules FILE", "plot smiles FILE", "verify FILE FILE",
    "verify BOOK", "verify BOOK --key FILE", "init BOOK", "status BOOK", "import BOOK FILE", "log BOOK",
    "export BOOK FILE",
    "compare BOOK BOOK", "forget FILE --ids x", "inspect FILE --profile TOML", "sample FILE", "doctor BOOK",
]  # fmt: skip


@pytest.mark.parametrize("words", WORDS)
def test_a_name_that_no_file_can_have_is_answered_with_a_sentence(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in NAMES.values():
        spelled = {"FILE": f"{name}.csv", "BOOK": f"{name}.book", "TOML": f"{name}.toml"}
        ended = run(*(spelled.get(word, word) for word in words.split()))
        assert ended.exit_code in (1, 2, 3), ended.stderr[-300:]
        assert "\x1b" not in ended.output


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
@pytest.mark.parametrize("read", [so.read_quotes, so.inspect_quotes, so.Book.open, so.Book.create])
def test_in_python_too(read, name):
    with pytest.raises(StrikeoutError):
        read(f"{name}.{'book' if 'Book' in read.__qualname__ else 'csv'}")
