"""An attacker reads a book's file and wants an expiry that was erased: models of smiles name parameters by expiry."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.models.expiries import label
from tests.cli.typed import run

MODELS = {
    "sabr": so.SABR(),
    "svi": so.SVI(),
    "black-scholes": so.BlackScholes(expiries="quoted"),
}
REASONS = (None, "bad-feed", "licence")


@pytest.fixture(scope="module")
def quotes():
    """Expiries with all their digits."""
    return so.synthetic.random_quotes(120, maturities=4, seed=9)


def forms(T: float) -> list[bytes]:
    """How an expiry is written: its eight bytes, its text, its hexadecimal text, and as part of a name."""
    return [np.float64(T).tobytes(), repr(T).encode(), T.hex().encode(), label(T).encode()]


def places(folder, T: float) -> list[tuple[str, bytes]]:
    files = [path for path in folder.iterdir() if path.is_file()]
    return [(path.name, form) for path in files for form in forms(T) if form in path.read_bytes()]


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("name", MODELS)
def test_an_expiry_that_is_erased_is_in_no_name_of_any_parameter(tmp_path, quotes, name, reason):
    years = quotes.contracts.expiry
    gone = float(np.unique(years)[1])
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(MODELS[name], panel=None, starts=1)
        book.forget(ids=quotes.ids[years != gone][:1])
        assert len(places(tmp_path, gone)) >= 2, "the search itself finds nothing"
        done = book.erase(ids=quotes.ids[years == gone], reason=reason)
        assert done.residue == 0
        assert not any(label(gone) in parameter for parameter in done.change.after.parameters)
        assert book.verify().holds, book.verify().summary()
    assert places(tmp_path, gone) == []


def test_calibrations_stay_for_another_reason_if_other_quotes_have_the_expiry(tmp_path, quotes):
    years = quotes.contracts.expiry
    some = quotes.ids[years == np.unique(years)[1]][:2]
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        old = book.calibrate(so.SVI(), panel=None, starts=1).after
        assert book.erase(ids=some, reason="bad-feed").results_kept == 1
        assert book.snapshot().versions[0].parameters == old.parameters


def test_of_two_models_only_calibrations_up_to_the_last_that_names_the_expiry_go(tmp_path, quotes):
    years = quotes.contracts.expiry
    gone = quotes.ids[years == np.unique(years)[1]]
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None, starts=1)
        book.calibrate(so.SVI(), starts=1)
        after = book.calibrate(so.Heston(), panel=None, starts=1).after
        done = book.erase(ids=gone, reason="error")
        assert (done.residue, done.results_kept) == (0, 1)
        assert [version.entry for version in book.snapshot().versions] == [after.entry, done.entry]
        assert book.verify().holds, book.verify().summary()


def test_the_command_ends_with_0_when_a_whole_expiry_is_erased(tmp_path, quotes):
    path, rows = tmp_path / "a.book", tmp_path / "q.csv"
    so.write_quotes(quotes, rows)
    gone = quotes.ids[quotes.contracts.expiry == np.unique(quotes.contracts.expiry)[1]]
    for words in (["init", path], ["import", path, rows], ["calibrate", path, "--model", "sabr", "--panel", "none"]):
        assert run(*map(str, words)).exit_code == 0
    rows.unlink()
    assert run("erase", str(path), "--ids", ",".join(gone), "--yes").exit_code == 0


@pytest.mark.parametrize("setting", ["fixed", "bounds", "starts"])
def test_a_setting_that_names_an_erased_expiry_goes_too(tmp_path, quotes, setting):
    """A parameter that is fixed, bounded or started by name is asked for again with every calibration."""
    years = quotes.contracts.expiry
    gone = float(np.unique(years)[1])
    found = so.calibrate(quotes, so.SABR(), starts=1).parameters
    name = f"correlation{label(gone)}"
    given = {"fixed": {name: -0.5}, "bounds": {name: (-0.9, 0.0)}, "starts": dict(found)}[setting]
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(so.SABR(), panel=None, **{setting: given})
        done = book.erase(ids=quotes.ids[years == gone])
        assert done.residue == 0
        assert book.verify().holds, book.verify().summary()
    assert places(tmp_path, gone) == []
