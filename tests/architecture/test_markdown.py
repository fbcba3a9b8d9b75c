"""The reader of our pages sees what it must, or the tests of the documentation would pass on anything."""

from __future__ import annotations

import pytest

from tests.architecture.markdown import Page

TEXT = """# Title

See [the other](other.md#a-heading) page.

## `strikeout inspect FILE`

`--json` prints one object.

```python
x = 1  # [no link](nowhere.md)
# no heading
```

<!-- not run -->
```python
x = 2
```

### Deeper

Still `inspect`.

## `strikeout inspect-more`, *again*

The end.
"""


@pytest.fixture
def page(tmp_path):
    (tmp_path / "page.md").write_text(TEXT)
    return Page(tmp_path / "page.md")


def test_blocks_are_found_and_the_marked_one_is_not_run(page):
    assert [(block.text.splitlines()[0], block.is_run) for block in page.blocks] == [
        ("x = 1  # [no link](nowhere.md)", True),
        ("x = 2", False),
    ]


def test_a_block_knows_its_line_so_that_a_failure_points_at_the_page(page):
    assert [page.lines[block.line] for block in page.blocks] == ["x = 1  # [no link](nowhere.md)", "x = 2"]


def test_links_are_found_outside_code_only(page):
    assert page.links == [(3, "other.md#a-heading")]


def test_headings_are_found_outside_code_only(page):
    assert page.anchors == {"title", "strikeout-inspect-file", "deeper", "strikeout-inspect-more-again"}


def test_a_section_holds_its_subsections_and_ends_at_the_next_heading_as_high(page):
    section = page.section("strikeout inspect")
    assert "--json" in section
    assert "Deeper" in section
    assert "The end." not in section


def test_a_section_is_named_by_whole_words(page):
    assert page.section("strikeout inspect-more").endswith("The end.")
    assert page.section("strikeout insp") is None


def test_a_block_that_is_never_closed_is_an_error(tmp_path):
    page = tmp_path / "open.md"
    page.write_text("```python\nx = 1\n")
    with pytest.raises(AssertionError, match="never closed"):
        Page(page).blocks  # noqa: B018
