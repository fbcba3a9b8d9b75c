"""What pages show of a book: pictures with their tables, and the effect of striking quotes out, as plain values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from strikeout.assurance.influence import influence
from strikeout.book import Book
from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.preview import preview, retained_rmse
from strikeout.plots.drawing import MOST_ROWS, Drawing, table_html
from strikeout.plots.influence_map import InfluenceMap
from strikeout.plots.maps import draw_influence, draw_residuals, map_for_page
from strikeout.plots.panels import After, Track, draw_smiles, draw_tracks
from strikeout.plots.smiles import Day, seen_in
from strikeout.plots.style import View
from strikeout.tables import Table, number, plain

Facts = dict[str, Any]
MOST_DATES = 400  # that a list offers
MOST_LABELS = 30
SMALL = 20_000  # quotes that are calibrated again within a second
LISTED = 3  # groups that are named below the map
STRONG = 0.01  # of the largest Cook's distance: what is below it does not stand out
ON_BOARD = 4  # expiries whose smiles are beside a map
AFFECTED = 3  # expiries whose smiles are shown with a plan
FEW = 60  # values of a label that can be across a map beside the date


def picture(
    book: Book,
    tell: object,  # noqa: ARG001
    *,
    kind: str,
    by: str | None = None,
    parameter: str | None = None,
    date: str | None = None,
    link: str | None = None,
) -> Facts:
    """Return one picture of the current calibration with its whole table: influence, smiles or residuals."""
    calibration = book.calibration()
    if kind == "influence":
        drawn = draw_influence(map_for_page(calibration, by), parameter=parameter, chosen=date)
    elif kind == "smiles":
        drawn = draw_smiles(calibration, view=View(date=date or None), link=link)
    elif kind == "residuals":
        drawn = draw_residuals(calibration)
    else:
        raise UsageError(f"{kind!r}: not a picture of a page. Use influence, smiles or residuals.")
    return {**_facts(drawn), **_whole(drawn.table)}


def board(
    book: Book,
    tell: object,  # noqa: ARG001
    *,
    by: str | None = None,
    parameter: str | None = None,
    date: str | None = None,
    link: str | None = None,
) -> Facts:
    """Return the pictures of a book's page and what can be chosen in them; a picture that is refused has its reason."""
    try:
        calibration = book.calibration()
    except RefusedError as error:
        return {
            "refusal": error.sentence,
            "pictures": {},
            "first": [],
            "dates": [],
            "labels": [],
            "parameters": [],
            "date": None,
        }
    dates = _dates(calibration)
    chosen = date or (dates[-1] if dates else None)

    first: list[tuple[str, str]] = []

    def mapped() -> Drawing:
        nonlocal chosen
        found = map_for_page(calibration, by)
        column, _ = found.largest()
        if date is None and column in dates:
            chosen = column
        first.extend(_stand_out(calibration, found))
        return draw_influence(found, parameter=parameter, chosen=chosen, most=MOST_ROWS)

    pictures = {"influence": _tried(mapped)}  # first: it chooses the date, unless one is asked for
    pictures["smiles"] = _tried(lambda: draw_smiles(calibration, view=View(date=chosen), link=link, at_most=ON_BOARD))
    pictures["residuals"] = _tried(lambda: draw_residuals(calibration))
    return {
        "refusal": None,
        "pictures": pictures,
        "first": first,
        "dates": dates[-MOST_DATES:],
        "date": chosen,
        "labels": _labels(calibration),
        "parameters": list(calibration.parameters),
        "fit": calibration.fit_errors.sentence,
    }


