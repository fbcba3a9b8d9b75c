"""A table as a notebook shows it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], facts: Sequence[str] = (), *, warnings: Sequence[str] = ()
) -> str:
    """A table of plain text as HTML, with facts and then warnings as a list below it.

    >>> html_table(("a",), [("<1",)])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;1</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    items = [escape(fact) for fact in facts] + [f"<strong>{escape(warning)}</strong>" for warning in warnings]
    told = f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{told}"
