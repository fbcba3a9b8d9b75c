"""Tokens, roles and addresses: who may send a request at all."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import httpx
import pytest
from click.testing import CliRunner

from strikeout.cli import serve as serving
from strikeout.cli import strikeout
from strikeout.errors import UsageError
from strikeout.service.people import PERMITTED, Action, Person, Role, Tokens, hash_of, new_token, parse_tokens


def run(*words):
    return CliRunner().invoke(strikeout, [str(word) for word in words])


def test_the_command_prints_the_line_on_stdout_and_the_secret_on_stderr_only():
    done = run("token", "ada", "--role", "operator")
    secret = re.search(r"so_\S+", done.stderr)[0]
    assert done.stdout == f"ada operator {hash_of(secret)}\n"
    assert secret not in done.stdout
    found = parse_tokens(done.stdout, "tokens")
    assert list(found.values()) == [Person("ada", Role.OPERATOR)]


def test_two_tokens_are_never_the_same():
    assert len({new_token("ada", Role.READER)[0] for _ in range(100)}) == 100


def test_the_command_offers_every_role():
    assert tuple(Role) == serving.ROLES


@pytest.mark.parametrize("name", ["", "two words", "bell\a", "#ada", "x" * 81, "a\u202eb"])
def test_a_name_that_cannot_be_a_word_of_the_file_is_refused(name):
    with pytest.raises(UsageError):
        new_token(name, Role.READER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "ada operator\n",
        "ada king sha256:" + "0" * 64,
        "ada reader " + "0" * 64,
        "ada reader sha256:" + "g" * 64,
        f"ada reader sha256:{'0' * 64}\nADA admin sha256:{'1' * 64}\n",
        f"ada reader sha256:{'0' * 64}\nbob admin sha256:{'0' * 64}\n",
    ],
)
def test_a_tokens_file_with_a_wrong_line_is_refused(text):
    with pytest.raises(UsageError):
        parse_tokens(text, "tokens")


def test_a_tokens_file_that_others_may_write_is_refused(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(new_token("ada", Role.READER)[1])
    path.chmod(0o622)
    with pytest.raises(UsageError):
        Tokens(path)


def test_a_line_that_is_removed_ends_the_access_at_once(tmp_path):
    (ada, one), (bob, two) = new_token("ada", Role.READER), new_token("bob", Role.ADMIN)
    path = tmp_path / "tokens"
    path.write_text(f"{one}\n{two}\n")
    people = Tokens(path)
    assert people.of_token(ada) == Person("ada", Role.READER)
    path.write_text(f"{two}\n")
    assert people.of_token(ada) is None
    assert people.of_token(bob) == Person("bob", Role.ADMIN)


def test_nobody_but_approvers_and_admins_decides_and_only_some_change():
    assert {role for role in Role if Action.DECIDE in PERMITTED[role]} == {Role.APPROVER, Role.ADMIN}
    assert {role for role in Role if Action.CHANGE in PERMITTED[role]} == {Role.OPERATOR, Role.ADMIN}
    assert all(Action.READ in PERMITTED[role] for role in Role)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer so_wrong", "Basic YTpi", "Bearer so_wrong so_wrong"])
def test_without_a_valid_token_nothing_is_shown(served, header):
    with served.client(headers={"authorization": header} if header else {}) as client:
        for address in ("/v1/books", client.at(), "/v1/books/absent", client.at("quotes")):
            answer = client.get(address)
            assert (answer.status_code, answer.json()["code"]) == (401, "sign-in")
            assert answer.headers["www-authenticate"].startswith("Bearer")
        assert client.post(client.at("plans"), json={"where": "strike > 1"}).status_code == 401
        assert client.get("/livez").status_code == 200


def test_the_log_names_the_person(served):
    with served.client("auditor") as client:
        answer = client.get(client.at())
    assert answer.status_code == 200
    line = served.line(answer)
    assert (line["who"], line["role"], line["book"]) == ("auditor", "auditor", served.name)
    assert served.tokens["auditor"] not in served.log.getvalue()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])
def test_an_address_that_others_reach_is_refused_without_sign_in(tmp_path, host):
    done = run("serve", tmp_path, "--host", host)
    assert done.exit_code == 2
    assert "--tokens" in done.stderr


def test_a_missing_folder_is_refused(tmp_path):
    assert run("serve", tmp_path / "absent").exit_code == 2
    assert run("serve").exit_code == 2


def test_the_command_serves_the_demo_until_it_is_interrupted(tmp_path):
    words = [sys.executable, "-m", "strikeout", "serve", str(tmp_path), "--demo", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            address = re.search(r"http://\S+", line)[0]
            shown = httpx.get(f"{address}v1/books/demo", timeout=30).json()
            worst = httpx.get(f"{address}v1/books/demo/influence?by=date,source&top=3", timeout=60).json()
        finally:
            process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=30)
    assert (shown["held"], shown["current"]) == (2700, True)
    assert set(worst["columns"]["source"]) == {"b"}
    assert '"route": "/v1/books/{name}"' in log
    assert process.returncode == 130, log