def what_if(
    book: Book,
    tell: object,  # noqa: ARG001
    *,
    ids: list[str] | None = None,
    where: str | None = None,
    exact: bool | None = None,
    difference: bool = False,
    link: str | None = None,
    tables: bool = False,
) -> Facts:
    """Return what striking quotes out will do: the plan itself, or a look by one step.

    Args:
        exact: the plan; by default if it is quick, because the book is small or is fitted through moments.
        tables: also the whole tables of parameters and smiles.

    Raises:
        UsageError, UnknownIdError, NothingMeantError, RefusedError: as ``Book.plan_forget``.
    """
    begun = time.perf_counter()
    calibration = book.calibration()
    if exact is None:
        version = book.snapshot().version
        exact = calibration.count <= SMALL or (version is not None and version.fit_source.through == "moments")
    found = _plan(book, ids, where) if exact else _look(calibration, ids, where)
    names = found.pop("ids")
    if not found["count"]:
        book.matching(where or "", verb="forget")  # raises the error that names what would match
    errors = calibration.standard_errors
    after = After(found["parameters"], found.pop("latent"), frozenset(names))
    rmse = retained_rmse(calibration, after.parameters, after.latent, names)
    seconds = time.perf_counter() - begun
    view = View(date=_touched_date(calibration, names))
    rows = [
        [name, before, after.parameters.get(name), found["moved"].get(name), plain(errors.get(name))]
        for name, before in calibration.parameters.items()
    ]
    drawn: list[Drawing] = []

    def draw() -> Drawing:
        drawn.append(
            draw_smiles(calibration, view=view, after=after, difference=difference, link=link, at_most=AFFECTED)
        )
        return drawn[0]

    smiles = _tried(draw)
    if tables:
        cells = [(name, *(number(value, ".10g") if value is not None else "" for value in row)) for name, *row in rows]
        found["parameters_table"] = _whole(Table(EFFECT, cells, numbers=(1, 2, 3, 4)))
        found["smiles_table"] = _whole(drawn[0].table) if drawn else None
    return {
        **found,
        "rows": rows,
        "first_ids": [str(name) for name in names[:MOST_ROWS]],
        "rmse": [plain(calibration.rmse), plain(rmse)],
        "smiles": smiles,
        "date": view.date,
        "seconds": seconds,
    }


def _look(calibration: Calibration, ids: list[str] | None, where: str | None) -> Facts:
    found = preview(calibration, ids=ids, where=where)
    return {
        "ids": found.ids,
        "latent": {str(group): value for group, value in found.latent.items()},
        "count": found.count,
        "retained": found.retained,
        "parameters": plain(found.parameters),
        "moved": plain(found.moved),
        "error": plain(found.error),
        "refusal": None if found.refusal is None else found.refusal.sentence,
        "sentence": found.sentence,
        "exact": None,
    }


def _plan(book: Book, ids: list[str] | None, where: str | None) -> Facts:
    made = book.plan_forget(ids=ids, where=where)
    return {
        "ids": np.asarray(made.ids),
        "latent": {group: after for group, (_, after) in made.latent.items() if after is not None},
        "count": made.count,
        "retained": made.certificate.counts["retained"],
        "parameters": plain(made.after),
        "moved": plain(made.moved),
        "error": 0.0,
        "refusal": None,
        "sentence": "",
        "exact": {
            "path": list(made.path),
            "touched": made.touched,
            "refit": list(made.refit),
            "latent_moves": made.latent_moves,
            "claims": [list(row) for row in made.certificate.rows()],
        },
    }


def curves(
    book: Book,
    tell: object,  # noqa: ARG001
    *,
    first: int | None = None,
    second: int | None = None,
    other: str | None = None,
    date: str | None = None,
    difference: bool = False,
) -> Facts:
    """Return the smiles of a date with the curves of two calibrations: two versions, or the latest of two books.

    Args:
        first, second: entries of calibrations of this book.
        other: the file of another book, instead of them.

    Raises:
        UsageError: a version has other parameters than the current calibration of the book.
        RefusedError: the book is not calibrated, or not current.
    """
    calibration = book.calibration()
    versions = {version.entry: version for version in book.snapshot().versions}
    if other is None:
        missing = {first, second} - versions.keys()
        if missing:
            raise UsageError(f"The book has no calibration of entry {min(missing, key=str)}.", entries=list(versions))
        pair, names = [versions[first], versions[second]], (f"entry {first}", f"entry {second}")  # type: ignore[index]
    else:
        with Book.open(other) as another:
            theirs = another.snapshot().version
        if theirs is None:
            raise RefusedError("The other book is not calibrated yet. Calibrate it first.")
        pair, names = [versions[max(versions)], theirs], (book.path.stem, Path(other).stem)
    dates = _dates(calibration)
    chosen = date or (dates[-1] if dates else None)
    seen = seen_in(calibration, View(date=chosen))
    thetas = []
    for version in pair:
        of_date = version.latent.get(chosen or "")
        latent = {} if of_date is None else {str(calibration.latent_name): of_date[0]}
        theta = {**version.parameters, **latent}
        if theta.keys() != seen.parameters.keys():
            raise UsageError(
                "The curves of these calibrations cannot be drawn over the same quotes: their parameters are "
                f"{', '.join(theta)}, those of the book now are {', '.join(seen.parameters)}."
            )
        thetas.append(theta)
    day = Day(calibration.model, thetas[0], seen.used, chosen or "")
    drawn = draw_smiles(day, after=After(thetas[1]), difference=difference, at_most=ON_BOARD, names=names)
    return {**_facts(drawn), **_whole(drawn.table), "dates": dates[-MOST_DATES:], "date": chosen}


