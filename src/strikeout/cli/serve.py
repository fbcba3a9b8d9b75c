"""``strikeout serve``: the books of a folder over HTTP; and ``strikeout token``: a line of its tokens file."""

from __future__ import annotations

import ipaddress
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.options import json_option
from strikeout.errors import UsageError

ROLES = ("reader", "operator", "approver", "auditor", "admin")  # a test compares them with those of the service
NEEDED = ("fastapi", "uvicorn", "jinja2", "multipart", "jwt")
DEMO = "demo"  # the name of its book
LARGEST_PORT = 65535


@click.command("serve")
@click.argument("folder", type=click.Path(path_type=str), required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, LARGEST_PORT), default=8000, show_default=True, help="The port; 0 for a free one."
)
@click.option("--demo", is_flag=True, help="Make a book with three bad days in FOLDER, or in a temporary folder.")
@click.option("--tokens", type=click.Path(path_type=str), help="The file of people: name, role, hash, one per line.")
@click.option(
    "--oidc", type=click.Path(path_type=str), help="Instead of --tokens: the TOML file of an OpenID Connect provider."
)
@click.option("--name", "names", multiple=True, help="A host name by which the server is addressed; repeatable.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Worker processes.")
def serve(folder: str | None, host: str, demo: bool, tokens: str | None, oidc: str | None, **how: Any) -> int:
    """Serve every book of FOLDER: pages for a browser and an interface for programs.

    Without --tokens and --oidc there is no sign-in: every request is yours, so only loopback addresses are accepted.
    """
    _check_installed()
    if tokens is not None and oidc is not None:
        raise UsageError("Give --tokens or --oidc, not both.")
    _check_address(host, is_open=tokens is None and oidc is None)
    with ExitStack() as stack:
        if folder is None and not demo:
            raise UsageError("Give the folder of the books, or --demo for an example in a temporary folder.")
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="strikeout-demo-"))
        place = Path(folder)
        if demo:
            make_demo_book(place)
        if not place.is_dir():
            raise UsageError(f"{folder}: not a folder. Give the folder in which the books are.", path=folder)
        _run(place, host=host, tokens=tokens, oidc=oidc, **how)
    return exit_codes.DONE


@click.command("token")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the person may do.")
@json_option
def token(name: str, role: str, output: terminal.Output) -> int:
    """Make a token for NAME: the line for the tokens file goes to stdout, the secret token to stderr.

    The line contains a hash of the token, so the token is shown once and stored nowhere.
    """
    from strikeout.service.people import Role, new_token

    secret, line = new_token(name, Role(role))
    if not output.is_json:
        click.echo(f"The token of {name}, shown once: {secret}", err=True)
    return output.lines({"line": line, "token": secret}, line)


def make_demo_book(folder: Path) -> Path:
    """Make the book of the demo in a folder, calibrated, unless it is there; return its path."""
    from strikeout.book import Book
    from strikeout.cli.demo_data import two_feeds, with_bad_days
    from strikeout.paper.sets import quotes

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{DEMO}.book"
    if path.exists():
        return path
    arrived, _ = with_bad_days(two_feeds(quotes("large")))
    with Book.create(path) as book:
        book.import_quotes(arrived)
        book.calibrate(panel=None)
    return path


def _check_installed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"strikeout serve needs packages that are not installed ({', '.join(missing)}). "
            "Run: pip install 'strikeout[serve]'",
            missing=missing,
        )


def _check_address(host: str, *, is_open: bool) -> None:
    """Raise UsageError if others could reach a server without sign-in."""
    try:
        is_loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if is_open and not is_loopback:
        raise UsageError(
            f"--host {host}: others can reach this address, and there is no sign-in. Add --tokens FILE (its lines are "
            "made by: strikeout token NAME --role ROLE) or --oidc FILE, or listen at 127.0.0.1.",
            host=host,
        )


def _run(
    folder: Path,
    *,
    host: str,
    port: int,
    tokens: str | None,
    oidc: str | None,
    names: tuple[str, ...],
    workers: int,
) -> None:
    from strikeout.book.files import person
    from strikeout.service.app import serve_forever
    from strikeout.service.library import Library
    from strikeout.service.limits import LOOPBACK
    from strikeout.service.people import Authentication, OnePerson, Person, Role, Tokens

    people: Authentication
    if oidc is not None:
        from strikeout.service.oidc import Oidc, Provider

        provider = Provider.read(Path(oidc))
        people, names = Oidc(provider), (*names, urlsplit(provider.address).hostname or host)
    elif tokens is None:
        people = OnePerson(Person(person(), Role.ADMIN))
        terminal.note(f"there is no sign-in: every request is from {person()}, with every permission.")
    else:
        people = Tokens(Path(tokens))

    def ready(address: str) -> None:
        terminal.say(f"Serving the books of {folder} at {address} (Ctrl-C ends it)")

    how: dict[str, Any] = {"host": host, "port": port, "hosts": (*LOOPBACK, host.lower(), *names), "workers": workers}
    serve_forever(Library(folder), people, ready=ready, **how)
