"""Every role against every route: a table of what is permitted, and a test that no route is missing from it."""

from __future__ import annotations

import pytest

from strikeout.service.app import create_app
from strikeout.service.desk import Desk
from strikeout.service.library import Library
from strikeout.service.people import OnePerson, Person, Role

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
    ("POST", "/v1/books/{name}/erasures"): ({}, WHERE, WRITERS),
    ("POST", "/v1/books/{name}/requests/{number}/{decision}"): ({"number": 1, "decision": "approve"}, {}, DECIDERS),
    ("GET", "/v1/jobs/{job}"): ({"job": "0" * 16}, None, ALL),
    ("GET", "/v1/jobs/{job}/events"): ({"job": "0" * 16}, None, ALL),
    ("DELETE", "/v1/jobs/{job}"): ({"job": "0" * 16}, None, ALL),
}


def test_the_table_has_every_route_of_the_interface(tmp_path):
    app = create_app(Desk.of(Library(tmp_path), OnePerson(Person("owner", Role.ADMIN))))
    routes = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    assert routes == set(TABLE)


@pytest.mark.parametrize("role", ["", *sorted(ALL)])
def test_a_role_may_do_what_the_table_permits_and_nothing_else(served, role):
    """A change is sent without If-Match: who may do it gets 428, and nothing is changed."""
    found, expected = {}, {}
    with served.client(role or None) as client, served.client("reader") as reader:
        before = reader.get(reader.at()).headers["etag"]
        for (method, path), (parameters, body, permitted) in TABLE.items():
            address = path.format(**{"name": served.name, **parameters}).format(name=served.name)
            more = {"params": {"file": "a.csv"}, "content": b"a,b\n"} if path.endswith("/imports") else {"json": body}
            status = client.request(method, address, **more).status_code
            found[method, path] = status in (401, 403)
            expected[method, path] = role not in permitted
            if not role and expected[method, path]:
                assert status == 401
        assert reader.get(reader.at()).headers["etag"] == before
    assert found == expected
