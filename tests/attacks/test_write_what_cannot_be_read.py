"""An attacker names a label or a quote so that the book is written to a file which nobody can read again."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout.errors import ColumnError, UnreadableFileError, UsageError

PLAIN = so.paper.quotes("small", seed=1)[:2]
FRAME = PLAIN.to_frame()


def made(**changes):
    return so.Quotes(**{"ids": PLAIN.ids, "contracts": PLAIN.contracts, "observed": PLAIN.observed, **changes})


@pytest.mark.parametrize("name", ["a\0b", "\0", "", "\ud800", "a\udfffb", 3, None], ids=ascii)
def test_a_label_has_a_name_that_every_file_can_hold(name):
    with pytest.raises(UsageError) as error:
        made(labels={name: ["x", "y"]})
    assert error.value.label == name


@pytest.mark.parametrize("text", ["\ud800", "x\udc00", "\udfff\ud800"], ids=ascii)
@pytest.mark.parametrize("kind", [object, str])
def test_half_a_surrogate_pair_is_no_text(text, kind):
    with pytest.raises(UsageError) as error:
        made(labels={"desk": np.array(["x", text], kind)})
    assert (error.value.row, error.value.column) == (1, "label 'desk'")
    with pytest.raises(UsageError) as error:
        made(ids=np.array(["x", text], kind))
    assert (error.value.row, error.value.column) == (1, "id")


@pytest.mark.parametrize("name", ["a\0b", ""], ids=ascii)
def test_a_frame_and_a_parquet_file_have_names_that_every_file_can_hold(tmp_path, name):
    odd = FRAME.with_columns(pl.lit("x").alias(name))
    with pytest.raises(ColumnError):
        so.read_quotes(odd)
    odd.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ColumnError):
        so.read_quotes(tmp_path / "a.parquet")


def test_a_csv_with_nul_in_a_name_below_other_lines_is_refused(tmp_path):
    so.synthetic.write_sample(tmp_path / "a.csv", "page")
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "b.csv").write_text(text.replace("Gamma", "Gam\0ma", 1))
    with pytest.raises(ColumnError):
        so.read_quotes(tmp_path / "b.csv")


@pytest.mark.parametrize(
    "name", ["it's", "=1+1", "'=1+1", 'say "x"', "two\nlines", "a,b", "ünï", "\x1b[2J", "a\rb", " "]
)
def test_every_other_name_is_read_back_or_refused_before_it_is_written(tmp_path, name):
    quotes = made(labels={name: ["x", "y"]})
    try:
        so.write_quotes(quotes, tmp_path / "a.csv")
    except UsageError:
        assert list(tmp_path.iterdir()) == []
    else:
        assert so.read_quotes(tmp_path / "a.csv").labels[name].tolist() == ["x", "y"]


ODD = os.fsdecode(b"\xff")


@pytest.mark.skipif(os.name == "nt", reason="names of files are Unicode there")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_whose_name_is_no_text_is_refused_before_it_is_written(tmp_path, ending):
    with pytest.raises(UsageError):
        so.write_quotes(PLAIN, tmp_path / f"{ODD}{ending}")
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(so.paper.quotes("small", seed=1)[:20])
        before = book.status()
        with pytest.raises(UsageError):
            book.export(tmp_path / f"{ODD}{ending}")
        assert book.status() == before
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".book", ".key"]


@pytest.mark.skipif(os.name == "nt", reason="names of files are Unicode there")
def test_a_file_whose_name_is_no_text_is_read_or_refused(tmp_path):
    so.write_quotes(PLAIN, tmp_path / "a.csv").rename(tmp_path / f"{ODD}.csv")
    so.write_quotes(PLAIN, tmp_path / "a.parquet").rename(tmp_path / f"{ODD}.parquet")
    assert len(so.read_quotes(tmp_path / f"{ODD}.csv")) == 2
    with pytest.raises(UnreadableFileError):
        so.read_quotes(tmp_path / f"{ODD}.parquet")
