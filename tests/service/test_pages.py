"""Pages without script: what they show, forms and their tokens, sessions, and files for every table."""

from __future__ import annotations

import re
import time
from html import unescape

import httpx
import pytest

import strikeout as so
from strikeout.errors import TooManyError
from strikeout.service.sessions import FAILURES, SECONDS, WINDOW, Sessions, SignInLimit
from tests.service.conftest import copied
from tests.service.test_changes import WHERE, rows_of

HTML = {"accept": "text/html"}
PAGES = ("", "/what-if", "/requests", "/quotes", "/audit", "/compare", "/drift", "/import", "/erase", "/evidence")


def fields(page: httpx.Response, action: str) -> dict[str, str]:
    """The hidden fields of the form with this action."""
    forms = re.findall(r"<form.*?</form>", page.text, re.DOTALL)
    form = next(each for each in forms if f'action="{action}"' in each or f'formaction="{action}"' in each)
    hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in hidden}


class Browser:
    """A browser without script: it follows forms of the pages it has seen."""

    def __init__(self, served, role=None):
        self.client = httpx.Client(base_url=served.address, headers=HTML, timeout=60, follow_redirects=True)
        self.book = f"/books/{served.name}"
        if role is not None:
            answer = self.client.post("/sign-in", data={"token": served.tokens[role], "then": self.book})
            assert answer.status_code == 200, answer.text

    def get(self, path="", **query) -> httpx.Response:
        return self.client.get(f"{self.book}{path}", params=query)

    def submit(self, page, verb, **more) -> httpx.Response:
        action = f"{self.book}/do/{verb}"
        answer = self.client.post(action, data={**fields(page, action), **more})
        return self.until_over(answer)

    def until_over(self, answer) -> httpx.Response:
        """The page of a job when it is over, however busy the machine is."""
        while 'data-events="' in answer.text:
            time.sleep(0.2)
            answer = self.client.get(answer.url)
        return answer


def browser(served, role=None):
    return Browser(served, role)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_answers_and_forbids_inline_script(served, path):
    page = browser(served, "admin").get(path)
    assert page.status_code == 200, page.text
    assert "<h1" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'unsafe-inline'" not in policy
    assert re.search(r"<script(?! src=)|\son\w+=|\sstyle=", page.text) is None
    assert "Undefined" not in page.text


def test_the_page_shows_the_parameters_of_the_book(served):
    with served.book() as book:
        parameters = book.status().version.parameters
    text = browser(served, "reader").get().text.replace("\N{MINUS SIGN}", "-")
    for name, value in parameters.items():
        assert re.search(rf"{name}</th><td>{re.escape(format(value, '.6g'))}</td>", text)


def test_what_if_shows_the_plan_of_the_book_and_changes_nothing(served):
    with served.book() as book:
        planned, head = book.plan_forget(where=WHERE), book.log()[-1].number
    text = browser(served, "reader").get("/what-if", where=WHERE).text.replace("\N{MINUS SIGN}", "-")
    for name, value in planned.after.items():
        assert re.search(rf"{name}</th><td>[^<]*</td><td>{re.escape(format(value, '.6g'))}</td>", text)
    assert "NEVER_SEEN" in text
    assert "/do/forget" not in text  # a reader cannot
    with served.book() as book:
        assert book.log()[-1].number == head


def test_the_rmse_after_is_that_of_the_calibration_after(served):
    person = browser(served, "operator")
    page = person.get("/what-if", where=WHERE)
    shown = re.search(r"RMSE in price</th><td>[^<]*</td><td>([^<]*)</td>", page.text)
    person.submit(page, "forget", code="test")
    with served.book() as book:
        assert shown[1].replace("\N{MINUS SIGN}", "-") == format(book.status().version.rmse, ".4g")


def test_a_form_strikes_out_and_its_certificate_verifies(served):
    person = browser(served, "operator")
    done = person.submit(person.get("/what-if", where=WHERE), "forget", code="bad-feed", ticket="T-1", text="")
    assert done.status_code == 200, done.text
    assert "struck out in entry 4" in done.text
    with served.book() as book:
        entry = book.log()[-1]
        assert (entry.who, entry.what, str(entry.why)) == ("operator", "forget", "bad-feed (T-1)")
        assert so.verify(book.certificate(entry.number), book.quotes()).holds
    struck = person.get("/quotes", state="struck").text
    assert struck.count('<tr class="struck"') == 6
    restored = person.submit(person.get(), "restore", entry="4", code="error")
    assert "brought back" in restored.text
    with served.book() as book:
        assert (book.status().set_aside, book.verify().holds) == (0, True)


