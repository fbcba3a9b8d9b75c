"""People of an OpenID Connect provider that runs as a real server on loopback."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from dataclasses import replace
from time import time
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import rsa

from strikeout.cli import strikeout
from strikeout.errors import SignInError, UsageError
from strikeout.service.oidc import Oidc, Provider
from strikeout.service.people import Person, Role
from strikeout.service.sessions import COOKIE
from tests.service.conftest import copied, serving

mock = pytest.importorskip("oidc_provider_mock", reason="oidc-provider-mock is not installed; pip install it")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PEOPLE = {
    "q-1": {"preferred_username": "quant", "groups": ["quants", "everyone"]},
    "r-1": {"preferred_username": "risk", "groups": ["risk"]},
    "n-1": {"preferred_username": "nobody", "groups": ["everyone"]},
    "b-1": {"preferred_username": "bell\a", "groups": ["quants"]},
}


@pytest.fixture(scope="module")
def issuer():
    users = [mock.User(sub=sub, claims=claims) for sub, claims in PEOPLE.items()]
    with mock.run_server_in_thread(user_claims=users) as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture(scope="module")
def served(issuer, shelf, tmp_path_factory):
    folder = copied(shelf, tmp_path_factory.mktemp("oidc"))
    roles = {"quants": Role.OPERATOR, "risk": Role.APPROVER}
    people = Oidc(Provider(issuer, "desk", "http://127.0.0.1:0", roles, secret="s3cret", roles_claim="groups"))
    for one in serving(folder, people, {}):
        people.provider = replace(people.provider, address=one.address)
        yield one


def sign_in(client, sub, then="/books/small"):
    """Walk a browser through the provider's pages; return the last answer of the server."""
    first = client.get("/sign-in", params={"then": then})
    to_provider = client.get(first.headers["location"])
    with httpx.Client() as elsewhere:
        back = elsewhere.post(to_provider.headers["location"], data={"sub": sub})
    assert back.status_code == 302, back.text
    return client.get(back.headers["location"])


def test_a_person_signs_in_and_is_named_in_the_log(served):
    with served.client() as client:
        done = sign_in(client, "q-1")
        assert (done.status_code, done.headers["location"]) == (303, "/books/small")
        shown = client.get("/books/small")
        assert shown.status_code == 200
        line = served.line(shown)
    assert (line["who"], line["role"]) == ("quant", "operator")


def test_signing_out_ends_the_session_for_a_copy_of_the_cookie_too(served):
    with served.client() as client:
        sign_in(client, "q-1")
        page = client.get("/books/small")
        kept = dict(client.cookies)
        assert client.get("/v1/books/small").status_code == 200
        token = page.text.split('name="form_token" value="')[1].split('"')[0]
        assert client.post("/sign-out", data={"form_token": token}).status_code == 200
    with served.client(cookies=kept) as thief:
        assert thief.get("/v1/books/small").status_code == 401


def test_a_person_without_a_role_or_a_writable_name_gets_no_session(served):
    for sub in ("n-1", "b-1"):
        with served.client() as client:
            done = sign_in(client, sub)
            assert done.status_code == 401
            assert not any(name.startswith(COOKIE) for name in client.cookies)


def test_an_answer_of_the_provider_counts_once_and_in_its_own_browser(served):
    with served.client() as client, served.client() as other, httpx.Client() as elsewhere:
        to_provider = client.get(client.get("/sign-in").headers["location"])
        back = elsewhere.post(to_provider.headers["location"], data={"sub": "q-1"}).headers["location"]
        assert other.get(back).status_code == 401  # the attacker's browser, or a victim sent to the attacker's answer
        assert client.get(back).status_code == 401  # and it is used up


