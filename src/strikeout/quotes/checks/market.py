"""Every rule about quotes that can be read: run on a frame of them, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from strikeout.quotes.checks import rows, slices
from strikeout.quotes.checks.catalogue import RULES, Checks
from strikeout.quotes.checks.rows import FINDING, with_slices
from strikeout.quotes.checks.slices import PAIRED, explained, with_shared
from strikeout.quotes.issues import SCHEMA

Numbers = Callable[[pl.Series], pl.Series]
NAMED_ROWS = 6  # of the other quotes a sentence names

CHECKED: Mapping[str, Callable[[pl.DataFrame, float], pl.DataFrame]] = {
    "Q202": rows.below_intrinsic,
    "Q203": rows.american,
    "Q205": rows.above_bound,
    "Q206": rows.locked,
    "Q207": rows.zero_bid,
    "Q208": rows.wide_spread,
    "Q209": rows.far_from_money,
    "Q210": slices.stale,
    "Q211": rows.odd_deliverable,
    "Q212": rows.settlement_unknown,
    "Q213": rows.untraded,
    "Q214": rows.short_expiry,
    "Q215": rows.long_expiry,
    "Q216": rows.outside_delta,
    "Q217": rows.low_price,
    "Q218": rows.low_volume,
    "Q219": rows.low_open_interest,
    "Q220": rows.large_premium,
    "Q221": rows.loose_conversion,
    "Q222": rows.far_in_deviations,
    "Q301": slices.odd_units,
    "Q302": slices.broken_parity,
    "Q303": slices.vertical,
    "Q304": slices.butterfly,
    "Q305": slices.calendar,
}
WHOLE = ("Q301",)  # set to reject, these reject every quote involved; PAIRED the fewest that explain the findings


def check_market(
    frame: pl.DataFrame,
    checks: Checks | None = None,
    *,
    numbering: str = "row",
    places: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Return what the rules find among these quotes, as issues; no quote is changed.

    A rule about several quotes (PAIRED) that is set to reject rejects the fewest quotes that explain its findings.

    Args:
        frame: one row per quote, in canonical units: at (position in the table), row (its number there), strike,
            is_call, expiry_years, forward, discount, observed, and what else is known under its canonical name.
        numbering: what a row number is: "line" or "row".
        places: the names canonical columns have in the table.
    """
    chosen = checks or Checks()
    frame, numbers = with_slices(frame), _numbers(frame)
    codes = [code for code in CHECKED if code not in chosen.off and applies(code, frame.columns)]
    paired = [code for code in codes if code in PAIRED]
    rejecting = [code for code in paired if chosen.rejects(code)]

    def find(rows: pl.DataFrame, code: str) -> pl.DataFrame:
        return CHECKED[code](rows, chosen.limit(code)) if code in codes else pl.DataFrame(schema=FINDING)

    found = {code: find(frame, code) for code in codes if code not in rejecting}
    found |= with_shared({code: found[code] for code in paired if code in found and found[code].height > 1}, frame)
    found |= explained(frame, rejecting, find) if rejecting else {}
    parts = [_issues(code, found[code], numbers, numbering, places or {}, chosen) for code in codes]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *parts])


def unchecked(columns: list[str], checks: Checks) -> dict[str, str]:
    """Return the rules that are not run on a frame with these columns, and why."""
    lacking = {
        code: "needs " + " and ".join(need.replace("|", " or ") for need in RULES[code].needs)
        for code in CHECKED
        if not applies(code, columns)
    }
    return {**lacking, **dict.fromkeys(sorted(checks.off), "turned off")}


def applies(code: str, columns: list[str]) -> bool:
    """Return whether these columns are enough for this rule; of "a|b" one will do."""
    return all(any(name in columns for name in need.split("|")) for need in RULES[code].needs)


def _issues(
    code: str,
    findings: pl.DataFrame,
    numbers: Numbers,
    numbering: str,
    places: Mapping[str, str],
    checks: Checks,
) -> pl.DataFrame:
    """Findings with the rows they speak of named in front."""
    if checks.rejects(code) and code in WHOLE:
        every = pl.concat_list("at", "others").alias("at")
        findings = findings.with_columns(every, pl.lit(None, pl.List(pl.Int64)).alias("others")).explode("at")
    findings = findings.with_columns(numbers(findings["at"]).alias("row"))
    word = pl.lit(f"{numbering} ")
    where = pl.concat_str(word, pl.col("row").cast(pl.String))
    if findings["others"].null_count() < findings.height:
        where = pl.concat_str(pl.lit(f"{numbering}s "), pl.col("row").cast(pl.String), _and_rows(findings, numbers))
    reject = checks.rejects(code)
    sentence = pl.col("words").str.replace(r"; kept(\)?)\.?$", "; left out${1}.") if reject else pl.col("words")
    if "shared" in findings.columns:
        shared = findings.with_columns(numbers(findings["shared"].fill_null(0)).alias("shared_row"))["shared_row"]
        counted = pl.concat_str(
            sentence, pl.lit(f" The quote of {numbering} "), shared.cast(pl.String), pl.lit(" is in "),
            pl.col("count").cast(pl.String), pl.lit(" of these findings."),
        )  # fmt: skip
        sentence = pl.when(pl.col("count").is_not_null()).then(counted).otherwise(sentence)
    column = pl.col("column").replace(dict(places)) if places else pl.col("column")
    return findings.select(
        "at",
        pl.lit(code).alias("code"),
        pl.col("row").cast(pl.Int64),
        column.alias("column"),
        pl.concat_str(where, pl.lit(", column "), column, pl.lit(": "), sentence).alias("sentence"),
        pl.lit(reject).alias("is_rejected"),
        "others",
    )


def _numbers(frame: pl.DataFrame) -> Numbers:
    """From positions in the table to row numbers, without a join for every rule."""
    at, row = frame.select(pl.col("at").cast(pl.Int64), pl.col("row").cast(pl.Int64)).sort("at").get_columns()
    return lambda wanted: row.gather(at.search_sorted(wanted))


def _and_rows(findings: pl.DataFrame, numbers: Numbers) -> pl.Series:
    """Return the row numbers of the other quotes, in words: ", 14 and 15"."""
    few = findings.select(
        pl.col("others").list.head(NAMED_ROWS), pl.col("others").list.len().cast(pl.Int64).alias("count")
    )
    flat = few.with_row_index("finding").explode("others").rename({"others": "at"})
    named = (
        flat.with_columns(numbers(flat["at"]).alias("row"))
        .group_by("finding", maintain_order=True)
        .agg(pl.col("row").cast(pl.String).str.join(", "), pl.col("count").first())
    )
    more = pl.col("count") - NAMED_ROWS
    rest = (
        pl.when(more > 0)
        .then(pl.concat_str(pl.lit(" and "), more.cast(pl.String), pl.lit(" more")))
        .otherwise(pl.lit(""))
    )
    return named.select(pl.concat_str(pl.lit(", "), "row", rest)).to_series()