def test_a_form_sent_twice_is_done_once(served):
    person = browser(served, "operator")
    page = person.get("/what-if", where=WHERE)
    first = person.submit(page, "forget", code="test")
    again = person.submit(page, "forget", code="test")
    assert first.url == again.url
    with served.book() as book:
        assert [entry.what for entry in book.log()].count("forget") == 1


def test_a_form_for_an_older_state_of_the_book_is_not_done(served):
    person = browser(served, "operator")
    page = person.get("/what-if", where="strike = 90")
    person.submit(person.get("/what-if", where=WHERE), "forget", code="test")
    late = person.submit(page, "forget", code="test")
    assert "has changed since you looked" in late.text
    with served.book() as book:
        assert [entry.what for entry in book.log()].count("forget") == 1


@pytest.mark.parametrize("token", ["", "0" * 64, None])
def test_a_form_without_the_token_of_its_session_is_refused(served, token):
    person, other = browser(served, "operator"), browser(served, "admin")
    page = person.get("/what-if", where=WHERE)
    if token is None:  # the token of another session
        token = fields(other.get("/what-if", where=WHERE), f"{other.book}/do/forget")["form_token"]
    refused = person.submit(page, "forget", code="test", form_token=token)
    assert refused.status_code == 401
    with served.book() as book:
        assert book.status().set_aside == 0


def test_a_cookie_alone_changes_nothing_through_the_interface_for_programs(served):
    person = browser(served, "operator")
    head = person.client.get(f"/v1{person.book}").headers["etag"]
    answer = person.client.post(f"/v1{person.book}/forget", json={"where": WHERE}, headers={"if-match": head})
    assert answer.status_code == 401


def test_pages_need_a_session_and_lead_to_the_form_to_sign_in(served):
    stranger = browser(served)
    page = stranger.get("/quotes", where="strike = 90")
    assert page.url.path == "/sign-in"
    assert page.url.params["then"] == f"{stranger.book}/quotes?where=strike+%3D+90"
    wrong = stranger.client.post("/sign-in", data={"token": "so_wrong", "then": "/"})
    assert wrong.status_code == 401
    assert stranger.get().url.path == "/sign-in"
    for elsewhere in ("//example.com", "https://example.com", "/\\example.com"):
        inside = stranger.client.post(
            "/sign-in", data={"token": served.tokens["reader"], "then": elsewhere}, follow_redirects=False
        )
        assert inside.headers["location"] == "/"
    cookie = inside.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=lax", "path=/"))


def test_signing_out_ends_the_session(served):
    person = browser(served, "reader")
    person.client.post("/sign-out", data=fields(person.get(), "/sign-out"))
    assert person.get().url.path == "/sign-in"


def test_a_session_expires_and_cannot_be_forged_or_changed():
    now = [1000.0]
    sessions = Sessions(clock=lambda: now[0])
    cookie = sessions.seal(sessions.begin("proof"))
    assert sessions.read(cookie).proof == "proof"
    text, _, mark = cookie.rpartition(".")
    wrong = mark[:-1] + ("1" if mark.endswith("0") else "0")
    other = Sessions(clock=lambda: now[0])
    assert [sessions.read(each) for each in (None, "", "x", f"{text}x.{mark}", f"{text}.{wrong}", "é.é")] == [None] * 6
    assert sessions.read(other.seal(other.begin("proof"))) is None
    now[0] += SECONDS + 1
    assert sessions.read(cookie) is None


def test_sign_in_is_limited_by_address():
    now = [0.0]
    limit = SignInLimit(clock=lambda: now[0])
    for _ in range(FAILURES):
        limit.check("1")
        limit.failed("1")
    with pytest.raises(TooManyError):
        limit.check("1")
    limit.check("2")
    now[0] += WINDOW + 1
    limit.check("1")


