"""Every role against every route: a table of what is permitted, and a test that no route is missing from it."""

from __future__ import annotations

import re
from dataclasses import replace

import httpx
import pytest
from fastapi.routing import APIRoute

from strikeout.service.app import create_app
from strikeout.service.desk import Desk
from strikeout.service.library import Library
from strikeout.service.pages.forms import FORMS
from strikeout.service.people import OnePerson, Person, Role
from tests.service.conftest import copied
from tests.service.test_pages import HTML, Browser

ALL = {"reader", "operator", "approver", "auditor", "admin"}
CHECKERS = ALL - {"reader"}
WRITERS = {"operator", "admin"}
DECIDERS = {"approver", "admin"}
ANYBODY = ALL | {""}
WHERE = {"where": "strike = 90"}

# route -> (its parameters, body, who may)
TABLE = {
    ("GET", "/livez"): ({}, None, ANYBODY),
    ("GET", "/readyz"): ({}, None, ANYBODY),
    ("GET", "/metrics"): ({}, None, {"auditor", "admin"}),
    ("GET", "/v1/books"): ({}, None, ALL),
    ("GET", "/v1/books/{name}"): ({}, None, ALL),
    ("GET", "/v1/books/{name}/versions"): ({}, None, ALL),
    ("GET", "/v1/books/{name}/versions/{entry}"): ({"entry": 3}, None, ALL),
    ("GET", "/v1/books/{name}/quotes"): ({}, None, ALL),
    ("GET", "/v1/books/{name}/influence"): ({}, None, ALL),
    ("GET", "/v1/books/{name}/charts/{kind}"): ({"kind": "smiles"}, None, ALL),
    ("POST", "/v1/books/{name}/plans"): ({}, WHERE, ALL),
    ("GET", "/v1/books/{name}/log"): ({}, None, ALL),
    ("GET", "/v1/books/{name}/requests"): ({}, None, ALL),
    ("GET", "/v1/books/{name}/compare/{other}"): ({"other": "{name}"}, None, ALL),
    ("GET", "/v1/books/{name}/verify"): ({}, None, CHECKERS),
    ("GET", "/v1/books/{name}/certificates/{entry}"): ({"entry": 1}, None, CHECKERS),
    ("POST", "/v1/books/{name}/forget"): ({}, WHERE, WRITERS),
    ("POST", "/v1/books/{name}/restore"): ({}, {}, WRITERS),
    ("POST", "/v1/books/{name}/calibrations"): ({}, {}, WRITERS),
    ("POST", "/v1/books/{name}/imports"): ({}, None, WRITERS),
    ("POST", "/v1/books/{name}/requests"): ({}, {"what": "erase", **WHERE}, WRITERS),
    ("POST", "/v1/books/{name}/erasures"): ({}, {"confirm": "table", **WHERE}, WRITERS),
    ("POST", "/v1/books/{name}/requests/{number}/{decision}"): ({"number": 1, "decision": "approve"}, {}, DECIDERS),
    ("GET", "/v1/jobs/{job}"): ({"job": "0" * 16}, None, ALL),
    ("GET", "/v1/jobs/{job}/events"): ({"job": "0" * 16}, None, ALL),
    ("DELETE", "/v1/jobs/{job}"): ({"job": "0" * 16}, None, ALL),
}


# page or form -> (what is asked for or filled in, who may)
PAGES = {
    ("GET", "/"): ({}, ALL),
    ("GET", "/static/{digest}/{file}"): ({"digest": "x", "file": "icon.svg"}, ANYBODY),
    ("GET", "/sign-in"): ({}, ANYBODY),
    ("POST", "/sign-in"): ({}, set()),  # without a token
    ("GET", "/sign-in/provider"): ({}, ANYBODY),  # 404: there is no provider here
    ("GET", "/sign-in/callback"): ({}, ANYBODY),
    ("GET", "/removals"): ({}, ALL),
    ("GET", "/removals/evidence"): ({}, CHECKERS),
    ("POST", "/removals/do"): ({"what": "forget", **WHERE}, WRITERS),
    ("POST", "/removals/approve"): ({"ticket": "none"}, DECIDERS),
    ("GET", "/books/{name}"): ({}, ALL),
    ("GET", "/books/{name}/what-if"): ({}, ALL),
    ("GET", "/books/{name}/what-if/{table}.{ending}"): ({"table": "parameters", "ending": "csv"}, ALL),
    ("GET", "/books/{name}/requests"): ({}, ALL),
    ("GET", "/books/{name}/quotes"): ({}, ALL),
    ("GET", "/books/{name}/quotes.{ending}"): ({"ending": "csv"}, ALL),
    ("GET", "/books/{name}/compare"): ({}, ALL),
    ("GET", "/books/{name}/drift"): ({}, ALL),
    ("GET", "/books/{name}/erase"): ({}, ALL),  # the form
    ("GET", "/books/{name}/import"): ({}, ALL),
    ("GET", "/books/{name}/tables/{kind}.{ending}"): ({"kind": "history", "ending": "csv"}, ALL),
    ("GET", "/books/{name}/jobs/{job}"): ({"job": "0" * 16}, ALL),
    ("GET", "/books/{name}/audit"): ({}, CHECKERS),
    ("GET", "/books/{name}/evidence"): ({}, CHECKERS),
    ("GET", "/books/{name}/jobs/{job}/quarantine.csv"): ({"job": "0" * 16}, WRITERS),
    ("POST", "/books/{name}/jobs/{job}/cancel"): ({"job": "0" * 16}, ALL),
    ("POST", "/books/{name}/import"): ({}, WRITERS),
    **{("POST", f"/books/{{name}}/do/{verb}"): (WHERE, WRITERS) for verb in ("forget", "request")},
    ("POST", "/books/{name}/do/erase"): ({"confirm": "{name}", **WHERE}, WRITERS),
    ("POST", "/books/{name}/do/restore"): ({"entry": "3"}, WRITERS),
    ("POST", "/books/{name}/do/calibrate"): ({}, WRITERS),
    **{("POST", f"/books/{{name}}/do/{verb}"): ({"number": "1"}, WRITERS) for verb in ("carry-out", "withdraw")},
    **{("POST", f"/books/{{name}}/do/{verb}"): ({"number": "1"}, DECIDERS) for verb in ("approve", "reject")},
    ("POST", "/sign-out"): ({}, ALL),  # last: the session is over then
}


