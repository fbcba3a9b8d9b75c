"""Cash dividends: grids against QuantLib's finite differences, schedules, and that forgetting leaves no trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.errors import ColumnError, UsageError
from strikeout.kernels import black
from strikeout.kernels import dividends as kernel
from strikeout.kernels.compiled import native
from strikeout.quotes.dividends import Dividends, cash_flows
from strikeout.quotes.reading import Chunking, inspect_quotes

pytestmark = pytest.mark.filterwarnings("ignore::strikeout.quotes.issues.QuotesWarning")
needs_native = pytest.mark.skipif(native() is None, reason="the compiled kernel is not built")
S, RATE, BORROW, SIGMA = 100.0, 0.05, 0.005, 0.25
DAY, PAID = "2024-01-02", {"2024-01-22": 1.5, "2024-04-21": 1.5, "2024-07-20": 1.6, "2024-10-18": 1.6}
STRIKES = np.array([80.0, 95.0, 100.0, 105.0, 120.0])
# QuantLib, FdBlackScholesVanillaEngine, 3,200 by 1,600 points, the dividends above, American and European:
# python tests/reference/make_dividend_grid.py
QUANTLIB = json.loads((Path(__file__).parents[1] / "reference" / "dividend_grid.json").read_text())


def flows(model: str) -> kernel.CashFlows:
    paid = ((20, 1.5), (110, 1.5), (200, 1.6), (290, 1.6))
    return cash_flows(f"{model} " + " ".join(f"{n / 365!r}:{d}" for n, d in paid))


def grid(model: str, *, is_call: bool) -> np.ndarray:
    steps = kernel.steps_of(flows(model), 1.0, RATE, RATE - BORROW)
    return kernel.values(steps, np.full(5, S), STRIKES, np.full(5, SIGMA), is_call=is_call)


@pytest.mark.parametrize("is_call", [True, False])
@pytest.mark.parametrize("model", ["escrowed", "piecewise"])
def test_values_agree_with_quantlibs_finite_differences(model, is_call):
    expected = np.array(QUANTLIB[f"{model} {'calls' if is_call else 'puts'}"])
    found = grid(model, is_call=is_call)
    assert np.abs(found - expected).max() < 2.5e-5 * S  # what 200 by 100 points are off by: 0.005 volatility points
    premium = found[0] - found[1]
    assert np.abs(premium - (expected[0] - expected[1])).max() < 2e-5 * S
    assert premium.max() > 0.5  # the case is not empty


def test_escrowed_european_values_are_blacks():
    T, cash = 1.0, flows("escrowed")
    forward = cash.forward(np.array([S]), T, np.array([RATE - BORROW]))
    for is_call in (True, False):
        expected = black.price(forward, STRIKES, T, SIGMA, np.exp(-RATE), is_call)
        assert np.abs(grid("escrowed", is_call=is_call)[1] - expected).max() < 2e-5 * S


def test_a_single_dividend_at_expiry_lowers_the_forward_and_is_taken_by_exercising_before():
    cash = cash_flows("escrowed 0.5:4.0")
    steps = kernel.steps_of(cash, 0.5, 0.0, 0.0)
    american, european = kernel.values(steps, np.array([S]), np.array([60.0]), np.array([0.1]), is_call=True)
    assert european[0] == pytest.approx(36.0, abs=1e-3)
    assert american[0] == pytest.approx(40.0, abs=1e-3)


@pytest.mark.parametrize("model", ["escrowed", "piecewise"])
def test_the_tail_is_a_yield_that_begins_at_its_date(model):
    one = cash_flows(f"{model} 0.25:1.0 tail 0.5:0.04")
    forward = one.forward(np.array([S]), 1.0, np.array([0.03]))[0]
    expected = S * np.exp(0.03 - 0.04 * 0.5) - 1.0 * np.exp(0.03 * 0.75 - 0.04 * 0.5)
    assert forward == pytest.approx(expected, rel=1e-14)
    assert one.cost(np.array([S]), np.array([forward]), 1.0)[0] == pytest.approx(0.03, abs=1e-13)
    steps = kernel.steps_of(one, 1.0, 0.05, 0.03)
    european = kernel.values(steps, np.array([S]), np.array([100.0]), np.array([0.2]), is_call=False)[1, 0]
    if model == "escrowed":
        assert european == pytest.approx(float(black.price(forward, 100.0, 1.0, 0.2, np.exp(-0.05), False)), abs=2e-3)


@needs_native
@pytest.mark.parametrize("model", ["escrowed", "piecewise"])
def test_the_compiled_grid_agrees_with_its_twin_and_every_instruction_set_gives_the_same_bits(model):
    steps = kernel.steps_of(flows(model), 1.0, RATE, RATE - BORROW)
    given = np.full(5, S), STRIKES, np.full(5, SIGMA)
    module = native()
    before, found = module.instructions(), []
    try:
        for name in ("plain", "avx2"):
            module.use_instructions(name)
            found.append(kernel.values(steps, *given, is_call=False))
    finally:
        module.use_instructions(before)
    assert found[0].tobytes() == found[1].tobytes()
    with np.errstate(all="ignore"):
        assert np.abs(kernel.values_twin(steps, *given, sign=1.0) - found[0]).max() < 1e-9
    alone = kernel.values(steps, *(column[3:4].copy() for column in given), is_call=False)
    assert alone[:, 0].tobytes() == found[0][:, 3].tobytes()


def chain(model: str = "escrowed") -> pl.DataFrame:
    """A chain with American exercise and known dividends; volatility falls with the strike."""
    rows = []
    for days in (60, 180, 365):
        T = days / 365
        cash = cash_flows(Dividends.of(PAID, model).text("XYZ", pl.Series([DAY]).str.to_date()[0], T))
        steps = kernel.steps_of(cash, T, RATE, RATE - BORROW)
        strikes = np.arange(84.0, 117.0, 4.0)
        for is_call in (True, False):
            sigma = 0.25 - 0.001 * (strikes - 100.0)
            american = kernel.values(steps, np.full(len(strikes), S), strikes, sigma, is_call=is_call)[0]
            end = str(pl.Series([DAY]).str.to_date().dt.offset_by(f"{days}d")[0])
            right = "C" if is_call else "P"
            rows += [(end, K, right, p) for K, p in zip(strikes.tolist(), american.tolist(), strict=True)]
    made = pl.DataFrame(rows, schema=["expiry", "strike", "right", "mid"], orient="row")
    now = pl.when(pl.col("right") == "C").then(S - pl.col("strike")).otherwise(pl.col("strike") - S)
    return made.filter(pl.col("mid") > now + 0.01).select(
        "expiry", "strike", "right", bid=pl.col("mid") - 0.03, ask=pl.col("mid") + 0.03, spot=S, rate=RATE,
        exercise=pl.lit("A"), underlying=pl.lit("XYZ"), quote_date=pl.lit(DAY),
    )  # fmt: skip


HOW: dict[str, Any] = {"exercise": "auto", "dividends": PAID}


def volatilities(quotes: so.Quotes) -> np.ndarray:
    c = quotes.contracts
    return black.implied_volatility(quotes.observed, c.forward, c.strike, c.expiry, c.discount, c.is_call)


@pytest.fixture(scope="module")
def quotes() -> so.Quotes:
    return so.read_quotes(chain(), **HOW)


def test_forwards_and_volatilities_are_found_with_the_schedule_and_not_without(quotes):
    T = quotes.contracts.expiry
    texts = quotes.labels["dividends"]
    cost = np.array([RATE - BORROW])
    forward = np.array([cash_flows(a).forward(np.array([S]), t, cost)[0] for a, t in zip(texts, T, strict=True)])
    sigma = 0.25 - 0.001 * (quotes.contracts.strike - 100.0)
    otm = quotes.contracts.is_call == (quotes.contracts.strike >= quotes.contracts.forward)
    assert np.abs(quotes.contracts.forward / forward - 1.0).max() < 1e-5
    assert np.abs(volatilities(quotes) - sigma)[otm].max() < 2e-4
    without = so.read_quotes(chain(), exercise="auto")
    off = without.contracts.is_call == (without.contracts.strike >= without.contracts.forward)
    assert np.abs(volatilities(without) - (0.25 - 0.001 * (without.contracts.strike - 100.0)))[off].max() > 1e-3


@pytest.mark.parametrize("model", ["escrowed", "piecewise"])
def test_the_borrow_of_a_slice_is_what_the_dividends_leave(model):
    found = inspect_quotes(chain(model), exercise="auto", dividends=Dividends.of(PAID, model)).forwards
    assert found.forward_error.max() < 0.01  # the prices have no noise; the grid has 200 points
    assert found.borrow == pytest.approx(BORROW, abs=6e-4)  # a forward off by 0.01 at 60 days
    with_dividends = inspect_quotes(chain(model), exercise="auto").forwards.borrow
    assert (with_dividends > 0.05).all()  # 1.5 every quarter of 100


def test_both_models_are_read_and_differ(quotes):
    other = so.read_quotes(chain(), exercise="auto", dividends=Dividends.of(PAID, "piecewise"))
    assert other.labels["dividends"][0].startswith("piecewise ")
    assert other.observed.tobytes() != quotes.observed.tobytes()


def same(a: so.Quotes, b: so.Quotes) -> bool:
    one, two = np.argsort(a.ids), np.argsort(b.ids)
    return (
        a.ids[one].tolist() == b.ids[two].tolist()
        and a.observed[one].tobytes() == b.observed[two].tobytes()
        and a.contracts.forward[one].tobytes() == b.contracts.forward[two].tobytes()
    )


GONE = (pl.col("strike") == 100.0) & (pl.col("expiry") == "2025-01-01")


def test_forgetting_with_dividends_equals_never_having_seen_the_quotes(quotes, tmp_path):
    never = so.read_quotes(chain().filter(~GONE), **HOW)
    gone = np.setdiff1d(quotes.ids, never.ids)
    assert gone.size == 2
    assert same(quotes.without(gone), never)
    calibration = so.calibrate(quotes, so.BlackScholes(), select="otm")
    done = so.forget(calibration, ids=gone)
    assert [refit.name for refit in done.refits] == ["XYZ 2024-01-02 2025-01-01"]  # what depended on them
    expected = so.calibrate(never, so.BlackScholes(), select="otm").parameters
    assert done.parameters == expected
    assert so.verify(done.certificate, never)
    with so.Book.create(tmp_path / "cash.book") as book:
        book.import_quotes(quotes)
        book.calibrate(so.BlackScholes(), select="otm")
        book.forget(ids=gone, reason="bad-feed")
        assert same(book.quotes(), never)
        assert book.calibration().parameters == expected
        assert book.verify()


def test_order_chunks_and_written_files_change_no_bit(quotes, tmp_path):
    assert same(so.read_quotes(chain()[::-1], **HOW), quotes)
    chain().write_csv(tmp_path / "chain.csv")
    with inspect_quotes(
        tmp_path / "chain.csv", chunking=Chunking(folder=tmp_path, size=600, at_once=10), **HOW
    ) as found:
        assert same(found.quotes, quotes)
    so.write_quotes(quotes, tmp_path / "quotes.csv")
    assert same(so.read_quotes(tmp_path / "quotes.csv"), quotes)


def test_the_command_line_reads_a_file_of_dividends(quotes, tmp_path):
    file, cash = tmp_path / "chain.csv", tmp_path / "dividends.csv"
    chain().write_csv(file)
    cash.write_text("underlying,ex_date,amount\n" + "".join(f"XYZ,{day},{d}\nABC,{day},9\n" for day, d in PAID.items()))
    how = ["--exercise", "american", "--dividends", str(cash)]
    given = ["calibrate", str(file), "--model", "black-scholes", "--select", "otm", "--json", *how]
    ran = CliRunner().invoke(strikeout, given)
    assert ran.exit_code == 0, ran.output
    expected = so.calibrate(quotes, so.BlackScholes(), select="otm").parameters
    assert json.loads(ran.stdout)["parameters"] == expected
    other = CliRunner().invoke(strikeout, [*given, "--dividend-model", "piecewise"])
    assert json.loads(other.stdout)["parameters"] != expected
    assert CliRunner().invoke(strikeout, ["calibrate", str(file), "--dividend-model", "piecewise"]).exit_code == 2


def test_forwards_from_spot_are_less_the_dividends():
    rows = chain().filter(pl.col("right") == "C").with_columns(dividend_yield=pl.lit(BORROW))
    found = so.read_quotes(rows, forwards="spot", **HOW)
    text, T = found.labels["dividends"][-1], float(found.contracts.expiry[-1])
    expected = cash_flows(text).forward(np.array([S]), T, np.array([RATE - BORROW]))[0]
    assert found.contracts.forward[-1] == pytest.approx(expected, rel=1e-12)


def test_schedules_come_from_files_frames_and_mappings(tmp_path):
    path = tmp_path / "dividends.csv"
    path.write_text("Symbol,Ex Date,Amount,Yield\nXYZ,2024-02-01,1.5,\nXYZ,2024-03-01,,0.02\n")
    dates = ["2024-02-01", "2024-03-01"]
    frame = pl.DataFrame({"underlying": ["XYZ"] * 2, "ex_date": dates, "amount": [1.5, None], "yield": [None, 0.02]})
    day = pl.Series([DAY]).str.to_date()[0]
    texts = {Dividends.of(source).text("XYZ", day, 1.0) for source in (path, frame, frame.to_pandas())}
    assert texts == {f"escrowed {30 / 365!r}:1.5 tail {59 / 365!r}:0.02"}
    assert Dividends.of(path).text("OTHER", day, 1.0) == ""
    assert Dividends.of({"XYZ": {"2024-02-01": 1.5}}).text("XYZ", day, 0.01) == ""


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("ex_date,amount\n2024-13-01,1\n", {"row": 2, "column": "ex_date"}),
        ("ex_date,amount\n2024-03-01,much\n", {"row": 2, "column": "amount"}),
        ("ex_date,amount\n2024-03-01,1\n2024-06-01,-1\n", {"row": 3, "column": "amount"}),
        ("ex_date,amount\n2024-03-01,1\n2024-03-01,2\n", {"ex_date": "2024-03-01"}),
        ("when,what\n2024-03-01,1\n", {"columns": ["when", "what"]}),
    ],
)
def test_a_bad_schedule_is_refused_with_row_and_column(tmp_path, text, facts):
    path = tmp_path / "dividends.csv"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        so.read_quotes(chain(), exercise="auto", dividends=path)
    assert facts.items() <= refused.value.facts.items()


def test_dividends_need_a_date_of_the_quotes():
    T = pl.lit(0.5)
    with pytest.raises(ColumnError) as refused:
        so.read_quotes(chain().drop("quote_date", "expiry").with_columns(expiry_years=T), **HOW)
    assert refused.value.missing == "quote_date"
    with pytest.raises(UsageError):
        so.read_quotes(chain(), exercise="auto", dividends=PAID, constants={"dividend_model": "other"})