def test_four_eyes_by_forms(served):
    with served.book() as book:
        book.set_approval("two-person")
    one, two = browser(served, "operator"), browser(served, "approver")
    page = one.get("/what-if", where=WHERE)
    assert "/do/forget" not in page.text
    asked = one.submit(page, "request", code="bad-feed")
    assert "Request 5 waits" in asked.text
    plan = two.get("/requests")
    assert "NEVER_SEEN" in plan.text
    assert "/do/approve" not in one.get("/requests").text
    assert "is approved" in two.submit(plan, "approve").text
    done = one.submit(one.get("/requests"), "carry-out")
    assert "struck out in entry 7" in done.text
    with served.book() as book:
        assert [(each.state, each.who, each.by) for each in book.requests()] == [("done", "operator", "approver")]
        assert book.verify().holds
    evidence = one.get("/evidence", number=5).text
    assert "approver" in evidence
    assert WHERE not in unescape(evidence)


def test_the_one_who_approves_an_erasure_sees_beside_it_what_it_removes_and_what_stays(served):
    operator, approver = browser(served, "operator"), browser(served, "approver")
    page = operator.get("/erase", where=WHERE, code="licence")
    operator.submit(page, "request", what="erase")
    with served.book() as book:
        plan = book.plan_erase(where=WHERE, reason="licence")
    shown = unescape(approver.get("/requests").text)
    assert all(line in shown for line in (*plan.gone, *plan.stays, *plan.beyond))
    assert "/do/approve" in shown


def test_an_erasure_needs_the_name_of_the_book(served):
    person = browser(served, "operator")
    page = person.get("/erase", where=WHERE, code="licence")
    assert "What will not be removed" in page.text
    wrong = person.submit(page, "erase", confirm="another")
    assert wrong.status_code == 400
    done = person.submit(person.get("/erase", where=WHERE, code="licence"), "erase", confirm=served.name)
    assert "6 quotes erased" in done.text
    with served.book() as book:
        assert (book.status().erased, book.verify().holds) == (6, True)


def test_an_import_shows_what_was_understood_before_it_is_done(served):
    person = browser(served, "operator")
    action = f"{person.book}/import"
    data = fields(person.get("/import"), action)
    look = person.client.post(action, data=data, files={"file": ("new.csv", rows_of(served))})
    assert look.status_code == 200, look.text
    assert "Import 38 quotes" in look.text
    with served.book() as book:
        held = book.status().held
    commit = next(form for form in re.findall(r"<form.*?</form>", look.text, re.DOTALL) if 'name="held"' in form)
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', commit))
    thief = browser(served, "admin")
    stolen = thief.client.post(action, data={**hidden, **fields(thief.get("/import"), action)})
    assert stolen.status_code == 404
    done = person.until_over(person.client.post(action, data=hidden))
    assert "38" in done.text
    bad = person.client.get(f"{done.url.path}/quarantine.csv")
    assert len(bad.text.strip().splitlines()) == 3
    with served.book() as book:
        assert book.status().held == held + 38
    assert not [path for path in served.folder.iterdir() if path.name.startswith(".strikeout-upload")]


def test_what_comes_from_data_is_shown_as_text(served):
    evil = "<img src=x onerror=alert(1)>"
    person = browser(served, "operator")
    page = person.get("/what-if", where=f"strike = 90 and '{evil}' = '{evil}'")
    person.submit(page, "request", code="other", text=evil, ticket="<b>")
    for path in PAGES:
        text = person.get(path, where=f"'{evil}' = '{evil}'").text
        assert "<img" not in text
        assert "<b>" not in text


@pytest.mark.parametrize(
    "kind",
    [
        "tables/influence",
        "tables/smiles",
        "tables/residuals",
        "tables/history",
        "tables/log",
        "tables/requests",
        "quotes",
    ],
)
def test_every_table_has_files_with_the_same_rows(served, kind):
    person = browser(served, "reader")
    csv, records = person.get(f"/{kind}.csv"), person.get(f"/{kind}.json").json()
    assert csv.headers["content-type"].startswith("text/csv")
    assert len(csv.text.strip().splitlines()) - 1 == len(records)
    assert kind == "tables/requests" or records