def test_the_tables_have_every_route_and_every_form(tmp_path):
    app = create_app(Desk.of(Library(tmp_path), OnePerson(Person("owner", Role.ADMIN))))
    routes = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    assert routes == set(TABLE)
    hidden = {(method, route.path) for route in every_route(app) for method in route.methods - {"HEAD"}}
    pages = hidden - routes - {("GET", "/openapi.json"), ("POST", "/books/{name}/do/{verb}")}
    forms = {("POST", f"/books/{{name}}/do/{verb}") for verb in FORMS}
    assert pages | forms == set(PAGES)


def every_route(app) -> list[APIRoute]:
    """The routes of the application, and those of the routers that it includes."""
    nested = [getattr(getattr(route, "original_router", None), "routes", [route]) for route in app.routes]
    return [route for routes in nested for route in routes]


ROWS = [
    pytest.param(*key, kind, id=f"{kind} {key[0]} {key[1]}")
    for kind, table in (("route", TABLE), ("page", PAGES))
    for key in table
]


@pytest.fixture(scope="module")
def signed_in(server, shelf):
    """A book of the table, and for every role a client with a token and a browser with a session."""
    served = replace(server, name="table")
    copied(shelf, server.folder, "table")
    browsers = {role: Browser(served, role).client for role in ALL}
    browsers[""] = httpx.Client(base_url=served.address, headers=HTML, timeout=60)
    for each in browsers.values():
        each.follow_redirects = False
    programs = {role: served.client(role or None) for role in ("", *ALL)}
    yield served, programs, browsers
    for each in (*programs.values(), *browsers.values()):
        each.close()


@pytest.mark.parametrize(("method", "path", "kind"), ROWS)
def test_a_role_may_do_what_the_table_permits_and_nothing_else(signed_in, method, path, kind):
    """A change is sent without the head of the book: who may do it gets 428, and nothing is changed."""
    served, programs, browsers = signed_in
    before = programs["reader"].get(programs["reader"].at()).headers["etag"]
    found = {}
    for role in ("", *sorted(ALL)):
        if kind == "route":
            parameters, body, permitted = TABLE[method, path]
            more = {"params": {"file": "a.csv"}, "content": b"a,b\n"} if path.endswith("/imports") else {"json": body}
            client = programs[role]
        else:
            parameters, permitted = PAGES[method, path]
            client, more = browsers[role], {}
            if method == "POST":
                page = client.get("/sign-in" if not role else f"/books/{served.name}/import")
                token = re.findall(r'name="form_token" value="([^"]*)"', page.text)
                filled = {field: value.format(name=served.name) for field, value in parameters.items()}
                more = {"data": {"form_token": token[0] if token else "", **filled}}
        place = path.format(**{"name": served.name, **parameters}).format(name=served.name)
        answer = client.request(method, place, **more)
        is_sent_to_sign_in = answer.status_code == 303 and answer.headers["location"].startswith("/sign-in?then=")
        found[role] = answer.status_code not in (401, 403) and not is_sent_to_sign_in
        if not role and role not in permitted:
            assert answer.status_code == 401 or is_sent_to_sign_in
        assert answer.status_code < 500
    assert found == {role: role in permitted for role in ("", *ALL)}
    assert programs["reader"].get(programs["reader"].at()).headers["etag"] == before


def test_whoever_may_read_may_see_what_an_erasure_would_remove_as_an_approver_must(signed_in):
    served, programs, _ = signed_in  # the sessions of the browsers may be over
    for role in ALL:
        client = programs[role]
        seen = client.post(client.at("erasures"), json=WHERE)
        assert (seen.status_code, seen.json()["entry"]) == (200, None)
        page = Browser(served, role).get("/erase", **WHERE).text
        assert ("What will not be removed" in page, 'action="/books/table/do/erase"' in page) == (True, role in WRITERS)
