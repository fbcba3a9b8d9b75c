"""Files of pictures: the right kind, whole, the same every time, and nothing in them that leads outside."""

from __future__ import annotations

import errno
import re
from xml.etree import ElementTree

import pytest

import strikeout as so
from strikeout.plots import write_plot
from strikeout.plots.writing import ENDINGS
from tests.raising import raises


@pytest.fixture(scope="module")
def calibration():
    return so.calibrate(so.paper.quotes("small"), so.Heston())


def test_a_png_is_a_png(calibration, tmp_path):
    write_plot(calibration, tmp_path / "smiles.png")
    assert (tmp_path / "smiles.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_an_svg_is_well_formed(calibration, tmp_path):
    write_plot(calibration, tmp_path / "smiles.svg")
    assert ElementTree.parse(tmp_path / "smiles.svg").getroot().tag.endswith("svg")


def test_a_pdf_is_a_pdf(calibration, tmp_path):
    assert write_plot(calibration, tmp_path / "smiles.pdf").read_bytes().startswith(b"%PDF-")


def test_a_page_holds_the_parameters_and_every_picture(calibration, tmp_path):
    write_plot(calibration, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 7
    assert all(name in page for name in calibration.parameters)
    assert f"{calibration.parameters['mean_reversion']:.6g}" in page


def test_a_page_loads_nothing_from_anywhere(calibration, tmp_path):
    write_plot(calibration, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    fetched = re.findall(r"""(?:src|href)\s*=\s*["']([^"'#]+)""", page) + re.findall(r"url\(([^)#]+)\)|@import", page)
    assert [link for link in fetched if not link.startswith("data:")] == []
    assert "<script" not in page


def test_a_page_of_one_kind_holds_that_picture_alone(calibration, tmp_path):
    page = write_plot(calibration, tmp_path / "page.html", "variance").read_text()
    assert page.count("<svg") == 1
    assert "<h2>Total variance</h2>" in page


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf", "a.html", "a.json"])
def test_the_same_calibration_gives_the_same_bytes(calibration, tmp_path, name):
    first = write_plot(calibration, tmp_path / name).read_bytes()
    assert write_plot(calibration, tmp_path / name).read_bytes() == first


@pytest.mark.parametrize("name", ["smiles.gif", "smiles"])
def test_another_ending_is_refused_and_the_right_ones_are_named(calibration, tmp_path, name):
    with raises(so.errors.UsageError, endings=ENDINGS):
        write_plot(calibration, tmp_path / name)


def test_another_kind_is_refused_and_the_right_ones_are_named(calibration, tmp_path):
    with raises(so.errors.UsageError, picture="gamma"):
        write_plot(calibration, tmp_path / "a.png", "gamma")
    with raises(so.errors.UsageError, by="source"):
        write_plot(calibration, tmp_path / "a.png", "variance", by="source")
    assert not (tmp_path / "a.png").exists()


def test_a_folder_that_is_not_there_is_an_error_in_a_sentence(calibration, tmp_path):
    with raises(so.errors.UsageError, errno=errno.ENOENT):
        write_plot(calibration, tmp_path / "nowhere" / "smiles.png")


def test_a_calibration_that_did_not_converge_says_so_on_its_page(tmp_path):
    book = so.synthetic.random_quotes(60, maturities=1, seed=5)
    write_plot(so.calibrate(book, so.Heston()), tmp_path / "page.html")
    assert "not converged" in (tmp_path / "page.html").read_text()
