"""An attacker reaches the service over the network, with or without a token, or writes to the folder of the books."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

import strikeout as so
from strikeout.service import limits
from strikeout.service.library import Library
from tests.service.conftest import Served, copied, open_desk, served, server, shelf  # noqa: F401
from tests.service.test_changes import WHERE

NAMES = (
    "../small", "..%2f..%2fetc%2fpasswd", "%2e%2e", "small.book.key", "small.book/../../x", "a%00b", "small%0d%0aX: 1",
    "C:\\x", "~root", "*", "small?", "%ff%fe", "a" * 190,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_read_another_file_by_the_name_of_a_book(served, name):  # noqa: F811
    with served.client("admin") as client:
        for path in ("", "/quotes", "/log", "/certificates/1"):
            answer = client.get(f"/v1/books/{name}{path}")
            assert answer.status_code in (404, 422), (name, path, answer.status_code)
            assert "passwd" not in answer.text


def test_serve_what_a_link_leads_to(tmp_path, shelf):  # noqa: F811
    """Only files of the folder itself, and a file with a second name is refused when it is opened."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir(), outside.mkdir()
    copied(shelf, outside)
    (inside / "link.book").symlink_to(outside / "small.book")
    (inside / "folder.book").mkdir()
    os.link(outside / "small.book", inside / "hard.book")
    os.link(outside / "small.book.key", inside / "hard.book.key")
    os.mkfifo(inside / "pipe.book")
    library = Library(inside)
    assert list(library.paths()) == ["hard"]
    with pytest.raises(so.errors.BookError):
        so.Book.open(library.path("hard"))


def sent(to: Served, *parts: bytes, wait: float = 0.0) -> bytes:
    """What the server answers to bytes sent as they are."""
    where = urlsplit(to.address)
    with socket.create_connection((where.hostname, where.port), timeout=20) as line:
        for part in parts:
            line.sendall(part)
            time.sleep(wait)
        answer = b""
        while not answer.partition(b"\r\n\r\n")[2]:
            some = line.recv(65536)
            if not some:
                break
            answer += some
    return answer


def test_fill_the_memory_with_a_body_without_a_length(served):  # noqa: F811
    token = served.tokens["operator"].encode()
    head = b"POST /v1/books/%s/plans HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n" % (
        served.name.encode(),
        token,
    )
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = sent(served, head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 17)
    assert answer.startswith(b"HTTP/1.1 413"), answer[:200]
    answer = sent(served, head + b"Content-Length: 99999999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413"), answer[:200]


def test_keep_connections_with_bodies_that_never_end(served, monkeypatch):  # noqa: F811
    """A byte now and then: the time for a whole body is bounded, not only the time between two parts."""
    monkeypatch.setattr(limits, "PATIENCE", 0.6)
    head = b"POST /v1/books/%s/plans HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n" % served.name.encode()
    answer = sent(served, head, *[b"x"] * 5, wait=0.2)
    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]


def test_upload_without_a_session(served):  # noqa: F811
    """Refused before the body is read: with a form that ends nowhere the answer comes all the same."""
    head = (
        b"POST /books/%s/import HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        b"Content-Length: 150000\r\n\r\n--b\r\n" % served.name.encode()
    )
    answer = sent(served, head)
    assert answer.split()[1] in (b"303", b"401"), answer[:200]


BODIES = {
    "deep": b"[" * 500_000,
    "deep in a member": b'{"where": ' + b"[" * 400_000,
    "not a number": b'{"where": "strike = 90", "tolerance": NaN}',
    "infinite": b'{"where": "strike = 90", "tolerance": Infinity}',
    "minus infinity": b'{"where": "strike = 90", "tolerance": -Infinity}',
    "half a character": b'{"where": "id = \'\\ud800\'"}',
    "half a character as an id": b'{"ids": ["\\udfff"]}',
    "a NUL": b'{"where": "id = \'\\u0000\'"}',
    "a very large number": b'{"where": "strike = 90", "tolerance": 1' + b"0" * 5000 + b"}",
    "another type": b'{"where": {"a": 1}}',
    "an unknown member": b'{"where": "strike = 90", "path": "/etc/passwd"}',
    "not UTF-8": b'{"where": "\xff"}',
    "no body": b"",
}


@pytest.mark.parametrize("name", BODIES)
def test_end_a_worker_or_the_server_with_a_body(served, name):  # noqa: F811
    with served.client("operator") as client:
        answer = client.post(client.at("plans"), content=BODIES[name], headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400, 409, 422), answer.text[:300]
        assert answer.json().get("code") != "internal"
        assert client.get(client.at()).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "black-scholes", "fixed": {"volatility": NaN}}',
        b'{"model": "black-scholes", "fixed": {"volatility": 1e400}}',
        b'{"model": "heston", "bounds": {"correlation": [NaN, Infinity]}}',
        b'{"model": "../../x", "fresh": true}',
        b'{"model": "\\ud800"}',
        b'{"panel": "\\u0000"}',
    ],
)
def test_calibrate_with_what_is_no_number(served, body):  # noqa: F811
    with served.client("operator") as client:
        head = client.get(client.at()).headers["etag"]
        how = {"content-type": "application/json", "if-match": head}
        answer = client.post(client.at("calibrations"), content=body, headers=how)
        assert answer.status_code in (400, 409, 422), answer.text[:300]
        assert answer.json()["code"] != "internal"


