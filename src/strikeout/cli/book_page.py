"""The page of a book: how good the fit is, what it hangs on, what was done, and what was certified."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from strikeout.cli.books import ENTRY, entry_row
from strikeout.cli.terminal import move_text
from strikeout.errors import StrikeoutError
from strikeout.plots.influence_map import plot_influence_map
from strikeout.plots.page import figure_of, fit_figures, page_of, picture_parts, table_of
from strikeout.plots.style import to_inline
from strikeout.wording import many

if TYPE_CHECKING:
    from strikeout.assurance.certificate import Certificate
    from strikeout.book import Book
    from strikeout.calibration.panel_calibration import AnyCalibration
    from strikeout.store.entry import Entry

MOST_GROUPS = 10
MOST_ENTRIES = 200  # of the log; earlier ones are counted


def book_page(book: Book, *, by: str | None = None) -> str:
    """The page of a book, as text; what a book cannot show yet, the page says.

    Args:
        by: the label whose values the influence goes by; the date where none is given, of a single day the expiry.

    Raises:
        RefusedError: an entry of its ledger cannot be read.
    """
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
    except StrikeoutError as error:  # a page on a book that is not calibrated is still of use
        parts += ["<h2>Calibration</h2>", f'<p class="wrong">{escape(error.sentence)}</p>']
    else:
        parts += [*_fit(calibration), *_influence(calibration, by)]
    return page_of(f"strikeout: {name}", [*parts, *_certified(book, entries), *_log(entries)])


def _fit(calibration: AnyCalibration) -> list[str]:
    return [
        "<h2>Calibration</h2>",
        f"<p>{many(calibration.count, 'quote')}, RMSE {calibration.rmse:.4g} in price.</p>",
        calibration._repr_html_(),
        *picture_parts(fit_figures(calibration)),
    ]


def _influence(calibration: AnyCalibration, asked: str | None) -> list[str]:
    from strikeout.assurance.influence import influence

    head = "<h2>Influence</h2>"
    by = asked or _label(calibration)
    try:
        found = influence(calibration, by).top(MOST_GROUPS)
        drawn = plot_influence_map(calibration, by=asked)
    except StrikeoutError as error:
        return [head, f"<p>{escape(error.sentence)}</p>"]
    rows = [
        (str(group), f"{count:,}", f"{distance:.3g}", move_text(abs(price)).removeprefix("+"))
        for group, count, distance, price in zip(
            found[by], found["count"], found["cooks_d"], found["price_change"], strict=True
        )
    ]
    return [
        head,
        f"<p>What striking out every quote of one {escape(by)} would do, by one exact step:</p>",
        table_of((by, "quotes", "Cook's distance", "a price moves by at most"), rows),
        figure_of(to_inline(drawn), "Cook's distance, cell by cell; the darker, the more hangs on it."),
    ]


def _label(calibration: AnyCalibration) -> str:
    """What to strike out in turn: dates, or expiries where a single day is all there is."""
    labels = calibration.used.labels
    several = (name for name in ("date", "expiry_date") if name in labels and len(set(labels[name].tolist())) > 1)
    return next(several, "date")


def _certified(book: Book, entries: tuple[Entry, ...]) -> list[str]:
    head = "<h2>Last certificate</h2>"
    issued = [entry for entry in entries if entry.certificate]
    if not issued:
        return [head, "<p>None was issued: nothing has been struck out.</p>"]
    try:
        certificate = book.certificate(issued[-1].number)
    except StrikeoutError as error:
        return [head, f"<p>{escape(error.sentence)}</p>"]
    return [head, *_shown(certificate, issued[-1])]


def _shown(certificate: Certificate, entry: Entry) -> list[str]:
    counts = certificate.counts
    return [
        f"<p>Entry {entry.number}, by {escape(entry.who)}: {counts['forgotten']:,} of "
        f"{many(certificate.before, 'quote')} struck out, {counts['retained']:,} retained. "
        f"Digest <code>{certificate.digest()}</code></p>",
        table_of(("claim", "", "support"), certificate.rows(), words=(1, 2)),
        "<p>What it does not claim:</p>",
        f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in certificate.not_claimed)}</ul>",
    ]


def _log(entries: tuple[Entry, ...]) -> list[str]:
    shown = entries[-MOST_ENTRIES:]
    earlier = len(entries) - len(shown)
    return [
        "<h2>Log</h2>",
        *([f"<p>The last {many(len(shown), 'entry', 'entries')}; {earlier:,} came before.</p>"] if earlier else []),
        table_of(ENTRY, [entry_row(entry) for entry in shown], words=(1, 2, 3, 4, 5)),
    ]