def test_the_request_to_the_provider_has_a_challenge_and_no_secret(served):
    with served.client() as client:
        place = client.get(client.get("/sign-in").headers["location"]).headers["location"]
    asked = parse_qs(urlsplit(place).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    assert "s3cret" not in place


def test_only_addresses_of_this_site_follow_a_sign_in(served):
    with served.client() as client:
        assert sign_in(client, "q-1", then="https://attacker.example/").headers["location"] == "/"


# --- programs: tokens that somebody made ------------------------------------------------------------------------------

OURS, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
CLAIMS = {"sub": "p-1", "preferred_username": "program", "groups": ["quants"], "aud": "desk"}


@pytest.fixture
def people(served, monkeypatch):
    """The provider with a signing key that the test has."""
    found = served.desk.people
    keys = jwt.PyJWKSet([json.loads(_public(OURS))]).keys
    monkeypatch.setattr(found._keys, "current", lambda refresh: keys)  # noqa: ARG005
    return found


def _public(key):
    return json.dumps({**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "alg": "RS256"})


def token(people, key=OURS, algorithm="RS256", **changed):
    claims = {**CLAIMS, "iss": people.provider.issuer, "iat": int(time()), "exp": int(time()) + 60, **changed}
    return jwt.encode({name: value for name, value in claims.items() if value is not None}, key, algorithm)


def test_a_signed_token_of_a_program_is_a_person(people):
    assert people.of_token(token(people)) == Person("program", Role.OPERATOR)


def test_a_token_of_another_sign_in_is_refused(people):
    assert people._claims(token(people, nonce="mine"), "desk", "mine")["sub"] == CLAIMS["sub"]
    for nonce in ("other", None):
        with pytest.raises(SignInError):
            people._claims(token(people, nonce=nonce), "desk", "mine")


def test_of_several_roles_the_one_that_permits_most_counts(people):
    assert people.of_token(token(people, groups=["risk", "quants"])).role is Role.OPERATOR


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": 1_000_000},
        {"exp": None},
        {"aud": "another"},
        {"iss": "https://attacker.example"},
        {"iat": 4_000_000_000, "nbf": 4_000_000_000},
        {"sub": None},
        {"groups": []},
        {"groups": ["admins"]},
        {"preferred_username": "x" * 500},
    ],
    ids=str,
)
def test_a_token_with_a_wrong_claim_is_nobody(people, changed):
    assert people.of_token(token(people, **changed)) is None


def test_a_token_of_another_key_without_signature_or_signed_with_the_public_key_is_nobody(people):
    header, body, _ = token(people).split(".")
    none, shared = (
        urlsafe_b64encode(json.dumps({"alg": name, "typ": "JWT"}).encode()).decode().rstrip("=")
        for name in ("none", "HS256")
    )
    # A verifier that lets the token choose would check this one with the public key as a shared secret.
    mark = hmac.digest(_public(OURS).encode(), f"{shared}.{body}".encode(), "sha256")
    confused = f"{shared}.{body}.{urlsafe_b64encode(mark).decode().rstrip('=')}"
    forged = [
        token(people, key=OTHER),
        f"{none}.{body}.",
        f"{header}.{body}.",
        confused,
        "not.a.token",
        "",
        "x" * 20_000,
    ]
    assert [people.of_token(each) for each in forged] == [None] * len(forged)


# --- the file ---------------------------------------------------------------------------------------------------------

FILE = """
issuer = "https://login.example.org"
client_id = "desk"
address = "https://desk.example.org"
[roles]
quants = "operator"
"""


def test_the_file_of_a_provider_is_read(tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "oidc.toml").write_text('client_secret_file = "secret"\n' + FILE)
    found = Provider.read(tmp_path / "oidc.toml")
    assert (found.secret, found.callback) == ("s3cret", "https://desk.example.org/sign-in/callback")
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        FILE.replace("https://login", "http://login"),
        FILE.replace("https://desk", "http://desk"),
        FILE.replace('"operator"', '"king"'),
        "colour = 1\n" + FILE,
        'client_secret_file = "absent"\n' + FILE,
    ],
)
def test_a_file_with_a_fault_is_refused(tmp_path, text):
    (tmp_path / "oidc.toml").write_text(text)
    with pytest.raises(UsageError):
        Provider.read(tmp_path / "oidc.toml")


def test_a_provider_that_does_not_answer_is_named():
    provider = Provider("http://127.0.0.1:1", "desk", "http://127.0.0.1:2", {"a": Role.READER})
    with pytest.raises(UsageError) as caught:
        Oidc(provider)
    assert caught.value.facts["address"].startswith("http://127.0.0.1:1/")


def test_a_sign_in_that_is_never_finished_is_forgotten(served, monkeypatch):
    people = served.desk.people
    _, state = people.begin("/")
    asked = []
    monkeypatch.setattr("strikeout.service.oidc._fetched", asked.append)
    people._clock, before = (lambda: time() + 3600), people._clock
    try:
        with pytest.raises(SignInError):
            people.finish(state, state, "code")
    finally:
        people._clock = before
    assert asked == []  # the code of a sign-in that is over is not exchanged


def test_two_ways_to_sign_in_are_refused(tmp_path):
    done = CliRunner().invoke(strikeout, ["serve", str(tmp_path), "--tokens", "a", "--oidc", "b"])
    assert done.exit_code == 2
