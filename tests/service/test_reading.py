"""Routes that read: books, versions, quotes, influence, plans, log, certificates; problems and entity tags."""

from __future__ import annotations

import asyncio
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

import strikeout as so
from strikeout.service import readings
from strikeout.service.library import Findings
from tests.service.conftest import copied


@pytest.fixture
def client(open_desk):
    with open_desk.client() as client:
        yield client


def test_a_server_lives_and_is_ready(client):
    assert client.get("/livez").json() == {"status": "ok", "version": so.__version__}
    until = time.monotonic() + 60
    while (ready := client.get("/readyz")).status_code == 503 and time.monotonic() < until:
        time.sleep(0.05)
    assert (ready.status_code, ready.json()) == (200, {"status": "ok"})


def test_the_list_of_books_and_a_book_agree_with_the_book_itself(client, open_desk):
    with open_desk.book() as book:
        status, head = book.status().to_dict(), str(book.snapshot().ledger.head())
    (listed,) = client.get("/v1/books").json()["books"]
    shown = client.get("/v1/books/small")
    assert (listed["name"], listed["held"], listed["head"]) == ("small", status["held"], head)
    assert {name: shown.json()[name] for name in status} == json.loads(json.dumps(status))
    assert shown.headers["etag"] == f'"{head}"'
    assert client.get("/v1/books/small", headers={"if-none-match": f'"{head}"'}).status_code == 304
    assert client.get("/v1/books/small", headers={"if-none-match": '"1:00"'}).status_code == 200


def test_a_question_that_many_ask_at_once_is_answered_once_and_not_kept_after_an_erasure(open_desk):
    path, asked = open_desk.folder / "small.book", []

    async def compute():
        asked.append(len(asked))
        await asyncio.sleep(0.05)
        return asked[-1], head

    async def many(findings, *, drop=False):
        answers = asyncio.gather(*(findings.ask(path, "question", compute) for _ in range(20)))
        while drop and not asked:
            await asyncio.sleep(0.001)
        if drop:
            await findings.drop(str(path))
        return {found for found, _ in await answers}

    async def work():
        nonlocal head
        findings = Findings()
        _, head = await findings.read(path, readings.described)
        first = await many(findings, drop=True)
        second, third = await many(findings), await many(findings)
        await findings.close()
        return first, second, third

    head = ""
    with ThreadPoolExecutor(1) as thread:  # a browser's test in the same process leaves a loop in this one
        assert thread.submit(asyncio.run, work()).result() == ({0}, {1}, {1})


def test_a_file_that_is_not_a_book_is_listed_with_its_problem(client, open_desk):
    path = open_desk.folder / "broken.book"
    path.write_bytes(b"not a book")
    try:
        found = {book["name"]: book for book in client.get("/v1/books").json()["books"]}
    finally:
        path.unlink()
    assert found["broken"]["problem"]["code"] == "not-a-book"
    assert found["small"]["held"] > 0


def test_versions_are_those_of_the_history(client, open_desk):
    with open_desk.book() as book:
        history, version = book.history().to_dict(), book.status().version
    assert client.get("/v1/books/small/versions").json() == history
    one = client.get(f"/v1/books/small/versions/{version.entry}").json()
    assert one["parameters"] == dict(version.parameters)
    assert client.get("/v1/books/small/versions/1").json()["entries"] == [version.entry]


def test_pages_of_quotes_join_to_the_whole_book(client, open_desk):
    with open_desk.book() as book:
        ids = sorted(book.quotes().ids.tolist())
    found, cursor = [], None
    while True:
        page = client.get("/v1/books/small/quotes", params={"limit": 500} | ({"cursor": cursor} if cursor else {}))
        found += [quote["id"] for quote in page.json()["quotes"]]
        cursor = page.json()["cursor"]
        if cursor is None:
            break
    assert found == ids
    assert page.json()["total"] == len(ids)


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        ("text/csv", pl.read_csv),
        ("application/vnd.apache.parquet", pl.read_parquet),
        ("application/vnd.apache.arrow.stream", pl.read_ipc_stream),
    ],
)
def test_quotes_are_given_in_the_format_that_is_asked_for(client, kind, read):
    where = "strike = 100 and date < '2024-02-01'"
    listed = client.get("/v1/books/small/quotes", params={"where": where}).json()
    answer = client.get("/v1/books/small/quotes", params={"where": where}, headers={"accept": kind})
    frame = read(io.BytesIO(answer.content))
    assert answer.headers["content-type"].partition(";")[0] == kind
    assert frame["id"].to_list() == [quote["id"] for quote in listed["quotes"]]
    assert frame["price"].to_list() == [quote["price"] for quote in listed["quotes"]]
    assert 0 < frame.height == listed["total"]


def test_influence_is_that_of_the_library_and_selects_its_group(client, open_desk):
    found = client.get("/v1/books/small/influence", params={"by": "date", "top": 3}).json()
    with open_desk.book() as book:
        direct = so.influence(book.calibration(), ["date"])
    assert found["columns"]["date"] == direct.top(3)["date"].tolist()
    assert found["columns"]["cooks_d"] == direct.top(3)["cooks_d"].tolist()
    selected = client.get("/v1/books/small/quotes", params={"where": found["conditions"][0]}).json()
    assert selected["total"] == found["columns"]["count"][0]


