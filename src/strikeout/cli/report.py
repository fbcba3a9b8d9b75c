"""``strikeout report``: one offline page on a book, with its fit, influence, log and last certificate.

``strikeout plot`` writes pictures of a calibration as files.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import entry_table, is_book, open_book
from strikeout.cli.fit_options import calibrate_file, filtered_options, reading_counts, reading_notes
from strikeout.cli.options import book_argument, file_argument, json_option, refuse_given, who_option
from strikeout.errors import StrikeoutError, UsageError
from strikeout.tables import cell_text
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.assurance.certificate import Certificate
    from strikeout.book import Book
    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.terminal import Output
    from strikeout.plots.style import View
    from strikeout.store.entry import Entry

MOST_GROUPS = 10
MOST_ENTRIES = 200  # of the log


@click.command("report")
@book_argument
@click.option("--out", type=click.Path(path_type=str), default="fit.html", show_default=True, help="The page, .html.")
@click.option("--force", is_flag=True, help="Replace a page that exists.")
@click.option("--by", help="The label of the groups of influence; by default dates, for a single day expiries.")
@who_option
@json_option
def report(book: str, out: str, force: bool, by: str | None, who: str | None, output: Output) -> int:
    """Write one page on BOOK: its fit, smiles, residuals, total variance, influence, log and last certificate.

    The page shows quotes: it is entered in the ledger, and erasing quotes removes it.
    """
    if not out.lower().endswith(".html"):
        raise UsageError(f"{Path(out).name}: a report is one page and ends in .html.", path=out)
    if not force and Path(out).exists():
        raise UsageError(f"{out}: there is a file of this name already. Give another --out, or --force.", path=out)
    from strikeout.quotes.writing import replace_file

    with open_book(book, who=who) as held:

        def prepared() -> Callable[[Path], Path]:
            page = book_page(held, by=by)
            return lambda target: replace_file(target, lambda part: part.write_text(page, encoding="utf-8"))

        path = held.hand_out(Path(out), prepared, what="report")
    size = path.stat().st_size
    text = f"The report is in {path} ({size / 1e6:.1f} MB); it works offline."
    return output.lines({"report": str(path), "bytes": size}, text)


def book_page(book: Book, *, by: str | None = None) -> str:
    """Return the page of a book as HTML; it also names what the book cannot show yet.

    Args:
        by: the label of the groups of influence; by default the date, for a single day the expiry.
    """
    from strikeout.plots.page import page_of, table_of
    from strikeout.plots.style import View

    status, entries = book.status(), book.log()
    name = book.path.name
    parts = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="lead">{many(status.held, "quote")} held, {status.set_aside:,} set aside, {status.erased:,} erased. '
        f"{escape(status.sentence)}</p>",
        table_of(
            ("", ""),
            [
                ("book", status.book),
                ("head of the ledger", f"{status.entries}:{status.root}"),
                ("signed with", status.key),
            ],
            words=(1,),
        ),
    ]
    try:
        calibration = book.calibration()
    except StrikeoutError as error:  # a page on a book that is not calibrated is still useful
        parts += ["<h2>Calibration</h2>", f'<p class="wrong">{escape(error.sentence)}</p>']
    else:
        view = View(source=name)
        parts += [*_fit(calibration, view), *_influence(calibration, by, view), *_diagnostics(calibration, view)]
    return page_of(f"strikeout: {name}", [*parts, *_certified(book, entries), *_log(entries)])


def _fit(calibration: Calibration, view: View) -> list[str]:
    from strikeout.plots.page import error_table, fit_figures, picture_parts
    from strikeout.plots.style import caption

    return [
        "<h2>Calibration</h2>",
        f"<p>{many(calibration.count, 'quote')} · {escape(caption(calibration, view))}</p>",
        calibration._repr_html_(),
        error_table(calibration),
        *picture_parts(fit_figures(calibration, view)),
    ]


def _influence(calibration: Calibration, asked: str | None, view: View) -> list[str]:
    from strikeout.assurance.influence import influence
    from strikeout.plots.influence_map import plot_influence_map
    from strikeout.plots.page import figure_of, table_of
    from strikeout.plots.style import to_inline

    head = "<h2>Influence</h2>"
    by = asked or _label(calibration)
    try:
        found = influence(calibration, by).top(MOST_GROUPS)
        drawn = plot_influence_map(calibration, by=asked, view=view)
    except StrikeoutError as error:
        return [head, f"<p>{escape(error.sentence)}</p>"]
    rows = [
        (str(group), f"{count:,}", f"{distance:.3g}", terminal.move_text(abs(price)).removeprefix("+"))
        for group, count, distance, price in zip(
            found[by], found["count"], found["cooks_d"], found["price_change"], strict=True
        )
    ]
    return [
        head,
        f"<p>The effect of striking out every quote of one {escape(by)}, by one exact step:</p>",
        table_of((by, "quotes", "Cook's distance", "a price moves by at most"), rows),
        figure_of(to_inline(drawn), "Cook's distance of each cell: the darker, the larger its influence."),
    ]


def _diagnostics(calibration: Calibration, view: View) -> list[str]:
    from strikeout.plots.diagnostics import plot_diagnostics
    from strikeout.plots.page import CAPTIONS, figure_of
    from strikeout.plots.style import to_inline

    heading, caption = CAPTIONS["diagnostics"]
    try:
        found, drawn = calibration.diagnostics(), plot_diagnostics(calibration, view=view)
    except StrikeoutError as error:
        return [f"<h2>{heading}</h2>", f"<p>{escape(error.sentence)}</p>"]
    return [f"<h2>{heading}</h2>", found._repr_html_(), figure_of(to_inline(drawn), caption)]


def _label(calibration: Calibration) -> str:
    """Return the label of the groups: the date, or for a single day the expiry."""
    labels = calibration.used.labels
    several = (name for name in ("date", "expiry_date") if name in labels and len(set(labels[name].tolist())) > 1)
    return next(several, "date")


def _certified(book: Book, entries: tuple[Entry, ...]) -> list[str]:
    head = "<h2>Last certificate</h2>"
    issued = [entry for entry in entries if entry.certificate]
    if not issued:
        return [head, "<p>There is none: nothing has been struck out.</p>"]
    try:
        certificate = book.certificate(issued[-1].number)
    except StrikeoutError as error:
        return [head, f"<p>{escape(error.sentence)}</p>"]
    return [head, *_shown(certificate, issued[-1])]


def _shown(certificate: Certificate, entry: Entry) -> list[str]:
    from strikeout.plots.page import table_of

    counts = certificate.counts
    return [
        f"<p>Entry {entry.number}, by {escape(entry.who)}: {counts['forgotten']:,} of "
        f"{many(certificate.before, 'quote')} struck out, {counts['retained']:,} retained. "
        f"Digest <code>{certificate.digest()}</code></p>",
        table_of(("claim", "state", "support"), certificate.rows(), words=(1, 2)),
        "<p>What it does not claim:</p>",
        f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in certificate.not_claimed)}</ul>",
    ]


def _log(entries: tuple[Entry, ...]) -> list[str]:
    from strikeout.book.approvals import approvals_of
    from strikeout.plots.page import table_of

    shown = entries[-MOST_ENTRIES:]
    earlier = len(entries) - len(shown)
    table = entry_table(shown, approvals_of(entries))
    return [
        "<h2>Log</h2>",
        *([f"<p>The last {many(len(shown), 'entry', 'entries')} of {len(entries):,}.</p>"] if earlier else []),
        table_of(table.headings, [tuple(map(cell_text, row)) for row in table.rows], words=(1, 2, 3, 4, 5, 6)),
    ]


PICTURES = (
    "smiles",
    "residuals",
    "variance",
    "influence",
    "diagnostics",
    "path",
)  # as in plots, by a test
CALLED = {".html": "The page is", ".json": "The numbers of the picture are"}


@click.command("plot")
@file_argument
@click.option(
    "--kind",
    type=click.Choice(PICTURES),
    metavar="KIND",
    help=f"The picture: {', '.join(PICTURES)}. By default the smiles (for a panel its path), and in an .html all of "
    "them.",
)
@click.option(
    "--out",
    type=click.Path(path_type=str),
    help="The file: .png, .svg, .pdf, .html, or .json for the numbers of the picture. By default KIND.png.",
)
@click.option("--by", help="For influence: the label across, instead of the date.")
@click.option("--expiries", help="Show only these expiries: dates, separated by commas.")
@click.option("--date", help="Show only this quote date; for smiles of a panel, this one instead of the last.")
@click.option(
    "--unit", type=click.Choice(["spreads", "vol_points", "price"]), help="The unit of residuals; spreads if known."
)
@filtered_options
@who_option
@json_option
def plot(file: str, kind: Any, out: str | None, by: str | None, who: str | None, output: Output, **options: Any) -> int:
    """Draw the calibration of FILE or of a book (NAME.book): market against model, residuals, variance or influence.

    A picture of a book shows its quotes: it is entered in the ledger, and erasing quotes removes it. Ends with 3 if
    the search did not converge or the quotes do not determine the parameters; it is drawn nevertheless.
    """
    from strikeout.plots.style import View
    from strikeout.plots.writing import check_ending, first_kind, write_plot

    if out is not None:
        check_ending(out)  # before anything is calibrated
    if by is not None and kind != "influence":
        raise UsageError(f"--by {by} is the label across a map of influence. Give --kind influence too.", option="--by")
    dates = tuple(name.strip() for name in (options.pop("expiries") or "").split(",") if name.strip())
    view = View(dates, options.pop("date"), options.pop("unit"), source=Path(file).name)
    if is_book(file):
        refuse_given(options.keys() - {"only"}, "A book is calibrated as it was last:")
        only = options["only"]
        with open_book(file, who=who) as book:
            reading, calibration = None, book.calibration(only)
            path = out or f"{kind or first_kind(calibration)}.png"
            written = write_book_plot(book, path, kind, by=by, view=view, only=only)
    else:
        refuse_given(("who",), "A file keeps no record:")
        reading, calibration = calibrate_file(file, **options)
        written = write_plot(calibration, out or f"{kind or first_kind(calibration)}.png", kind, by=by, view=view)
    facts = {"plot": str(written), "kind": kind, "bytes": written.stat().st_size, "converged": calibration.converged}
    facts |= {"count": calibration.count, **reading_counts(reading, options["quarantine"])}
    return output.lines(
        facts,
        f"{CALLED.get(written.suffix.lower(), 'The picture is')} in {written}.",
        notes=[
            *reading_notes(reading, options["quarantine"]),
            *(f"the calibration itself: {sentence}" for sentence in calibration.warnings),
        ],
        code=exit_codes.DONE if calibration.converged else exit_codes.REFUSED,
    )


def write_book_plot(
    book: Book,
    path: str,
    kind: Any = None,
    *,
    by: str | None = None,
    view: Any = None,
    only: str | None = None,
) -> Path:
    """Write a picture of a book, which records it: a picture shows quotes, and erasing has to find it.

    Args:
        only: a condition; the picture is of the matching quotes, calibrated alone.
    """
    from strikeout.plots.style import View
    from strikeout.plots.writing import write_plot

    def prepared() -> Callable[[Path], Path]:
        calibration = book.calibration(only)
        shown = view or View(source=book.path.name)
        return lambda target: write_plot(calibration, target, kind, by=by, view=shown)

    return book.hand_out(Path(path), prepared, what="plot")
