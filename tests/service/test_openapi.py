"""The description of the interface is frozen: a change of it is a change of the file beside this test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strikeout.service.app import create_app
from strikeout.service.desk import Desk
from strikeout.service.library import Library
from strikeout.service.people import OnePerson, Person, Role

KEPT = Path(__file__).with_name("openapi.json")


@pytest.fixture(scope="module")
def description(tmp_path_factory):
    people = OnePerson(Person("owner", Role.ADMIN))
    return create_app(Desk.of(Library(tmp_path_factory.mktemp("none")), people)).openapi()


def written(description) -> str:
    return json.dumps(description, indent=1, sort_keys=True) + "\n"


def test_the_description_is_the_one_that_is_kept(description):
    """To accept a change: write what ``written`` returns to openapi.json."""
    assert description["openapi"].startswith("3.1")
    assert json.loads(KEPT.read_text()) == json.loads(written(description))


def test_every_route_is_in_the_reference(description):
    text = (Path(__file__).parents[2] / "docs" / "reference" / "service.md").read_text()
    named = {
        "{name}": "NAME",
        "{entry}": "ENTRY",
        "{kind}": "KIND",
        "{other}": "OTHER",
        "{number}": "N",
        "{decision}": "{decision}",
        "{job}": "ID",
    }
    missing = []
    for path in description["paths"]:
        shown = path
        for variable, word in named.items():
            shown = shown.replace(variable, word)
        ends = {shown, "/" + "/".join(shown.split("/")[4:])}
        if not any(f"{end}`" in text for end in ends):
            missing.append(path)
    assert missing == []