def test_a_page_of_a_browser_is_html_also_if_it_is_a_problem(served):
    person = browser(served, "reader")
    unknown = person.client.get("/books/none")
    assert (unknown.status_code, unknown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    program = httpx.get(f"{served.address}/books/none")
    assert program.headers["content-type"] == "application/problem+json"


def test_the_book_page_is_light_and_its_files_are_kept(served):
    person = browser(served, "reader")
    page = person.get()
    files = re.findall(r'(?:src|href)="(/static/[^"]*)"', page.text)
    answers = [person.client.get(file) for file in files]
    weight = sum(int(each.headers["content-length"]) for each in (page, *answers))
    assert all(each.headers.get("content-encoding") == "gzip" for each in (page, *answers[1:]))
    assert len(files) + 1 <= 12
    assert weight <= 600_000
    assert all("immutable" in each.headers["cache-control"] for each in answers)
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("table", ["parameters", "smiles"])
def test_the_tables_of_what_if_have_twins_that_are_linked(served, table):
    visitor = browser(served, "reader")
    page = visitor.get("/what-if", where="strike = 90")
    links = [unescape(each) for each in re.findall(r'href="([^"]*)"', page.text) if f"/what-if/{table}." in each]
    csv, records = (visitor.client.get(link) for link in links)
    assert (csv.status_code, records.status_code) == (200, 200)
    rows = csv.text.splitlines()[1:]
    assert len(rows) == len(records.json()) > 0
    if table == "parameters":
        assert [row.split(",")[0] for row in rows] == [row["parameter"] for row in records.json()]
        assert "mean_reversion" in csv.text


def test_two_servers_of_a_host_keep_the_sessions_of_a_browser_apart(served, open_desk):
    with httpx.Client(headers=HTML, timeout=60, follow_redirects=True) as client:
        first = client.get(f"{open_desk.address}/books/small/import")
        token = re.findall(r'name="form_token" value="([^"]*)"', first.text)
        client.post(f"{served.address}/sign-in", data={"token": served.tokens["reader"], "then": "/"})
        assert len(set(client.cookies)) == 2
        again = client.get(f"{open_desk.address}/books/small/import")
        assert re.findall(r'name="form_token" value="([^"]*)"', again.text) == token


def test_compare_draws_the_curves_of_two_versions_and_of_two_books(served, shelf):
    copied(shelf, served.folder, f"{served.name}-twin")
    with served.book() as book:
        before = book.snapshot().version
        done = book.forget(where=WHERE)
        shown = book.calibration()
    person = browser(served, "reader")
    page = person.get("/compare", first=before.entry, second=done.entry)
    assert page.text.count('class="so-model"') == page.text.count('class="so-after"') > 1
    assert f"entry {done.entry}, %" in page.text  # the table twin has both curves
    assert re.search(r'aria-label="Smiles, [^"]*: implied volatility', page.text)
    rows = person.get("/tables/curves.json", first=before.entry, second=done.entry).json()
    last = max(shown.used.labels["date"])
    assert {row["quote"] for row in rows} == set(shown.used.ids[shown.used.labels["date"] == last])
    assert any(row[f"entry {before.entry}, %"] != row[f"entry {done.entry}, %"] for row in rows)
    other = person.get("/compare", other=f"{served.name}-twin", view="difference")
    assert other.text.count('class="so-after"') > 1
    assert person.get("/tables/curves.csv", other=f"{served.name}-twin").status_code == 200
    assert person.get("/tables/curves.csv", first=1, second=2).status_code == 400


def test_the_calibrate_form_takes_the_settings_of_the_command_line(served):
    person = browser(served, "operator")
    done = person.submit(
        person.get(), "calibrate", panel="date", latent="smoothed", starts="1", bounds="mean_reversion=0.5:9"
    )
    assert "Calibrated in entry" in done.text, done.text
    with served.book() as book:
        kept = book.snapshot().settings
    assert (kept.panel, kept.latent, kept.starts) == ("date", "smoothed", 1)
    assert kept.bounds == {"mean_reversion": (0.5, 9.0)}
    for wrong in ({"bounds": "mean_reversion=9"}, {"fixed": "correlation=1:2"}, {"perturb": "much"}, {"starts": "x"}):
        assert person.submit(person.get(), "calibrate", **wrong).status_code == 400
