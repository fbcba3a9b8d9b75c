"""``strikeout evidence``: one printable page on what was removed from a book, who asked and who approved."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import open_book
from strikeout.cli.options import book_argument, json_option
from strikeout.cli.public_keys import audit_key_option, public_keys_of
from strikeout.errors import UsageError
from strikeout.wording import many

if TYPE_CHECKING:
    from strikeout.book import Book
    from strikeout.book.approvals import Request
    from strikeout.book.results import Audit
    from strikeout.store.entry import Entry

REMOVALS = ("erase", "forget")
STYLE = """<style>table { display: table; width: 100%; } td { overflow-wrap: anywhere; } td:first-child { width: 9rem; }
@media print { body { max-width: none; } h2, tr { break-inside: avoid; } }</style>"""

HOW_TO_CHECK = """<h2>How to check this page</h2>
<p>The hash of an entry, its proof of inclusion and the head of the ledger above show that the entry is part of the
ledger (RFC 9162). <code>strikeout verify copy.book --key KEY</code> checks a copy of the book with the public key
alone. Copies that others hold (files given away, backups) are beyond the book's reach.</p>"""


@click.command("evidence")
@book_argument
@click.option("--request", type=click.IntRange(min=1), help="Only the removal of this request, by its number.")
@click.option("--out", type=click.Path(path_type=str), help="The page, .html.  [default: NAME-evidence.html]")
@audit_key_option
@json_option
def evidence(book: str, request: int | None, out: str | None, keys: tuple[str, ...], as_json: bool) -> int:
    """Write one printable page on the removals from BOOK: who asked, who approved, when, why, and what can be checked.

    The page contains no quote, so it may be given away. It verifies the book first; ends with 1 if the book is refuted,
    with 3 if it cannot be checked here.
    """
    out = f"{Path(book).stem}-evidence.html" if out is None else out
    if not out.lower().endswith(".html"):
        raise UsageError(f"{Path(out).name}: evidence is one page and ends in .html.", path=out)
    from strikeout.book import Book
    from strikeout.quotes.atomic_write import replace_file

    with open_book(book, keys=keys) as held:
        audit = Book.verify_copy(book, key=public_keys_of(keys)) if keys else held.verify()
        facts = evidence_facts(held, audit, request=request)
    page = evidence_page(facts)
    path = replace_file(Path(out), lambda part: part.write_text(page, encoding="utf-8"))
    if as_json:
        terminal.show_json({**facts, "evidence": str(path)})
    else:
        terminal.say(f"The evidence on {many(len(facts['removals']), 'removal')} is in {path}.")
    verdict = facts["verification"]["verdict"]
    return {"verified": exit_codes.DONE, "refuted": exit_codes.FINDINGS}.get(verdict, exit_codes.REFUSED)


def evidence_facts(book: Book, audit: Audit, *, request: int | None = None) -> dict[str, Any]:
    """Return everything the page shows, as plain values.

    Args:
        audit: the verification of the book, or of a copy with its public key alone.

    Raises:
        UsageError: there is no such request.
        RefusedError: an entry of the ledger cannot be read.
    """
    status, entries, asked = book.status(), book.log(), book.requests()
    if request is not None and request not in {one.number for one in asked}:
        known = ", ".join(str(one.number) for one in asked) or "none"
        raise UsageError(f"--request {request}: the book has no such request. Its requests: {known}.", request=request)
    chosen = [one for one in asked if request is None or one.number == request]
    done = {one.done: one for one in chosen if one.done is not None}
    removals = [entry for entry in entries if entry.what in REMOVALS and (request is None or entry.number in done)]
    approved = book.approvals_of_removals()
    return {
        "book": status.book,
        "name": book.path.name,
        "head": f"{status.entries}:{status.root}",
        "key": status.key,
        "quotes": {"held": status.held, "set_aside": status.set_aside, "erased": status.erased},
        "removals": [_removal(entry, entries, approved, done.get(entry.number), book) for entry in removals],
        "open": [_request(one) for one in chosen if one.done is None],
        "verification": audit.to_dict(),
    }


