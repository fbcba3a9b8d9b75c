"""An attacker, or a bad disk, changes bytes of a Parquet or Excel file and wants the whole process to end.

Polars and the Excel reader allocate what the file asks for. An allocation of 2^61 bytes fails, and Rust ends the
process then: a service would lose everybody's work for one file. Every case here runs in a child, so that a death is a
finding and not the end of the tests.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest

import strikeout as so
from strikeout.errors import UnreadableFileError, UsageError
from strikeout.quotes.limits import MOST_GROWTH
from strikeout.quotes.parquet_metadata import check_parquet
from strikeout.quotes.rates import RateCurve
from strikeout.quotes.tables import sheet_of
from tests.quotes.workbooks import worksheet, write_workbook

QUOTES = so.paper.quotes("small", seed=4)[:60]
CHILD = """
import sys
from pathlib import Path
import strikeout as so
from tests.attacks.test_kill_the_process_with_a_damaged_file import damaged, tried
whole, into = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    print(number, end=" ", flush=True)
    into.write_bytes(damaged(whole, number))
    print(tried(into), flush=True)
"""


def damaged(whole: bytes, number: int) -> bytes:
    """The file with some bytes changed: half of the changes are in the footer, which is small and full of counts."""
    draw, data = random.Random(number), bytearray(whole)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at = draw.randrange(footer if draw.random() < 0.5 else 0, len(data))
        data[at] = draw.choice((draw.randrange(256), 0xFF, 0x80, 0x7F, 0x00, data[at] ^ (1 << draw.randrange(8))))
    return bytes(data)


def tried(path: Path) -> str:
    """What reading every row comes to; anything but a StrikeoutError is raised."""
    try:
        for _ in sheet_of(path, lambda _: True).blocks(None):
            pass
    except so.errors.StrikeoutError as error:
        return type(error).__name__
    return "read"


def outcomes(whole: Path, cases: range) -> list[str]:
    """What came of every case, read in a child process."""
    into = whole.with_name("damaged.parquet")
    asked = [sys.executable, "-c", CHILD, str(whole), str(into), str(cases.start), str(cases.stop)]
    ended = subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0, f"case {lines[-1]} of {whole.name}: {ended.stderr[-300:]}"
    return [line.split()[1] for line in lines]


def written(folder: Path, packing: str) -> Path:
    path = so.write_quotes(QUOTES, folder / "own.parquet")
    if packing != "own":
        pl.read_parquet(path).write_parquet(folder / f"{packing}.parquet", compression=packing, row_group_size=25)
    return folder / f"{packing}.parquet"


@pytest.mark.parametrize("packing", ["own", "uncompressed"])
def test_by_flipped_bytes_of_a_parquet_file(tmp_path, packing):
    found = outcomes(written(tmp_path, packing), range(700))
    assert len(found) == 700
    assert {"read", "UnreadableFileError"} <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("packing", ["own", "uncompressed", "snappy", "zstd", "lz4", "gzip", "brotli"])
def test_by_twenty_thousand_flipped_bytes(tmp_path, packing):
    assert len(outcomes(written(tmp_path, packing), range(20_000))) == 20_000


def at_every_page(whole: bytes) -> Iterable[int]:
    """Where a data page header states its count of values, 25: after the sizes, the first field of field 5."""
    mark = b"\x2c\x15\x32"
    at = whole.find(mark)
    while at >= 0:
        yield at + 2
        at = whole.find(mark, at + 1)


def test_by_a_negative_count_of_values(tmp_path):
    """The one that ended the process: zigzag 0x7f is -64, and -64 bits were to be allocated."""
    path = written(tmp_path, "uncompressed")
    whole = path.read_bytes()
    places = list(at_every_page(whole))
    assert len(places) >= 28  # 14 columns in each of the two full row groups
    for at in places:
        path.write_bytes(whole[:at] + b"\x7f" + whole[at + 1 :])
        with pytest.raises(UnreadableFileError):
            check_parquet(path)
        with pytest.raises(UsageError):
            RateCurve.of(path)


@pytest.mark.parametrize("size", [0, 3, 11, 12, 40])
def test_by_a_file_that_ends_too_early(tmp_path, size):
    path = written(tmp_path, "own")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UnreadableFileError):
        so.read_quotes(path)


def test_every_file_that_polars_writes_is_read(tmp_path):
    """The control: codecs, pages, row groups, no rows, no values, words, lists and groups of columns."""
    frame = pl.read_parquet(written(tmp_path, "own"))
    odd = pl.DataFrame({"a": [[1, 2], [], None], "b": [{"c": 1, "d": "x"}, None, {"c": 2, "d": None}], "e": [None] * 3})
    for number, options in enumerate(
        [{"compression": word} for word in ("lz4", "uncompressed", "snappy", "gzip", "brotli", "zstd")]
        + [{"statistics": False}, {"row_group_size": 7}, {"data_page_size": 64}, {"statistics": "full"}]
    ):
        for name, table in {"a": frame, "b": frame.clear(), "c": odd, "d": pl.concat([frame] * 20)}.items():
            path = tmp_path / f"{name}{number}.parquet"
            table.write_parquet(path, **options)
            check_parquet(path)
            assert sum(block.frame.height for block in sheet_of(path, lambda _: True).blocks(None)) == table.height


def test_every_file_that_arrow_writes_is_read(tmp_path):
    arrow = pytest.importorskip("pyarrow.parquet")
    table = pl.read_parquet(written(tmp_path, "own")).to_arrow()
    for number, options in enumerate(
        (
            *({}, {"data_page_version": "2.0"}, {"use_dictionary": False}, {"row_group_size": 7}, {"version": "1.0"}),
            *({"data_page_size": 64}, {"write_page_index": True}, {"write_page_checksum": True}),
        )
    ):
        path = tmp_path / f"{number}.parquet"
        arrow.write_table(table, path, **options)
        check_parquet(path)


def test_every_real_file_is_read(shared_data):
    for path in shared_data("chains").glob("*.parquet"):
        check_parquet(path)


# --- Excel -----------------------------------------------------------------------------------------------------------

FIRST = '<row r="1"><c r="A1"><v>1</v></c></row>'
CORNERS = {
    "two corners": FIRST + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
    "single quotes": FIRST + "<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>",
    "other attributes first": FIRST + '<row s=">" r="1048576"><c s="0" x=">" r="XFD1048576"><v>1</v></c></row>',
    "another row in the cell": FIRST + '<row r="2"><c r="XFD1048576"><v>1</v></c></row>',
    "a namespace": FIRST + '<x:row xmlns:x="x" r="1048576"><x:c r="XFD1048576"><x:v>1</x:v></x:c></x:row>',
    "no places": f"<row>{'<c/>' * 16_000}<c><v>1</v></c></row>{'<row/>' * 100_000}<row><c><v>1</v></c></row>",
    "a place and then none": '<row r="1000000"><c r="XFA1"/><c/><c><v>1</v></c></row><row><c><v>1</v></c></row>',
}


@pytest.mark.parametrize("name", CORNERS)
def test_by_cells_in_opposite_corners_of_a_sheet(tmp_path, name):
    """A kilobyte or some in the file, 400 GB in memory."""
    pytest.importorskip("fastexcel")
    path = write_workbook(tmp_path / "a.xlsx", CORNERS[name])
    assert path.stat().st_size < 5_000
    with pytest.raises(UnreadableFileError) as error:
        so.read_quotes(path)
    assert error.value.facts["most"] == MOST_GROWTH


@pytest.mark.parametrize("number", range(40))
def test_by_flipped_bytes_of_a_workbook(tmp_path, number):
    """Nothing but a StrikeoutError; the reader has errors of its own."""
    pytest.importorskip("fastexcel")
    draw = random.Random(number)
    lines = list(FIRST + '<row r="2"><c r="A2" t="inlineStr"><is><t>x</t></is></c></row>')
    lines[draw.randrange(len(lines))] = draw.choice("<>&\"'/ \0é1A")
    path = write_workbook(tmp_path / "a.xlsx", "".join(lines))
    tried(path)
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)
    tried(path)


def test_by_a_sheet_in_another_encoding(tmp_path):
    pytest.importorskip("fastexcel")
    sheet = f'<?xml version="1.0" encoding="UTF-16"?>{worksheet(CORNERS["two corners"])}'
    with pytest.raises(UnreadableFileError):
        so.read_quotes(write_workbook(tmp_path / "a.xlsx", "", {"xl/sheet.xml": sheet.encode("utf-16")}))


def test_a_sheet_with_gaps_is_read(tmp_path):
    """The control: a few thousand cells that a sheet leaves out are no attack."""
    pytest.importorskip("fastexcel")
    lines = FIRST + '<row r="3000"><c r="AZ3000"><v>1</v></c></row>'
    (block,) = sheet_of(write_workbook(tmp_path / "a.xlsx", lines), lambda _: True).blocks(None)
    assert block.frame.row(-1)[-1] == 1.0
