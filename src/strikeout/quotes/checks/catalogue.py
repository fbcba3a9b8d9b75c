"""Every rule by its code: what it looks for, why, what to do, and how strict it is by default.

Q1xx reject a row. Q2xx flag one, which stays in the book. Q3xx judge a slice (the quotes of one underlying, moment and
expiry) and name the quotes involved. Codes are stable; wording is not.

`Checks` states which are off, which reject what they would only flag, and their limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from strikeout.errors import UsageError

KINDS = {"1": "rejects the row", "2": "flags the row, which stays", "3": "judges a slice, whose quotes stay"}


@dataclass(frozen=True)
class Rule:
    """One rule. ``limit`` is its threshold and ``unit`` what that counts; ``needs`` are the columns it looks at.

    ``sees_others``: it looks at other quotes than the one it speaks of. ``is_fixed``: it cannot be turned off.
    """

    code: str
    name: str
    why: str
    remedy: str
    limit: float | None = None
    unit: str = ""
    needs: tuple[str, ...] = ()
    sees_others: bool = False
    is_fixed: bool = False

    @property
    def kind(self) -> str:
        """What happens to what it finds, in words."""
        return KINDS[self.code[1]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "code": self.code,
            "name": self.name,
            "kind": self.kind,
            "why": self.why,
            "remedy": self.remedy,
            "limit": self.limit,
            "unit": self.unit or None,
            "needs": list(self.needs),
            "sees_others": self.sees_others,
            "is_fixed": self.is_fixed,
        }


def _fixed(code: str, name: str, why: str, remedy: str) -> Rule:
    return Rule(code, name, why, remedy, is_fixed=True)


_RULES = (
    _fixed(
        "Q101",
        "missing value",
        "A value the price depends on is empty, or the text nan, null or NA.",
        "Fill it in, or drop the row.",
    ),
    _fixed("Q102", "not a number", "There is text where a number is needed.", "Write 1234.5."),
    _fixed(
        "Q103",
        "crossed market",
        "The bid is above the ask: at least one of them is wrong or old.",
        "Correct or drop the row.",
    ),
    _fixed(
        "Q104",
        "not above zero",
        "No option has a strike, forward, spot, discount or volatility of zero or less.",
        "Correct or drop the row.",
    ),
    _fixed(
        "Q105",
        "expired",
        "The expiry is not after the quote.",
        "Drop the row; for a quote on its last day give expiry_years, or times.",
    ),
    _fixed(
        "Q106",
        "negative price",
        "Bid or ask is below zero, or the price is by more than 0.0001 of the discounted forward.",
        "Correct or drop the row.",
    ),
    _fixed("Q107", "right not understood", "The right is neither a call nor a put.", "Write C or P."),
    _fixed(
        "Q108",
        "same id, other values",
        "Another row has the same id and other values; all of them are rejected: which is right is not clear.",
        "Keep the right one, or give each its own id.",
    ),
    _fixed("Q109", "weight not above zero", "A weight of zero or less counts for nothing.", "Drop the row instead."),
    _fixed(
        "Q110",
        "date not understood",
        "The day of a quote is a date, or empty where the price does not need it; day-month order is never guessed.",
        "Write 2024-01-31.",
    ),
    _fixed(
        "Q111",
        "not finite",
        "A number is infinite, or what is computed from the row is.",
        "Correct or drop the row.",
    ),
    _fixed(
        "Q112",
        "more fields than the header",
        "The line has more fields than the header, so it is not known which is which.",
        "Quote text that holds the separator.",
    ),
    _fixed(
        "Q113",
        "out of range for its unit",
        "A rate or yield beyond 1, a volatility above 5, a discount above 2 or a time above 100 years: another unit.",
        "Give decimals, not percent, and years, not days.",
    ),
    _fixed("Q114", "no market", "Bid and ask are both zero: there is no quote.", "Drop the row."),
    _fixed(
        "Q115",
        "sentinel",
        "A number such as -99.99 or 9223372036854775807 means 'no value' at some vendors; it is not a price.",
        "Leave the cell empty if there is no value, or name the mark in a profile.",
    ),
    _fixed(
        "Q116",
        "no forward",
        "Neither the file, nor calls and puts at the same strikes, nor spot and rate give a forward for this expiry.",
        "Add forward and discount, or spot and rate; or keep both calls and puts near the money.",
    ),
    _fixed(
        "Q117",
        "exercising now is optimal",
        "An American price at or below what exercising now pays has no volatility: every low one gives it. Spot and "
        "price may also be of different times.",
        "Nothing, or read the quotes as European.",
    ),
    _fixed("Q201", "exact repeat, kept once", "Every column equals those of an earlier row.", "Nothing."),
    Rule(
        "Q202",
        "below the intrinsic value",
        "The price is below what the option is worth without any volatility. Noise puts some quotes there, and cutting "
        "off only those would bias a calibration.",
        "Look at them. Where half of a file is there, its prices are in another unit than its forwards (Q301).",
        needs=("observed", "forward", "discount"),
    ),
    Rule(
        "Q203",
        "American exercise",
        "It is priced as European; for calls without dividends that is the same, for deep puts it is not.",
        "Add a column spot, which converting it takes, and do not turn converting off (exercise european). Or keep to "
        "options out of the money.",
        needs=("exercise",),
    ),
    _fixed(
        "Q204",
        "not a number in a column not needed",
        "The price does not depend on it, so it is kept as unknown.",
        "Nothing, or correct the cell.",
    ),
    Rule(
        "Q205",
        "above the upper bound",
        "A call is worth at most the discounted forward, a put at most the discounted strike.",
        "Look at them: a decimal point may have moved.",
        needs=("observed", "forward", "discount"),
    ),
    Rule(
        "Q206",
        "locked market",
        "Bid and ask are equal: a fleeting state, or a feed that fills one side from the other.",
        "Do not weigh by the spread, which is zero here.",
        needs=("bid", "ask"),
    ),
    Rule(
        "Q207",
        "zero bid",
        "There is no bid, so the mid is half of an asking price.",
        "Leave them out where the wings matter: --check Q207=reject.",
        needs=("bid", "ask"),
    ),
    Rule(
        "Q208",
        "wide spread",
        "Where bid and ask are far apart the mid says little.",
        "Weigh by the spread, or leave them out.",
        limit=0.5,
        unit="ask minus bid, as a share of the mid",
        needs=("bid", "ask"),
    ),
    Rule(
        "Q209",
        "outside the moneyness band",
        "Far from the money prices are ticks and conventions rather than volatilities.",
        "Leave them out, or choose another band.",
        limit=2.0,
        unit="strike over forward, or forward over strike",
        needs=("forward",),
    ),
    Rule(
        "Q210",
        "stale",
        "The quote is what it was at its last appearance, while the underlying moved so far that the price should have "
        "moved by more than half its spread (5 % if no spread is known).",
        "Look at its last trade; strike it out.",
        limit=0.001,
        unit="move of the underlying since the last appearance, as a share of it",
        needs=("quote_date", "expiry"),
        sees_others=True,
    ),
    Rule(
        "Q211",
        "non-standard deliverable",
        "After a corporate action an option delivers something other than the standard, and its price does not follow "
        "from this spot. Adjusted roots end in a digit.",
        "Leave them out: --check Q211=reject.",
        needs=("deliverable|root",),
    ),
    Rule(
        "Q212",
        "settlement unknown",
        "On this day the index has options that settle in the morning and others in the afternoon; the row does not "
        "state which it is, and the time to expiry is off by up to seven hours.",
        "Add a column root (SPX, SPXW) or settlement (am, pm).",
        needs=("underlying|settlement",),
    ),
    Rule(
        "Q213",
        "no volume and no open interest",
        "It is neither traded nor held: the quote is a market maker's model.",
        "Leave them out where you want the market's view: --check Q213=reject.",
        needs=("volume", "open_interest"),
    ),
    Rule(
        "Q214",
        "short expiry",
        "In the last days before expiry a price is mostly intrinsic value and ticks, and its volatility is noise.",
        "Leave them out: --check Q214=7,reject.",
        limit=0.0,
        unit="fewest days to expiry",
    ),
    Rule(
        "Q215",
        "long expiry",
        "Far expiries are quoted seldom, and rates and dividends matter more than volatility.",
        "Leave them out: --check Q215=730,reject.",
        limit=36_500.0,
        unit="most days to expiry",
    ),
    Rule(
        "Q216",
        "outside the delta band",
        "The forward delta, at the volatility of the price itself, is near 0 or 1: the price hardly depends on the "
        "volatility. Prices without a volatility are outside every band.",
        "Leave them out: --check Q216=0.1,reject keeps 10 to 90 delta.",
        limit=0.0,
        unit="least distance of the delta from 0 and from 1",
        needs=("observed", "forward", "discount"),
    ),
    Rule(
        "Q217",
        "low price",
        "Below a few ticks the price is rounded too much to give a volatility.",
        "Leave them out: --check Q217=0.375,reject.",
        limit=0.0,
        unit="least price, in the currency of the prices",
        needs=("observed",),
    ),
    Rule(
        "Q218",
        "low volume",
        "Few contracts were traded that day.",
        "Leave them out: --check Q218=10,reject.",
        limit=0.0,
        unit="fewest contracts traded",
        needs=("volume",),
    ),
    Rule(
        "Q219",
        "low open interest",
        "Few contracts are open.",
        "Leave them out: --check Q219=100,reject.",
        limit=0.0,
        unit="fewest contracts open",
        needs=("open_interest",),
    ),
    Rule(
        "Q220",
        "premium of early exercise above the spread",
        "The European price that an American quote is converted to differs from its mid by more than the spread, so "
        "the fit depends on the conversion: on rate, dividends and constant volatility.",
        "Use the side out of the money (select otm), where the premium is small.",
        limit=1.0,
        unit="premium, in spreads",
        needs=("american_mid", "bid", "ask"),
    ),
    Rule(
        "Q221",
        "unreliable conversion",
        "An American quote in the money that is worth little more than exercising it, or ends within a day: its "
        "volatility is mostly noise of the price and the spot.",
        "Use the side out of the money (select otm), or reject these.",
        limit=0.5,
        unit="price less what exercising now pays, in spreads",
        needs=("american_mid", "spot", "bid", "ask"),
    ),
    Rule(
        "Q222",
        "far from the money in deviations",
        "ln(strike / forward) in standard deviations to expiry, at the volatility of the price: a band that means the "
        "same for a week and for a year. Prices without a volatility are outside every band.",
        "Leave them out: --check Q222=2,reject keeps two deviations on either side.",
        limit=1000.0,
        unit="most standard deviations of ln(strike / forward)",
        needs=("observed", "forward", "discount"),
    ),
    Rule(
        "Q301",
        "unit suspicion",
        "Most quotes of the slice make sense in another unit only: strikes times 1000, volatilities in percent, prices "
        "in another unit than the forward.",
        "Name the vendor's profile, or convert the column.",
        limit=20.0,
        unit="median of strike over forward, or of forward over strike",
        needs=("forward",),
        sees_others=True,
    ),
    Rule(
        "Q302",
        "parity broken",
        "A call and a put at one strike can be traded against the forward of their slice at a gain, bid and ask paid. "
        "European options only.",
        "Look at both quotes, and at where the forward comes from.",
        limit=0.0005,
        unit="gain, as a share of the discounted forward",
        needs=("bid", "ask", "forward", "discount"),
        sees_others=True,
    ),
    Rule(
        "Q303",
        "vertical arbitrage",
        "Selling one quote at its bid and buying another strike at its ask brings money and can lose none.",
        "One of the two is wrong or old: look at both.",
        limit=0.0,
        unit="gain, as a share of the discounted forward",
        needs=("bid", "ask", "discount"),
        sees_others=True,
    ),
    Rule(
        "Q304",
        "butterfly arbitrage",
        "A quote's bid is above what the strikes around it cost at the ask for a payoff that is never smaller.",
        "The middle one is too dear, or a wing too cheap: look at all three.",
        limit=0.0,
        unit="gain, as a share of the discounted forward",
        needs=("bid", "ask", "discount"),
        sees_others=True,
    ),
    Rule(
        "Q305",
        "calendar arbitrage",
        "A quote's bid is above what the next expiry costs at the ask at the same strike over forward.",
        "Look at the quotes, and at the forwards of both expiries.",
        limit=0.0,
        unit="gain, as a share of the discounted forward",
        needs=("bid", "ask", "forward", "discount"),
        sees_others=True,
    ),
)
RULES: Mapping[str, Rule] = {rule.code: rule for rule in _RULES}
# Sets of rules by name. "desk": 7 days to 2 years, 10 to 90 delta, a bid. "academic": the filters of Bakshi, Cao
# and Chen (Journal of Finance 52, 1997): at least 6 days and a price of 3/8, within the arbitrage bounds; and a bid.
PRESETS: Mapping[str, Mapping[str, str]] = {
    "academic": {"Q202": "reject", "Q205": "reject", "Q207": "reject", "Q214": "6,reject", "Q217": "0.375,reject"},
    "desk": {"Q207": "reject", "Q214": "7,reject", "Q215": "730,reject", "Q216": "0.1,reject"},
}


WORDS = ("off", "reject")
ALL = "all"
PRESET = "preset"


@dataclass(frozen=True)
class Checks:
    """What to do where the rules' own defaults are not wanted; made by `Checks.of`."""

    off: frozenset[str] = frozenset()
    reject: frozenset[str] = frozenset()
    limits: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(given: Checks | Mapping[str, float | str] | str | None) -> Checks:
        """Return the checks a mapping from codes to a limit, "off", "reject" or both ("0.3,reject") asks for.

        ``all`` is every rule that can be turned off. ``{"preset": "desk"}``, or "desk" alone, is a set of rules of
        ``catalogue.PRESETS``; other codes in the mapping change it.

        >>> Checks.of({"Q208": "0.3,reject", "Q213": "off"}).limit("Q208")
        0.3
        """
        if isinstance(given, Checks):
            return given
        if isinstance(given, str):
            given = {PRESET: given}
        if given and PRESET in given:
            given = {**_preset(given[PRESET]), **{code: value for code, value in given.items() if code != PRESET}}
        off: set[str] = set()
        reject: set[str] = set()
        limits: dict[str, float] = {}
        for code, value in (given or {}).items():
            for rule in _meant(code):
                for word in str(value).split(","):
                    if word.strip() in WORDS:
                        (off if word.strip() == "off" else reject).add(rule.code)
                    else:
                        limits[rule.code] = _limit(rule, word.strip())
        return Checks(frozenset(off), frozenset(reject), limits)

    def limit(self, code: str) -> float:
        """Return how far a value may go before the rule speaks; 0 for a rule without a limit."""
        return self.limits.get(code, RULES[code].limit or 0.0)

    def rejects(self, code: str) -> bool:
        """Return whether what this rule finds stays out of the book."""
        return code in self.reject or code.startswith("Q1")


def _preset(name: float | str) -> Mapping[str, float | str]:
    if name not in PRESETS:
        raise UsageError(f"checks: there is no preset {name!r}. Expected one of {', '.join(PRESETS)}.", preset=name)
    return PRESETS[str(name)]


def _meant(code: str) -> list[Rule]:
    optional = [rule for rule in RULES.values() if not rule.is_fixed]
    if code == ALL:
        return optional
    if code not in RULES:
        raise UsageError(f"checks: there is no rule {code!r}. `strikeout rules` lists them.", code=code)
    if RULES[code].is_fixed:
        raise UsageError(
            f"checks: {code} ({RULES[code].name}) cannot be changed: such a row is not a quote. The rules that can "
            f"be are {', '.join(rule.code for rule in optional)}.",
            code=code,
        )
    return [RULES[code]]


def _limit(rule: Rule, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or number < 0 or rule.limit is None:
        limit = "" if rule.limit is None else f", or a limit ({rule.unit}) such as {rule.limit:g}"
        raise UsageError(
            f"checks: {rule.code} ({rule.name}) can be off or reject{limit}; {word!r} was given.", code=rule.code
        )
    return number
