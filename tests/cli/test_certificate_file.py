"""``strikeout certificate FILE`` shows what a certificate file claims, and refuses a damaged file."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

import strikeout as so
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.provenance import digest_of_quotes
from strikeout.quotes.writing import write_quotes
from tests.cli.typed import done, run, told

EARLY = "date < '2024-01-10'"


@pytest.fixture
def file(book):
    """The certificate of forgetting 36 of 540 quotes, written to a file."""
    done("forget", book, "--where", EARLY, "--yes")
    done("certificate", book, 4, "--out", "c.json")
    return Path("c.json")


def test_a_certificate_file_is_shown_with_its_claims_parameters_and_model(file):
    issued, shown = Certificate.from_bytes(file.read_bytes()), told("certificate", file)
    assert {"STATE", "OPTIMUM"} <= set(shown["claims"])
    assert set(shown["claims"]) == {claim.name for claim in issued.claimed()}
    assert shown["parameters"] == issued.parameters
    assert set(shown["parameters"]) == {"correlation", "long_variance", "mean_reversion", "vol_of_vol"}
    assert shown["model"] == issued.model
    assert shown["model"].startswith("heston/")
    assert shown["counts"] == {"forgotten": 36, "retained": 504}
    assert (shown["digest"], shown["out"]) == (issued.digest(), None)
    assert all(name in done("certificate", file).stdout for name in shown["parameters"])


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "other format"])
def test_a_damaged_certificate_file_is_bad_input(file, damage):
    good = file.read_bytes()
    changed = good.replace(b'"forgotten":36', b'"forgotten":35')
    assert changed != good
    other = good.replace(b"strikeout certificate 2", b"strikeout certificate 9")
    file.write_bytes({"truncated": good[:-1], "changed": changed, "empty": b"", "other format": other}[damage])
    ended = run("certificate", file, "--json")
    assert (ended.exit_code, ended.stdout) == (2, "")


def test_a_file_has_one_certificate_and_must_exist(file):
    assert run("certificate", file, 4).exit_code == 2
    assert run("certificate", "missing.json").exit_code == 2


@pytest.fixture
def issued(tmp_path, monkeypatch):
    """A certificate of a file that was read with settings, beside the file of retained quotes."""
    monkeypatch.chdir(tmp_path)
    done("sample", "page.csv")
    settings = ["--check", "Q209=off", "--constant", "source=desk"]
    done("forget", "page.csv", "--where", "strike > 5500", *settings, "--certificate", "c.json", "--out", "kept.csv")
    return Certificate.from_bytes(Path("c.json").read_bytes())


def test_a_certificate_of_a_file_contains_how_it_was_read_and_digests_of_what_is_retained(issued):
    read = told("certificate", "c.json")["reading"]
    assert read["settings"] == {"exercise": "auto", "Q209": "off", "source": "desk"}
    assert read["layout"] == "cboe-dashboard"
    assert read["file"] == sha256(Path("kept.csv").read_bytes()).hexdigest()
    assert read == issued.reading
    shown = done("certificate", "c.json").stdout
    assert all(text in shown for text in ("cboe-dashboard", "Q209 off", read["file"], read["quotes"]))


@pytest.mark.usefixtures("issued")
@pytest.mark.filterwarnings("ignore::strikeout.quotes.issues.QuotesWarning")
def test_verify_compares_the_digests_with_the_file():
    found = told("verify", "c.json", "kept.csv")
    assert found["verdict"] == "verified"
    assert {"name": "QUOTES", "holds": True}.items() <= next(
        c for c in found["checks"] if c["name"] == "QUOTES"
    ).items()
    assert "byte for byte" in found["facts"]["file"]
    assert "Q209 off" in found["facts"]["read as"]
    # The same quotes in another file are the same quotes.
    write_quotes(so.read_quotes("kept.csv"), "kept.parquet")
    other = told("verify", "c.json", "kept.parquet")
    assert other["verdict"] == "verified"
    assert "byte for byte" not in other["facts"]["file"]


@pytest.mark.usefixtures("issued")
@pytest.mark.filterwarnings("ignore::strikeout.quotes.issues.QuotesWarning")
def test_a_name_that_no_claim_depends_on_is_still_compared():
    quotes = so.read_quotes("kept.csv")
    write_quotes(replace(quotes, ids=["another", *quotes.ids[1:].tolist()]), "renamed.parquet")
    ended = run("verify", "c.json", "renamed.parquet", "--json")
    failed = [check["name"] for check in json.loads(ended.stdout)["checks"] if check["holds"] is False]
    assert (ended.exit_code, failed) == (1, ["QUOTES"])


@pytest.mark.parametrize("part", ["layout", "settings", "quotes", "file"])
def test_a_changed_reading_does_not_match_the_digest_of_the_certificate(issued, part):
    assert issued.reading is not None
    other = {"layout": "tidy", "settings": {}, "quotes": "0" * 64, "file": "0" * 64}[part]
    forged = replace(issued, reading={**issued.reading, part: other})
    assert forged.digest() != issued.digest()
    Path("odd.json").write_bytes(replace(issued, reading={**issued.reading, part: 3}).to_bytes())
    assert run("certificate", "odd.json").exit_code == 2


def test_arguments_in_the_wrong_order_are_named(issued):
    assert issued.reading is not None
    ended = run("verify", "kept.csv", "c.json", "--json")
    assert ended.exit_code == 2
    assert json.loads(ended.stderr)["error"]["certificate"] == "c.json"
    for words in (("a.book", "kept.csv"), ("c.json", "a.book")):
        assert "verified alone" in run("verify", *words).stderr


def test_a_claim_that_is_not_made_is_worded_once(issued):
    assert "STEP" not in issued.claims
    shown = done("verify", "c.json", "kept.csv").stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("STEP"))
    assert line.lower().count("not claimed") == 1


def test_a_certificate_of_a_file_has_a_date_and_no_signature_without_a_key(issued):
    assert issued.signed is not None
    assert set(issued.signed) == {"at"}
    assert issued.date[:10] in done("certificate", "c.json").stdout
    found = told("verify", "c.json", "kept.csv")
    assert (found["verdict"], found["facts"]["date"]) == ("verified", issued.date)
    assert run("verify", "c.json", "kept.csv", "--key", "0" * 64).exit_code == 1


@pytest.mark.usefixtures("issued")
def test_a_certificate_of_a_file_is_signed_with_a_key_file():
    public = told("keygen", "desk.key")["public"]
    assert Path("desk.key").stat().st_mode & 0o077 == 0
    written = ["--certificate", "signed.json", "--out", "signed.csv", "--key", "desk.key"]
    done("forget", "page.csv", "--where", "strike > 5500", *written)
    assert public in done("certificate", "signed.json").stdout
    assert told("verify", "signed.json", "signed.csv", "--key", public)["verdict"] == "verified"
    other = told("keygen", "other.key")["public"]
    assert run("verify", "signed.json", "signed.csv", "--key", other).exit_code == 1


@pytest.mark.usefixtures("issued")
def test_a_certificate_of_a_file_contains_every_option_that_it_was_read_with():
    read_with = ["--profile", "cboe-dashboard", "--exercise", "european", "--only", "strike > 4000"]
    done("forget", "page.csv", "--where", "strike > 5500", *read_with, "--certificate", "other.json")
    settings = told("certificate", "other.json")["reading"]["settings"]
    assert settings == {"profile": "cboe-dashboard", "exercise": "european", "only": "strike > 4000"}


@pytest.mark.usefixtures("issued")
@pytest.mark.parametrize("part", ["at", "public", "signature"])
def test_a_date_or_a_signature_that_was_changed_is_refuted(part):
    public = told("keygen", "desk.key")["public"]
    written = ["--certificate", "signed.json", "--out", "signed.csv", "--key", "desk.key"]
    done("forget", "page.csv", "--where", "strike > 5500", *written)
    good = Certificate.from_bytes(Path("signed.json").read_bytes())
    assert good.signed is not None
    other = {"at": "2020-01-01T00:00:00.000000Z", "public": "1" * 64, "signature": "1" * 128}[part]
    Path("signed.json").write_bytes(replace(good, signed={**good.signed, part: other}).to_bytes())
    assert run("verify", "signed.json", "signed.csv", "--key", public).exit_code == 1
    unknown = replace(good, signed={**good.signed, "by": "the board"})
    Path("signed.json").write_bytes(unknown.to_bytes())
    assert run("certificate", "signed.json").exit_code == 2


@pytest.mark.usefixtures("issued")
def test_a_key_is_a_file_that_only_its_owner_reads_and_that_is_never_replaced():
    done("keygen", "desk.key")
    before = Path("desk.key").read_bytes()
    assert run("keygen", "desk.key").exit_code == 2
    assert Path("desk.key").read_bytes() == before
    written = ["--certificate", "signed.json", "--key"]
    Path("desk.key").chmod(0o644)
    assert run("forget", "page.csv", "--where", "strike > 5500", *written, "desk.key").exit_code == 3
    assert run("forget", "page.csv", "--where", "strike > 5500", *written, "0" * 64).exit_code == 3
    assert run("forget", "page.csv", "--where", "strike > 5500", "--key", "desk.key").exit_code == 2
    assert not Path("signed.json").exists()


def test_a_certificate_of_a_book_names_the_digest_of_the_retained_quotes(file, book):
    shown = told("certificate", file)
    done("export", book, "retained.parquet")
    assert shown["reading"]["quotes"] == digest_of_quotes(so.read_quotes("retained.parquet"))
    assert told("verify", file, "retained.parquet")["verdict"] == "verified"
