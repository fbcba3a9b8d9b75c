"""Self-contained pages without script: a calibration with its pictures, and the evidence on removals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from strikeout.errors import RefusedError
from strikeout.models.named import title_of
from strikeout.plots.diagnostics import plot_diagnostics
from strikeout.plots.influence_map import plot_influence_map
from strikeout.plots.paths import plot_latent_path
from strikeout.plots.residuals import plot_residual_map, plot_residuals
from strikeout.plots.smiles import plot_smiles, plot_variance
from strikeout.plots.style import WHOLE, View, caption, is_panel, to_inline
from strikeout.store.entry import counts_in_words
from strikeout.tables import cell_text
from strikeout.text import many

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration

CSS = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 46rem; padding: 2rem 1rem 4rem; color: #333; background: #fff;
       font: 16px/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
p.lead { font-size: 1.05rem; color: #555; margin-top: 0; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums;
        display: block; overflow-x: auto; }
th, td { padding: .25rem .9rem .25rem 0; text-align: right; border-bottom: 1px solid #e8e8e8; vertical-align: top; }
th { font-weight: 600; }
th:first-child, td:first-child, th.words, td.words { text-align: left; }
ul { padding-left: 1.2rem; }
figure { margin: 1.5rem 0; }
figure svg { width: 100%; height: auto; }
figcaption, footer { color: #666; font-size: .9rem; }
code { background: #f4f4f4; padding: .1em .3em; border-radius: 3px; }
.wrong { color: #a33c00; font-weight: 600; }
footer { margin-top: 3rem; border-top: 1px solid #e8e8e8; padding-top: .8rem; }
"""

# Every picture of the page: its heading, and what is to be seen in it.
CAPTIONS = {
    "path": (
        "Path",
        "The latent parameter from group to group; the band is twice its standard error. Smiles and total "
        "variance are those of the last.",
    ),
    "smiles": (
        "Smiles",
        "Implied volatility by expiry: dots are the market, bars run from bid to ask if known, the line is the model.",
    ),
    "scatter": ("Residuals", "Observed minus model; the band is twice the RMSE."),
    "residuals": (
        "Residuals by expiry and moneyness",
        "The mean of observed minus model. Blue: the market is dearer than the model; orange: cheaper.",
    ),
    "volatility": (
        "Residuals in volatility",
        "The same in volatility points: blue: the market is dearer than the model; orange: cheaper.",
    ),
    "variance": (
        "Total variance",
        "Volatility squared times expiry: dots are the market, lines the model. Slices that cross are calendar "
        "arbitrage.",
    ),
    "diagnostics": (
        "Diagnostics",
        "Autocorrelation of residuals from strike to strike, with the band of independent ones; leverage; and the "
        "correlation of the parameters.",
    ),
    "influence": (
        "Influence",
        "How far the parameters move if a cell is struck out; a cross where they would no longer be determined.",
    ),
}


def page_of(title: str, parts: Sequence[str]) -> str:
    """Return a whole HTML page of these parts, which are HTML already; the title is plain text."""
    from strikeout import __version__

    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n{body}\n"
        f"<footer>Made by strikeout {escape(__version__)}. This page loads nothing from anywhere.</footer>\n"
        "</body>\n</html>\n"
    )


def figure_of(svg: str, caption: str) -> str:
    """Return an inline SVG with its caption (HTML)."""
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def table_of(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: Sequence[int] = (),
    wrong: Sequence[tuple[int, int]] = (),
) -> str:
    """Return an HTML table of plain text; ``words`` are left-aligned columns, ``wrong`` marked cells (row, column)."""

    def opened(kind: str, row: int, column: int) -> str:
        names = ["words"] * (column in words) + ["wrong"] * ((row, column) in wrong)
        return f'<{kind} class="{" ".join(names)}">' if names else f"<{kind}>"

    head = "".join(f"{opened('th', -1, n)}{escape(text)}</th>" for n, text in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"{opened('td', row, n)}{escape(text)}</td>" for n, text in enumerate(cells)) + "</tr>"
        for row, cells in enumerate(rows)
    )
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if any(heads) else ''}<tbody>{body}</tbody></table>"


def calibration_page(
    calibration: Calibration,
    *,
    title: str | None = None,
    figures: Mapping[str, Figure] | None = None,
    view: View = WHOLE,
) -> str:
    """Return the page of one calibration as HTML.

    Args:
        figures: the pictures to show, by kind; by default all of them.
    """
    name = title or f"{title_of(calibration.model.name)} calibration"
    state = "" if calibration.converged else ' <span class="wrong">not converged</span>'
    parts = [
        f"<h1>{escape(name)}{state}</h1>",
        f'<p class="lead">{many(calibration.count, "quote")} · {escape(caption(calibration, view))}</p>',
        calibration._repr_html_(),
        "<h2>Fit error by expiry</h2>",
        error_table(calibration),
    ]
    return page_of(name, [*parts, *picture_parts(figures or _every_figure(calibration, view))])


def error_table(calibration: Calibration) -> str:
    """Return the fit errors by expiry as an HTML table."""
    table = calibration.fit_errors.to_table()
    return table_of(table.headings, [tuple(map(cell_text, row)) for row in table.rows])


def fit_figures(calibration: Calibration, view: View = WHOLE) -> dict[str, Figure]:
    """Return the pictures of the fit: the path of a panel, smiles, residuals in spreads and volatility, variance."""
    path = {"path": plot_latent_path(calibration, view=view)} if is_panel(calibration) else {}
    drawn = {
        **path,
        "smiles": plot_smiles(calibration, view=view),
        "scatter": plot_residuals(calibration, view=view),
        "residuals": plot_residual_map(calibration, view=view),
    }
    if calibration.fit_errors.overall.vol_points is not None and view.unit is None:
        drawn["volatility"] = plot_residual_map(calibration, view=replace(view, unit="vol_points"))
    return {**drawn, "variance": plot_variance(calibration, view=view)}


def _every_figure(calibration: Calibration, view: View) -> dict[str, Figure]:
    drawn = fit_figures(calibration, view)
    with suppress(RefusedError):  # the summary above names what the quotes do not determine
        drawn["influence"] = plot_influence_map(calibration, view=view)
        drawn["diagnostics"] = plot_diagnostics(calibration, view=view)
    return drawn


def picture_parts(figures: Mapping[str, Figure]) -> list[str]:
    """Return each picture, by its kind, with its heading and caption."""
    parts = []
    for kind, figure in figures.items():
        heading, caption = CAPTIONS[kind]
        parts += [f"<h2>{heading}</h2>", figure_of(to_inline(figure), caption)]
    return parts


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