def drift(book: Book, tell: object) -> Facts:  # noqa: ARG001
    """Return the parameters over the versions of a book, and its latent parameter over dates, as pictures."""
    stages = book.history().stages
    names = book.history().parameters
    marks = {n: f"{stage.what}, entry {stage.entry}" for n, stage in enumerate(stages) if stage.what in REMOVALS}
    tracks = [
        Track(
            name,
            [f"entry {stage.entry}" for stage in stages],
            [_finite(stage.parameters.get(name)) for stage in stages],
            [_finite(stage.standard_errors.get(name)) for stage in stages],
            marks,
        )
        for name in names
    ]
    tracks += (
        [Track("RMSE", tracks[0].at, [_finite(stage.rmse) for stage in stages], [None] * len(stages), marks)]
        if tracks
        else []
    )
    found: Facts = {"versions": _facts(draw_tracks(tracks, title="Parameters by version")) if tracks else None}
    version = book.snapshot().version
    if version is not None and version.latent:
        path = {str(group): pair for group, pair in version.latent.items()}
        struck = _struck_dates(book)
        track = Track(
            version.kind["latent"] if version.kind else "latent",
            list(path),
            [_finite(value) for value, _ in path.values()],
            [_finite(error) for _, error in path.values()],
            {n: "quotes struck out" for n, group in enumerate(path) if group in struck},
        )
        found["dates"] = _facts(draw_tracks([track], title="The latent parameter by date"))
    return found


EFFECT = ("parameter", "before", "after", "move_in_standard_errors", "standard_error")
REMOVALS = ("forget", "erase", "restore", "roll")


def _struck_dates(book: Book) -> set[str]:
    found: set[str] = set()
    for quotes in book.snapshot().set_aside.values():
        if "date" in quotes.labels:
            found |= set(quotes.labels["date"].astype(str).tolist())
    return found


def _facts(drawn: Drawing) -> Facts:
    return {
        "svg": drawn.svg,
        "title": drawn.title,
        "alternative": drawn.alternative,
        "table": table_html(drawn.table),
        "first": [list(map(plain, row.values())) for row in drawn.table.records()[:MOST_ROWS]],
    }


def _whole(table: Table) -> Facts:
    return {"csv": table.to_text("csv"), "records": table.records()}


def _tried(draw: Callable[[], Drawing]) -> Facts:
    try:
        return _facts(draw())
    except (RefusedError, UsageError) as error:
        return {"refusal": error.sentence}


def _stand_out(calibration: Calibration, found: InfluenceMap) -> list[tuple[str, str]]:
    """Return the most influential groups in words, each with its condition: days of a source, or cells of the map."""
    labels = calibration.used.labels
    if calibration.count <= SMALL and {"date", "source"} <= labels.keys() and "source" in _labels(calibration):
        top = influence(calibration, ["date", "source"]).top(LISTED)
        strong = [n for n in range(top.rows) if top["cooks_d"][n] >= STRONG * top["cooks_d"][0]]
        listed = [(f"{top['date'][n]} of {top['source'][n]}", top.condition(n)) for n in strong]
    else:
        listed = found.first(LISTED, least=STRONG)
    together = " or ".join(f"({condition})" for _, condition in listed)
    return [*listed, ("all of these", together)] if len(listed) > 1 else listed


def _dates(calibration: Calibration) -> list[str]:
    dates = calibration.used.labels.get("date")
    return [] if dates is None else sorted(set(dates.astype(str).tolist()) - {"", "None"})


def _touched_date(calibration: Calibration, names: Any) -> str | None:
    """Return the date with most of these quotes; None if there are no dates."""
    dates = calibration.used.labels.get("date")
    if dates is None or not len(names):
        return None
    touched = dates[np.isin(calibration.used.ids, names)].astype(str)
    values, counts = np.unique(touched, return_counts=True)
    return str(values[int(np.argmax(counts))]) if len(values) else None


def _labels(calibration: Calibration) -> list[str]:
    """Return labels with few values, which can be across a map beside the date."""
    found = []
    for name, values in list(calibration.used.labels.items())[:MOST_LABELS]:
        if name not in ("date", "expiry_date") and 1 < len(np.unique(values.astype(str))) <= FEW:
            found.append(name)
    return found


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


PICTURES: Mapping[str, Callable[..., Facts]] = {"picture": picture, "board": board, "what if": what_if, "drift": drift}