def test_a_plan_is_that_of_the_book_and_changes_nothing(client, open_desk):
    before = client.get("/v1/books/small").headers["etag"]
    answer = client.post("/v1/books/small/plans", json={"where": "date = '2024-03-05'"})
    with open_desk.book() as book:
        direct = book.plan_forget(where="date = '2024-03-05'")
    assert answer.status_code == 200, answer.text
    assert answer.json()["parameters"] == direct.after
    assert answer.json()["forgotten"] == list(direct.ids)
    assert answer.headers["etag"] == before == client.get("/v1/books/small").headers["etag"]


def test_the_log_and_the_check_of_the_book_are_those_of_the_book(client, open_desk):
    with open_desk.book() as book:
        hashes = [entry.hash().hex() for entry in book.log()]
    assert [entry["hash"] for entry in client.get("/v1/books/small/log").json()["entries"]] == hashes
    assert client.get("/v1/books/small/verify").json()["verdict"] == "verified"
    head = "1:" + "0" * 64
    assert client.get("/v1/books/small/verify", params={"head": head}).json()["verdict"] == "refuted"


@pytest.mark.parametrize(
    ("method", "address", "body", "status", "code"),
    [
        ("GET", "/v1/books/absent", None, 404, "no-such-page"),
        ("GET", "/v1/books/..%2Fsmall", None, 404, "no-such-page"),
        ("GET", "/v1/books/..%2F..%2Fetc%2Fpasswd", None, 404, "no-such-page"),
        ("GET", "/v1/books/%2e%2e/small", None, 404, "no-such-page"),
        ("GET", "/v1/books/small%00", None, 404, "no-such-page"),
        ("GET", "/nowhere", None, 404, "no-such-page"),
        ("DELETE", "/v1/books/small", None, 405, "method"),
        ("GET", "/v1/books/small/certificates/1", None, 404, "no-such-page"),
        ("GET", "/v1/books/small/versions/0", None, 422, "usage"),
        ("GET", "/v1/books/small/quotes?where=nothing%3D1", None, 400, "usage"),
        ("GET", "/v1/books/small/quotes?cursor=%21", None, 400, "usage"),
        ("POST", "/v1/books/small/plans", {}, 400, "usage"),
        ("POST", "/v1/books/small/plans", {"where": "strike > 1", "ids": ["a"]}, 400, "usage"),
        ("POST", "/v1/books/small/plans", {"where": "strike < 0"}, 422, "nothing-meant"),
        ("POST", "/v1/books/small/plans", {"ids": ["absent"]}, 422, "unknown-id"),
        ("POST", "/v1/books/small/plans", {"where": "strike > 1", "more": 1}, 422, "usage"),
        ("POST", "/v1/books/small/plans", {"where": "delete from quotes"}, 400, "usage"),
        ("POST", "/v1/books/small/plans", {"where": "strike > 1; drop table quotes"}, 400, "usage"),
    ],
)
def test_errors_are_problems_with_our_codes(client, method, address, body, status, code):
    answer = client.request(method, address, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == f"urn:strikeout:problem:{code}"
    assert problem["detail"]


def test_every_answer_protects_the_browser_and_names_its_request(client):
    for address in ("/livez", "/v1/books", "/nowhere"):
        headers = client.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert len(headers["x-request-id"]) == 16


def test_a_request_for_another_host_is_refused(client):
    assert client.get("/v1/books", headers={"host": "attacker.example"}).status_code == 400


def test_the_access_log_has_routes_and_no_condition(client, open_desk):
    condition = {"where": "strike = 107.25 and date = '2024-01-09'"}
    answers = [
        client.get("/v1/books/small/quotes", params=condition),
        client.post("/v1/books/small/plans", json={"where": "strike = 107.25"}),
        client.get("/v1/books/small-107.25"),
    ]
    lines = [open_desk.line(answer) for answer in answers]
    assert lines[0]["route"] == "/v1/books/{name}/quotes"
    assert {"owner", None} >= {line["who"] for line in lines}
    for secret in ("107.25", "2024-01-09", "strike"):
        assert secret not in open_desk.log.getvalue()


def test_books_that_cannot_be_compared_are_named_without_their_folder(served):
    with so.Book.create(served.folder / f"{served.name}-empty.book") as other, served.client("reader") as client:
        answer = client.get(client.at("compare", other.path.stem))
    assert (answer.status_code, answer.json()["books"]) == (409, [f"{served.name}-empty"])
    assert str(served.folder) not in answer.text


def test_a_parameter_that_a_route_does_not_take_is_refused(served):
    with served.client("reader") as client:
        assert client.get(client.at("quotes"), params={"limt": 3}).status_code == 422
        assert client.get(client.at("quotes"), params={"limit": 3}).status_code == 200


def test_a_book_that_is_replaced_by_a_copy_is_read_again(served, shelf):
    with served.client("operator") as client:
        before = client.get(client.at()).json()["entries"]
        with served.book() as book:
            book.forget(where="strike = 90")
        assert client.get(client.at()).json()["entries"] == before + 1
        for file in served.folder.glob(f"{served.name}.book*"):
            file.unlink()
        copied(shelf, served.folder, served.name)
        assert client.get(client.at()).json()["entries"] == before
        assert client.get(client.at("quotes"), params={"limit": 1}).json()["total"] == 540
