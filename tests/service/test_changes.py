"""Routes that change a book: heads, keys, jobs, four eyes, erasures and imports."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest

import strikeout as so

WHERE = "date = '2024-03-05'"


def head(client):
    return client.get(client.at()).headers["etag"]


def post(client, path, body=None, **headers):
    """Post a change for the book as it is now."""
    headers = {"if-match": head(client)} | {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(client.at(path), json=body or {}, headers=headers)


def test_a_forget_equals_that_of_the_book_and_its_certificate_verifies(served):
    with served.book() as book:
        planned = book.plan_forget(where=WHERE)
    with served.client("operator") as client:
        done = post(client, "forget", {"where": WHERE, "reason": {"code": "bad-feed", "ticket": "T-1"}})
        assert done.status_code == 200, done.text
        assert done.json()["parameters"] == planned.after
        assert done.headers["etag"] == head(client)
        certificate = client.get(client.at(f"certificates/{done.json()['entry']}")).content
    with served.book() as book:
        entry = book.log()[-1]
        assert (entry.who, entry.what, str(entry.why)) == ("operator", "forget", "bad-feed (T-1)")
        assert so.verify(so.results.Certificate.from_bytes(certificate), book.quotes()).holds
        assert book.verify().holds


def test_a_plan_is_applied_exactly_as_it_was_shown(served):
    with served.client("operator") as client:
        shown = client.post(client.at("plans"), json={"where": WHERE, "reason": {"code": "test"}}).json()
        done = post(client, "forget", {"plan": shown["plan"]})
        assert (done.status_code, done.json()["parameters"]) == (200, shown["parameters"])
        again = post(client, "forget", {"plan": shown["plan"]})
        assert (again.status_code, again.json()["code"]) == (409, "refused")
        both = post(client, "forget", {"plan": shown["plan"], "where": WHERE})
        assert both.status_code == 400


def test_a_restored_book_has_the_parameters_it_had(served):
    with served.client("operator") as client:
        before = client.get(client.at()).json()["calibration"]["parameters"]
        entry = post(client, "forget", {"where": WHERE}).json()["entry"]
        assert post(client, "restore", {"entry": entry}).json()["parameters"] == before


def test_a_change_needs_the_head_it_was_decided_for(served):
    with served.client("operator") as client:
        missing = client.post(client.at("forget"), json={"where": WHERE})
        star = client.post(client.at("forget"), json={"where": WHERE}, headers={"if-match": "*"})
        seen = head(client)
        assert post(client, "forget", {"where": WHERE}).status_code == 200
        moved = client.post(client.at("forget"), json={"where": "strike = 90"}, headers={"if-match": seen})
        assert [(each.status_code, each.json()["code"]) for each in (missing, star, moved)] == [
            (428, "missing-head"),
            (428, "missing-head"),
            (412, "moved-head"),
        ]
        assert f'"{moved.json()["head"]}"' == head(client)
    with served.book() as book:
        assert [entry.what for entry in book.log()][-1] == "forget"


def test_the_same_key_gets_the_same_answer_and_another_request_is_refused(served):
    with served.client("operator") as client:
        headers = {"if-match": head(client), "idempotency-key": "one"}
        first = client.post(client.at("forget"), json={"where": WHERE}, headers=headers)
        again = client.post(client.at("forget"), json={"where": WHERE}, headers=headers)
        other = client.post(client.at("forget"), json={"where": "strike = 90"}, headers=headers)
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (422, "reused-key")
    with served.client("admin") as client:  # keys of one person are not those of another
        theirs = client.post(client.at("forget"), json={"where": WHERE}, headers=headers)
        assert theirs.status_code == 412
    with served.book() as book:
        assert [entry.what for entry in book.log()].count("forget") == 1


def test_two_writers_at_once_get_one_change_and_one_clear_answer(served):
    with served.client("operator") as one, served.client("admin") as two:
        asked = {"if-match": head(one), "prefer": "respond-async"}
        jobs = [
            client.post(client.at("forget"), json={"where": where}, headers=asked).json()["job"]
            for client, where in ((one, WHERE), (two, "date = '2024-03-06'"))
        ]
        states = []
        for job in jobs:
            with one.stream("GET", f"/v1/jobs/{job}/events") as events:
                lines = list(events.iter_lines())
            assert "event: over" in lines
            states.append(one.get(f"/v1/jobs/{job}").json())
    assert [state["state"] for state in states] == ["done", "failed"]
    assert states[1]["problem"]["code"] == "moved-head"


def test_two_persons_are_needed_and_neither_role_nor_route_replaces_the_second(served):
    with served.book() as book:
        book.set_approval("two-person")
    with served.client("admin") as admin, served.client("other") as other, served.client("approver") as approver:
        alone = post(admin, "forget", {"where": WHERE})
        assert (alone.status_code, alone.json()["code"]) == (409, "refused")
        asked = post(admin, "requests", {"what": "forget", "where": WHERE, "reason": {"code": "bad-feed"}}).json()
        number = asked["request"]
        own = post(admin, f"requests/{number}/approve")
        assert (own.status_code, own.json()["code"]) == (409, "refused")
        early = post(admin, f"requests/{number}/carry-out")
        assert early.status_code == 409
        assert post(approver, f"requests/{number}/approve").json()["state"] == "approved"
        assert post(other, f"requests/{number}/reject").status_code == 409
        done = post(admin, f"requests/{number}/carry-out")
        assert done.status_code == 200, done.text
        assert post(admin, f"requests/{number}/carry-out").status_code == 409
        listed = admin.get(admin.at("requests")).json()["requests"]
    assert [(one["state"], one["who"], one["by"]) for one in listed] == [("done", "admin", "approver")]
    with served.book() as book:
        assert book.verify().holds


def test_an_erasure_is_rehearsed_then_done_by_repeating_the_name(served):
    with served.client("operator") as client:
        body = {"where": WHERE, "reason": {"code": "licence"}}
        rehearsal = post(client, "erasures", body).json()
        assert (rehearsal["entry"], rehearsal["count"] > 0) == (None, True)
        assert post(client, "erasures", body | {"confirm": served.name[:-1]}).status_code == 400
        assert client.get(client.at()).json()["erased"] == 0
        done = post(client, "erasures", body | {"confirm": served.name})
        assert done.status_code == 200, done.text
        assert (done.json()["count"], done.json()["residue"]) == (rehearsal["count"], 0)
        assert client.get(client.at()).json()["erased"] == rehearsal["count"]
        assert client.get(client.at("quotes"), params={"where": WHERE}).json()["total"] == 0


def rows_of(served, count=40, bad=2) -> bytes:
    """A CSV of new quotes, with some prices that are no numbers."""
    with served.book() as book:
        frame = book.quotes().to_frame().head(count)
    import polars as pl

    price = pl.Series("price", ["?" if row < bad else str(x) for row, x in enumerate(frame["price"])])
    return frame.with_columns(pl.format("new-{}", "id").alias("id"), price).write_csv().encode()


def test_an_import_returns_the_bad_rows_and_leaves_no_file(served):
    data = rows_of(served)
    with served.client("operator") as client:
        look = client.post(client.at("imports"), params={"file": "a.csv", "dry_run": True}, content=data)
        assert (look.status_code, look.json()["count"], look.json()["rejected"]) == (200, 38, 2), look.text
        held = client.get(client.at()).json()["held"]
        headers = {"if-match": head(client), "idempotency-key": "k"}
        done = client.post(client.at("imports"), params={"file": "a.csv"}, content=data, headers=headers)
        again = client.post(client.at("imports"), params={"file": "a.csv"}, content=data, headers=headers)
        other = client.post(client.at("imports"), params={"file": "a.csv"}, content=data + b"\n", headers=headers)
        assert done.status_code == 200, done.text
        assert (done.json()["imported"], done.json()["rejected"]) == (38, 2)
        assert len(done.json()["quarantine"].strip().splitlines()) == 3
        assert again.json() == done.json()
        assert other.status_code == 422
        assert client.get(client.at()).json()["held"] == held + 38
    assert sorted(path.name for path in served.folder.iterdir() if path.name.startswith(".")) == []


def test_american_rows_of_an_import_are_converted_at_the_rate_that_is_given(served):
    from tests.american.test_to_european import RATE
    from tests.american.test_to_european import frame as american_chain

    data = american_chain(seed=1).write_csv().encode()
    with served.client("operator") as client:

        def notes(**how: object) -> list[str]:
            params = {"file": "a.csv", "dry_run": True, **how}
            answer = client.post(client.at("imports"), params=params, content=data)
            assert answer.status_code == 200, answer.text
            return answer.json()["notes"]

        assert [len(notes()), len(notes(rate=RATE)), len(notes(exercise="european"))] == [2, 1, 0]
        assert client.post(client.at("imports"), params={"file": "a.csv", "exercise": "x"}).status_code == 422
        headers = {"if-match": head(client), "idempotency-key": "american"}
        done = client.post(client.at("imports"), params={"file": "a.csv", "rate": RATE}, content=data, headers=headers)
        assert done.status_code == 200, done.text
    with served.book() as book:
        mid = book.quotes().labels["american_mid"]
    assert np.isfinite(mid).sum() == done.json()["imported"] > 0


@pytest.mark.parametrize(
    ("file", "content", "status", "code"),
    [
        ("a.exe", b"x", 400, "usage"),
        ("a.csv", b"", 400, "usage"),
        ("a.csv", b"one,two\n1,2\n", 422, "column"),
        ("a.parquet", b"not parquet", 422, "unreadable-file"),
        ("../../a.csv", b"one,two\n1,2\n", 422, "column"),
        ("a.csv", b"x" * 200_001, 413, "too-large"),
    ],
)
def test_a_file_that_cannot_be_imported_is_a_problem(served, file, content, status, code):
    with served.client("operator") as client:
        for body in (content, iter([content])):  # with its length, and in parts
            headers = {"if-match": head(client)}
            answer = client.post(client.at("imports"), params={"file": file}, content=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert sorted(path.name for path in served.folder.iterdir() if path.name.startswith(".")) == []


def test_a_calibration_is_a_job_with_progress(served):
    with served.client("operator") as client:
        answer = post(client, "calibrations", {"loss": "huber"}, prefer="respond-async")
        assert answer.status_code == 202
        with client.stream("GET", f"{answer.headers['location']}/events") as events:
            sent = [json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: ")]
        job = client.get(answer.headers["location"]).json()
    assert (sent[-1]["state"], job["state"]) == ("done", "done")
    assert any(each["progress"].get("step") == "calibrating" for each in sent)
    with served.book() as book:
        assert job["result"]["parameters"] == dict(book.status().version.parameters)
        assert book.log()[-1].who == "operator"


def test_a_job_is_cancelled_by_its_person_or_an_admin_and_changes_nothing(served):
    with served.client("operator") as client, served.client("approver") as stranger:
        before = head(client)
        jobs = [post(client, "calibrations", {"fresh": True}, prefer="respond-async").json()["job"] for _ in range(3)]
        assert stranger.delete(f"/v1/jobs/{jobs[-1]}").status_code == 403
        ended = client.delete(f"/v1/jobs/{jobs[-1]}").json()
        assert ended["state"] == "cancelled"
        assert client.get(f"/v1/jobs/{'0' * 16}").status_code == 404
    with served.book() as book:
        assert book.verify().holds
        assert len(book.log()) <= int(before[1:].partition(":")[0]) + 2


def test_a_worker_that_is_killed_gives_a_problem_and_the_next_request_works(served):
    with served.client("operator") as client:
        assert client.get(client.at("influence")).status_code == 200
        for worker in list(served.desk.jobs.questions._idle):
            os.kill(worker.pid, signal.SIGKILL)
        answers = [client.get(client.at("influence"), params={"top": n}).status_code for n in (2, 3, 4)]
    assert answers[-1] == 200
    assert set(answers) <= {200, 500}


def test_the_metrics_count_quotes_refusals_and_verifications(served):
    with served.client("auditor") as client:
        assert client.get(client.at("verify")).json()["verdict"] == "verified"
        client.get("/v1/books/absent")
        text = client.get("/metrics").text
        held = client.get(client.at()).json()["held"]
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines[f'strikeout_quotes{{book="{served.name}",state="held"}}']) == held
    assert float(lines['strikeout_refusals_total{code="no-such-page"}']) >= 1
    assert float(lines['strikeout_verb_seconds_count{verb="verify"}']) >= 1
    assert float(lines[f'strikeout_last_verified_timestamp_seconds{{book="{served.name}"}}']) > 1.7e9
    with served.client("reader") as client:
        assert client.get("/metrics").status_code == 403


def test_a_request_is_withdrawn_by_the_person_who_made_it(served):
    with served.client("operator") as client, served.client("other") as other:
        number = post(client, "requests", {"what": "forget", "where": WHERE}).json()["request"]
        refused = post(other, f"requests/{number}/withdraw")
        assert (refused.status_code, refused.json()["who"]) == (409, "operator")
        done = post(client, f"requests/{number}/withdraw", {"reason": {"code": "error"}})
        assert (done.status_code, done.json()["state"]) == (200, "withdrawn")
        assert post(other, f"requests/{number}/approve").status_code == 409


@pytest.mark.parametrize(
    "settings",
    [
        {"panel": "date", "latent": "smoothed:2", "errors": "independent", "starts": 1},
        {
            "loss": "huber",
            "select": "otm",
            "feller": "ignore",
            "bounds": {"mean_reversion": (0.5, 6.0)},
            "fixed": {"correlation": -0.5},
        },
    ],
)
def test_a_calibration_takes_the_settings_of_the_command_line(served, settings):
    with served.client("operator") as client:
        noise = 0.0 if "panel" in settings else 0.001
        done = post(client, "calibrations", {**settings, "perturb": noise})
        assert done.status_code == 200, done.text
        unknown = post(client, "calibrations", {"latent": "guessed"})
        assert (unknown.status_code, unknown.json()["code"]) == (400, "usage")
    with served.book() as book:
        assert {name: getattr(book.snapshot().settings, name) for name in settings} == settings
        assert book.snapshot().noise == noise


def test_bad_rows_are_counted_in_the_ledger(served):
    """The count is the book's own, so it is there after the server was started again."""
    with served.client("operator") as client:
        done = client.post(
            client.at("imports"), params={"file": "a.csv"}, content=rows_of(served), headers={"if-match": head(client)}
        )
        assert (done.status_code, done.json()["rejected"]) == (200, 2)
        assert client.get(client.at()).json()["quarantined"] == 2
    with served.client("auditor") as client:
        assert f'strikeout_quotes{{book="{served.name}",state="quarantined"}} 2.0' in client.get("/metrics").text
    with served.book() as book:
        assert (book.log()[-1].counts["quarantined"], book.status().quarantined) == (2, 2)
        assert book.verify().holds
