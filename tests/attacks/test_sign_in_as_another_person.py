"""A person with an account at the provider, or without, wants to be two persons, or another, or to stop the desk."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from time import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from strikeout.errors import SignInError, UsageError
from strikeout.service import oidc
from strikeout.service.oidc import Oidc, Provider, ProviderKeys
from strikeout.service.pages.forms import own_address
from strikeout.service.people import Role

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC = {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key())), "alg": "RS256", "kid": "k1"}
ENDPOINTS = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}


class AProvider:
    """A provider on loopback that counts what it is asked for, and can be made to hang."""

    def __init__(self, **configured):
        self.asked: list[str] = []
        self.is_free = Event()
        self.is_free.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                found = {"keys": [PUBLIC]}
                if self.path.startswith("/.well-known"):
                    own = {name: outer.address + place for name, place in ENDPOINTS.items()}
                    found = {"issuer": outer.address, **own, **configured}
                else:
                    outer.is_free.wait(20)
                body = json.dumps({name: value for name, value in found.items() if value is not None}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                self.do_GET()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def settings(self, **more):
        return Provider(self.address, "desk", "http://127.0.0.1:1", {"all": Role.ADMIN}, roles_claim="groups", **more)

    def close(self):
        self.is_free.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def provider():
    made = AProvider()
    yield made
    made.close()


def token(provider, kid="k1", **claims):
    given = {
        "iss": provider.address, "aud": "desk", "iat": int(time()), "exp": int(time()) + 60, "sub": "s-1",
        "preferred_username": "ada", "groups": ["all"], **claims,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    return jwt.encode(given, KEY, "RS256", headers={"kid": kid})


def test_by_taking_a_second_name_to_approve_ones_own_request(provider):
    people = Oidc(provider.settings())
    assert people.of_token(token(provider)).name == "ada"
    assert people.of_token(token(provider, preferred_username="bob")) is None
    assert people.of_token(token(provider)).name == "ada"


def test_by_taking_the_name_of_a_colleague(provider):
    people = Oidc(provider.settings())
    assert people.of_token(token(provider)).name == "ada"
    assert people.of_token(token(provider, sub="s-2")) is None
    assert people.of_token(token(provider, sub="s-2", preferred_username="eve")).name == "eve"


def test_by_sending_a_token_without_the_name(provider):
    """It must not count as a person called s-1 beside the one called ada."""
    people = Oidc(provider.settings())
    assert people.of_token(token(provider, preferred_username=None)) is None
    with pytest.raises(SignInError) as refused:
        people._person({"sub": "s-1", "groups": ["all"]})
    assert refused.value.facts["claim"] == "preferred_username"
    assert Oidc(provider.settings(name_claim="sub")).of_token(token(provider)).name == "s-1"


def test_by_making_the_server_ask_the_provider_for_every_forged_token(provider):
    people = Oidc(provider.settings())
    assert people.of_token(token(provider)).name == "ada"
    for number in range(50):
        assert people.of_token(token(provider, kid=f"unknown {number}")) is None
    assert provider.asked.count("/keys") <= 2
    assert people.of_token(token(provider)).name == "ada"


def test_by_forged_tokens_while_the_provider_hangs(provider, monkeypatch):
    """Every request is served by one thread: one that waits for the provider stops all others."""
    monkeypatch.setattr(oidc, "WAIT", 0.2)
    people = Oidc(provider.settings())
    assert people.of_token(token(provider)).name == "ada"
    people._keys._asked = -oidc.BETWEEN_FETCHES
    provider.is_free.clear()
    assert [people.of_token(token(provider, kid=f"unknown {number}")) for number in range(20)] == [None] * 20
    assert people.of_token(token(provider)).name == "ada"  # with the key that is known
    assert not provider.is_free.is_set()


def test_by_a_key_that_the_provider_withdrew_long_ago(provider):
    now = [0.0]
    keys = ProviderKeys(f"{provider.address}/keys", clock=lambda: now[0])
    assert [key.key_id for key in keys.current(refresh=False)] == ["k1"]
    provider.close()
    now[0] = oidc.FRESH_KEYS + 1
    assert [key.key_id for key in keys.current(refresh=False)] == ["k1"]
    now[0] = oidc.OLDEST_KEYS + oidc.BETWEEN_FETCHES + 1
    assert keys.current(refresh=False) == []


@pytest.mark.parametrize(
    "configured",
    [
        {"token_endpoint": "http://attacker.example/token"},
        {"jwks_uri": "file:///etc/keys"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
    ],
    ids=str,
)
def test_by_addresses_of_the_provider_without_encryption(configured):
    made = AProvider(**configured)
    try:
        with pytest.raises(UsageError):
            Oidc(made.settings())
    finally:
        made.close()


@pytest.mark.parametrize(
    "then",
    ["//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "javascript:alert(1)", ""],
)
def test_by_sending_people_elsewhere_after_they_sign_in(then):
    assert own_address(then) == "/"


def test_by_beginning_so_many_sign_ins_that_those_of_others_are_lost(provider):
    people = Oidc(provider.settings())
    _, state = people.begin("/")
    for _ in range(10_001):
        people.begin("/")
    with pytest.raises(SignInError):  # this provider gives no token
        people.finish(state, state, "code")
    assert "/token" in provider.asked  # but the sign-in was recognised, and its code exchanged
    with pytest.raises(SignInError):
        people.finish(state, state, "code")
    assert provider.asked.count("/token") == 1  # once


def test_by_making_up_a_state(provider):
    people = Oidc(provider.settings())
    body, _, seal = people.begin("/")[1].partition(".")
    other = people.begin("/books/theirs")[1].partition(".")[0]
    for forged in (
        "",
        ".",
        body,
        f"{body}.",
        f"{other}.{seal}",
        f"{body}.{seal[::-1]}",
        f"{body}.{seal}x",
        "\ud800.\udfff",
    ):
        with pytest.raises(SignInError):
            people.finish(forged, forged, "code")
    assert "/token" not in provider.asked
