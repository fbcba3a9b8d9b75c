"""Where many byte strings occur in a block: the compiled search and its twin against bytes.find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strikeout.kernels.byte_search import ByteSearch, SearchTwin
from strikeout.kernels.compiled import native

SEARCHES = [SearchTwin] if native() is None else [ByteSearch, SearchTwin]
letters = st.binary(max_size=60).map(lambda data: bytes(97 + byte % 2 for byte in data))  # two letters: they overlap


def by_hand(needles: list[bytes], block: bytes) -> list[tuple[int, int]]:
    return [
        (place, number)
        for place in range(len(block))
        for number, needle in enumerate(needles)
        if block.startswith(needle, place)
    ]


@pytest.mark.parametrize("search", SEARCHES)
@given(needles=st.lists(letters.filter(lambda text: len(text) >= 4), unique=True, max_size=12), block=letters)
def test_every_place_is_found_and_no_other(search, needles, block):
    places, numbers = search(needles).find(block)
    assert list(zip(places.tolist(), numbers.tolist(), strict=True)) == by_hand(needles, block)


@pytest.mark.parametrize("search", SEARCHES)
def test_needles_that_share_their_beginning_and_end_are_told_apart(search):
    names = [f"2022-05-{day:02d}/2022-06-17/{strike}/C/vendor".encode() for day in range(1, 29) for strike in range(99)]
    block = b"|".join(names[::7])
    places, numbers = search(names).find(block)
    assert numbers.tolist() == list(range(0, len(names), 7))
    assert [block[p : p + len(names[n])] for p, n in zip(places.tolist(), numbers.tolist(), strict=True)] == names[::7]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_million_numbers_are_looked_for_at_once(search):
    draw = np.random.default_rng(3)
    wanted = np.unique(draw.random(1_000_000 if search is ByteSearch else 50_000))
    block = bytearray(draw.random(20_000).tobytes())
    for number, place in ((0, 1), (777, 4099), (len(wanted) - 1, len(block) - 8)):
        block[place : place + 8] = wanted[number].tobytes()
    blob = wanted.tobytes()
    places, numbers = search([blob[at : at + 8] for at in range(0, len(blob), 8)]).find(bytes(block))
    assert (places.tolist(), numbers.tolist()) == ([1, 4099, len(block) - 8], [0, 777, len(wanted) - 1])


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("block", [b"", b"abc", b"abcd"])
def test_a_block_shorter_than_a_needle_holds_none(search, block):
    assert search([b"abcde", b"abcdefghij"]).find(block)[0].tolist() == []
    assert search([]).find(block)[0].tolist() == []


@pytest.mark.skipif(native() is None, reason="the compiled search checks what it is given")
@pytest.mark.parametrize("needles", [[b"abc"], [b"abcd", b"abcd"]])
def test_needles_that_are_too_short_or_repeated_are_refused(needles):
    with pytest.raises(ValueError, match="needle"):
        ByteSearch(needles)
