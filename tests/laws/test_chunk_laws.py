"""A file read in pieces reads as it does at once: every row, every sentence, every bit, whatever the pieces are."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from strikeout.errors import QuotesError
from strikeout.quotes.reading import inspect_quotes
from tests.quotes.in_chunks import assert_same, in_chunks
from tests.quotes.random_files import drawn_file

CHECKS = (
    {},
    {"Q207": "reject"},
    {"Q210": "reject"},
    {"Q210": "off", "Q303": "reject"},
    {"Q208": "0.01,reject", "Q301": "1.02,reject"},
    {"all": "off"},
)


@settings(max_examples=25, phases=(Phase.explicit, Phase.generate))  # a file shrinks slowly, and its seed says it all
@given(
    seed=st.integers(0, 10_000),
    blocks=st.integers(2, 12),
    at_once=st.integers(5, 120),
    checks=st.sampled_from(CHECKS),
)
def test_a_file_reads_the_same_in_pieces_of_any_size(seed, blocks, at_once, checks):
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = drawn_file(folder, seed)
        size = max(1, (path.stat().st_size if path.suffix == ".csv" else 200) // blocks)
        options = {"checks": checks, "size": size, "at_once": at_once}
        said = refusal(lambda: inspect_quotes(path, checks=checks))
        if said:
            assert refusal(lambda: in_chunks(path, **options)) == said
        else:
            with in_chunks(path, **options) as survey:
                assert_same(inspect_quotes(path, checks=checks), survey, folder)


def refusal(read):
    """What the file is refused for; nothing where it is read."""
    try:
        read()
    except QuotesError as error:
        return f"{type(error).__name__}: {error.sentence}"
    return ""
