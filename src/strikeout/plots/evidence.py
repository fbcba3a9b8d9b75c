"""The printable page on removals. It contains no quote, so it may be given away; it has no script."""

from __future__ import annotations

from html import escape
from typing import Any

from strikeout.plots.page import page_of, table_of
from strikeout.store.entry import counts_in_words

STYLE = """<style>table { display: table; width: 100%; } td { overflow-wrap: anywhere; } td:first-child { width: 9rem; }
@media print { body { max-width: none; } h2, tr { break-inside: avoid; } }</style>"""

HOW_TO_CHECK = """<h2>How to check this page</h2>
<p>The hash of an entry, its proof of inclusion and the head of the ledger above show that the entry is part of the
ledger (RFC 9162). <code>strikeout verify copy.book --key KEY</code> checks a copy of the book with the public key
alone. Copies that others hold (files given away, backups) are beyond the book's reach.</p>"""


def evidence_page(*books: dict[str, Any]) -> str:
    """Return the page on one book or several as HTML; every text of the books is escaped."""
    parts = [STYLE]
    for facts in books:
        parts += _book(facts)
    parts.append(HOW_TO_CHECK)
    return page_of(f"Evidence: {', '.join(facts['name'] for facts in books)}", parts)


def _book(facts: dict[str, Any]) -> list[str]:
    quotes, verified = facts["quotes"], facts["verification"]
    parts = [
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
    return parts


def _rows(removal: dict[str, Any]) -> list[tuple[str, str]]:
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