def _removal(entry: Entry, entries: Any, approved: Any, asked: Request | None, book: Book) -> dict[str, Any]:
    search = next((one for one in entries if one.number > entry.number and one.what == "residue"), None)
    by = {one.number: one for one in entries}
    approval = by.get(approved.get(entry.number) or 0)
    ledger = book.snapshot().ledger
    return {
        "entry": entry.number,
        "what": entry.what,
        "at": entry.at,
        "who": entry.who,
        "why": None if entry.why is None else entry.why.to_plain(),
        "counts": dict(entry.counts),
        "commitment": entry.touched,
        "needed_approval": entry.number in approved,
        "approved_by": None if approval is None else approval.who,
        "approved_at": None if approval is None else approval.at,
        "request": None if asked is None else _request(asked),
        "search": None if search is None or entry.what != "erase" else {"entry": search.number, **search.counts},
        "hash": entry.hash().hex(),
        "inclusion": [part.hex() for part in ledger.inclusion(entry.number)],
    }


def _request(asked: Request) -> dict[str, Any]:
    """Return a request without its wording: a condition or an id may name a quote, and the page is given away."""
    return {name: value for name, value in asked.to_dict().items() if name not in ("where", "ids")}


def evidence_page(facts: dict[str, Any]) -> str:
    """Return the page as HTML; every text of the book is escaped."""
    from strikeout.plots.page import page_of, table_of

    quotes, verified = facts["quotes"], facts["verification"]
    parts = [
        STYLE,
        f"<h1>Removals from {escape(facts['name'])}</h1>",
        f'<p class="lead">{quotes["held"]:,} quotes held, {quotes["set_aside"]:,} set aside, '
        f"{quotes['erased']:,} erased.</p>",
        table_of(
            ("", ""),
            [("book", facts["book"]), ("head of the ledger", facts["head"]), ("public key", facts["key"])],
            words=(1,),
        ),
    ]
    for removal in facts["removals"]:
        parts += [
            f"<h2>Entry {removal['entry']}: {escape(removal['what'])}</h2>",
            table_of(("", ""), _rows(removal), words=(1,)),
        ]
    if not facts["removals"]:
        parts.append("<p>No quote was removed.</p>")
    parts += ["<h2>Verification</h2>", f"<p>{escape(verified['verdict'])}</p>"]
    words = {True: "holds", False: "FAILS", None: "not checked"}
    checks = [(check["name"], words[check["holds"]], check["found"]) for check in verified["checks"]]
    parts.append(table_of(("check", "result", "found"), checks, words=(1, 2)))
    parts.append(HOW_TO_CHECK)
    return page_of(f"Evidence: {facts['name']}", parts)


def _rows(removal: dict[str, Any]) -> list[tuple[str, str]]:
    from strikeout.store.entry import counts_in_words

    why, asked, search = removal["why"], removal["request"], removal["search"]
    counts = ", ".join(counts_in_words(removal["counts"]))
    rows = [("done by", f"{removal['who']}, {removal['at']}")]
    rows.append(("reason", "none given" if why is None else " · ".join(text for text in why.values() if text)))
    rows.append(("counts", counts or "none"))
    if asked is not None:
        rows.append(("asked by", f"{asked['who']}, {asked['at']} (request {asked['request']})"))
    if removal["approved_by"] is not None:
        rows.append(("approved by", f"{removal['approved_by']}, {removal['approved_at']}"))
    elif removal["needed_approval"]:
        rows.append(("approved by", "MISSING: this book needed a second person's approval"))
    else:
        rows.append(("approved by", "no approval was needed in this book"))
    if search is not None:
        found = ", ".join(counts_in_words({name: value for name, value in search.items() if name != "entry"}))
        rows.append(("search for residue", f"entry {search['entry']}: {found}"))
    rows += [("commitment to the quotes", removal["commitment"]), ("hash of the entry", removal["hash"])]
    rows.append(("proof of inclusion", " ".join(removal["inclusion"]) or "the only entry"))
    return rows