def test_get_the_answer_to_another_persons_request(served):  # noqa: F811
    """The same key of two persons is two requests, and a role is checked before a known key is looked up."""
    with served.client("operator") as one, served.client("other") as two, served.client("reader") as reader:
        head = one.get(one.at()).headers["etag"]
        how = {"if-match": head, "idempotency-key": "k1"}
        first = one.post(one.at("forget"), json={"where": WHERE}, headers=how)
        assert first.status_code == 200
        second = two.post(two.at("forget"), json={"where": WHERE}, headers=how)
        assert second.status_code == 412  # a request of its own, for a book that has changed
        assert "idempotency-replayed" not in second.headers
        assert reader.post(reader.at("forget"), json={"where": WHERE}, headers=how).status_code == 403
        again = one.post(one.at("forget"), json={"where": WHERE}, headers=how)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json() == first.json()


def test_read_results_of_before_an_erasure_from_the_jobs(served):  # noqa: F811
    """Parameters that knew an erased quote are removed from the book; the server must not show them either."""
    with served.client("admin") as client:
        head = client.get(client.at()).headers["etag"]
        asked = {"if-match": head, "idempotency-key": "before", "prefer": "respond-async"}
        job = client.post(client.at("forget"), json={"where": WHERE}, headers=asked).json()["job"]
        while (shown := client.get(f"/v1/jobs/{job}").json())["state"] in ("queued", "running"):
            time.sleep(0.02)
        assert "before" in json.dumps(shown["result"])
        body = {"where": "strike = 100 and expiry_years < 0.2", "confirm": served.name, "reason": {"code": "licence"}}
        done = client.post(client.at("erasures"), json=body, headers={"if-match": f'"{shown["head"]}"'})
        assert done.status_code == 200, done.text
        assert client.get(f"/v1/jobs/{job}").status_code == 404
        again = client.post(client.at("forget"), json={"where": WHERE}, headers={**asked, "prefer": ""})
        assert again.json() == {"removed": True}
        assert all(not job.task.arguments for job in served.desk.jobs._jobs.values() if job.task.book == served.name)


def test_fill_the_memory_with_bad_rows(served):  # noqa: F811
    """Bad rows are returned, and kept with the job: as many as a person reads, not as many as were sent."""
    rows = b"strike,right,price,expiry_years,forward,discount\n100,C,5,0.5,100,1\n" + b"x,C,1,1,1,1\n" * 12_000
    with served.client("operator") as client:
        head = client.get(client.at()).headers["etag"]
        asked = {"file": "a.csv", "max_reject": 1, "source": "s"}
        answer = client.post(client.at("imports"), params=asked, content=rows, headers={"if-match": head})
        assert answer.status_code == 200, answer.text[:300]
        found = answer.json()
        assert found["rejected"] == 12_000
        assert found["quarantined"] == 5_000
        assert found["quarantine"].count("\n") <= 5_003


def test_write_a_header_or_a_line_of_the_log(served):  # noqa: F811
    with served.client("admin") as client:
        for odd in ("a\r\nset-cookie: x=1", "\x1b[2Jx", "x" * 199):
            asked = {"where": f"source = '{odd}'", "cursor": quote(odd)}
            answer = client.get(client.at("quotes"), params=asked)
            assert "set-cookie" not in answer.headers
        for line in served.log.getvalue().splitlines():
            assert set(json.loads(line)) == {"at", "request", "method", "route", "book", "who", "role", "status", "ms"}


def test_address_the_server_by_two_names(served):  # noqa: F811
    """A page of another site must not get through by a second Host header."""
    request = b"GET /v1/books HTTP/1.1\r\nHost: evil.example\r\nHost: 127.0.0.1\r\n\r\n"
    assert sent(served, request).split()[1] == b"400"
    request = b"GET /v1/books HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n"
    assert sent(served, request).split()[1] == b"400"


def test_replace_a_book_between_plan_and_apply(served):  # noqa: F811
    """The plan names the head it was made for; another file under the same name has another."""
    with served.client("operator") as client:
        planned = client.post(client.at("plans"), json={"where": WHERE})
        new = so.Quotes(ids=["new"], contracts=so.paper.quotes("small").contracts[:1], observed=[3.25])
        with served.book() as book:
            book.import_quotes(new)
        how = {"if-match": planned.headers["etag"]}
        answer = client.post(client.at("forget"), json={"plan": planned.json()["plan"]}, headers=how)
        assert answer.status_code == 412
        head = client.get(client.at()).headers["etag"]
        answer = client.post(client.at("forget"), json={"plan": planned.json()["plan"]}, headers={"if-match": head})
        assert answer.status_code in (409, 422), answer.text


def test_upload_beside_the_books(served):  # noqa: F811
    """Of the name of a file only its ending is used."""
    with served.client("operator") as client:
        head = client.get(client.at()).headers["etag"]
        for name in ("../../x.csv", "/etc/x.csv", "small.book.csv", "a\0.csv"):
            client.post(client.at("imports"), params={"file": name}, content=b"x", headers={"if-match": head})
    assert not list(Path(served.folder).parent.glob("*.csv"))
    assert not [
        path for path in served.folder.iterdir() if path.suffix not in (".book", ".key", ".book-wal", ".book-shm")
    ]
