from typing import Any

from numpy import bool_, complex128, float64, int32, int64, intp, uint64
from numpy.typing import NDArray

class HestonKept:
    def __init__(self) -> None: ...

def heston_rows(
    theta: NDArray[float64],
    expiries: NDArray[float64],
    offsets: NDArray[intp],
    k: NDArray[float64],
    t: NDArray[float64] | None,
    half: float,
    threads: int,
    kept: HestonKept | None = None,
) -> NDArray[float64]: ...

class HestonSums:
    def __init__(
        self,
        expiries: NDArray[float64],
        offsets: NDArray[intp],
        k: NDArray[float64],
        t: NDArray[float64] | None,
        half: float,
        scale: NDArray[float64],
        target: NDArray[float64],
        threads: int,
    ) -> None: ...
    def at(self, theta: NDArray[float64], out: NDArray[float64], kept: HestonKept | None = None) -> None: ...
    def descend(
        self,
        theta: list[float],
        kept: HestonKept | None,
        free: tuple[int, ...],
        walls: tuple[Any, ...],
        limits: tuple[float, float, float, int],
        known: tuple[Any, ...] | None,
    ) -> tuple[str, list[float], tuple[float, ...], list[tuple[Any, ...]], int, tuple[int, ...]]: ...

def heston_weighed(
    theta: NDArray[float64],
    expiries: NDArray[float64],
    offsets: NDArray[intp],
    k: NDArray[float64],
    quadratic: NDArray[float64],
    linear: NDArray[float64],
    centre: NDArray[float64],
    out: NDArray[float64],
) -> None: ...
def bates_rows(
    theta: NDArray[float64], expiries: NDArray[float64], offsets: NDArray[intp], k: NDArray[float64], threads: int
) -> NDArray[float64]: ...
def double_heston_rows(
    theta: NDArray[float64], expiries: NDArray[float64], offsets: NDArray[intp], k: NDArray[float64], threads: int
) -> NDArray[float64]: ...
def variance_gamma_rows(
    theta: NDArray[float64],
    expiries: NDArray[float64],
    offsets: NDArray[intp],
    k: NDArray[float64],
    coefficients: NDArray[float64],
    centre: float,
    threads: int,
) -> NDArray[float64]: ...
def line_rows(
    F: NDArray[complex128], h: float, image: float, low: float, high: float, k: NDArray[float64]
) -> NDArray[float64]: ...
def instructions() -> str: ...
def available_instructions() -> list[str]: ...
def use_instructions(name: str) -> None: ...
def normal_cdf(x: NDArray[float64], coefficients: NDArray[float64], centre: float, out: NDArray[float64]) -> None: ...
def normal_density(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def black_price(
    forward: NDArray[float64],
    strike: NDArray[float64],
    expiry: NDArray[float64],
    volatility: NDArray[float64],
    discount: NDArray[float64],
    is_call: NDArray[bool_],
    coefficients: NDArray[float64],
    centre: float,
    out: NDArray[float64],
) -> None: ...
def black_volatilities(
    price: NDArray[float64],
    forward: NDArray[float64],
    strike: NDArray[float64],
    expiry: NDArray[float64],
    discount: NDArray[float64],
    is_call: NDArray[bool_],
    coefficients: NDArray[float64],
    centre: float,
    out: NDArray[float64],
) -> None: ...
def smooth_curves(
    x: NDArray[float64], offsets: NDArray[intp], r: NDArray[float64], w: NDArray[float64], most: int
) -> tuple[float, int]: ...
def exact_change(
    state: NDArray[uint64], rows: NDArray[int64], pick: NDArray[int64] | None, subtract: bool
) -> NDArray[uint64]: ...
def exact_footprints(
    jacobian: NDArray[float64],
    residual: NDArray[float64],
    root_weight: NDArray[float64],
    exponents: NDArray[int32],
) -> tuple[NDArray[uint64], int, int]: ...
def exact_read(state: NDArray[uint64], exponents: NDArray[int32]) -> NDArray[float64]: ...
def exact_cells(
    cells: NDArray[float64],
    places: NDArray[float64],
    factors: NDArray[float64],
    along: int,
    across: int,
    basis_grid: int,
    factor_grid: int,
) -> tuple[NDArray[float64], NDArray[uint64], NDArray[int64]]: ...
def exact_groups(words: NDArray[uint64], starts: NDArray[int64]) -> NDArray[uint64]: ...
def exact_words(words: NDArray[uint64], exponent: int) -> NDArray[float64]: ...
def exact_merge(
    keys_a: NDArray[float64],
    sums_a: NDArray[uint64],
    counts_a: NDArray[int64],
    keys_b: NDArray[float64],
    sums_b: NDArray[uint64],
    counts_b: NDArray[int64],
    subtract: bool,
) -> tuple[NDArray[float64], NDArray[uint64], NDArray[int64]]: ...
def chebyshev_polynomials(x: NDArray[float64], count: int) -> NDArray[float64]: ...
def exact_downdate(
    state: NDArray[uint64], rows: NDArray[int64], pick: NDArray[int64] | None, exponents: NDArray[int32]
) -> tuple[bytes, bytes]: ...
def parity_lines(
    s: NDArray[intp],
    strike: NDArray[float64],
    is_call: NDArray[bool_],
    observed: NDArray[float64],
    spread: NDArray[float64],
    slices: NDArray[float64],
    rule: tuple[int, int, float, float, float],
) -> NDArray[float64]: ...
def sorted_rows(*columns: NDArray[float64]) -> NDArray[intp]: ...
def symmetric_solve(triangle: NDArray[float64], p: int) -> NDArray[float64]: ...
def symmetric_factor(A: list[list[float]], damping: float) -> tuple[list[float], list[list[float]]]: ...
def symmetric_forward(d: list[float], L: list[list[float]], b: list[float]) -> list[float]: ...
def symmetric_length(A: list[list[float]], b: list[float], damping: float) -> float: ...
def symmetric_inverse(A: list[list[float]]) -> list[list[float]]: ...
def judged(
    solved: NDArray[float64], limits: NDArray[float64], freedom: int, inflation: float, far: float
) -> tuple[list[float], list[float], bool, list[int], list[int]]: ...
def arrow_missed(
    H: NDArray[float64],
    S: NDArray[float64],
    T: NDArray[float64],
    d: NDArray[float64],
    held: NDArray[float64],
    noise: float,
    q: int,
    there: NDArray[float64],
) -> tuple[float, bool]: ...
def box_step(
    u: list[float],
    H: list[list[float]],
    G: list[float],
    damping: float,
    scale: list[float] | None,
    low: list[float],
    high: list[float],
    pairs: list[tuple[int, int]],
    factor: float,
    share: float,
    near: float,
) -> tuple[list[float], float]: ...
def exp(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def expm1(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def log(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def log1p(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def sin(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def cos(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def power(x: NDArray[float64], y: NDArray[float64], out: NDArray[float64]) -> None: ...
def atan2(y: NDArray[float64], x: NDArray[float64], out: NDArray[float64]) -> None: ...
def complex_exp(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def complex_expm1(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def complex_log(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def complex_sqrt(x: NDArray[float64], out: NDArray[float64]) -> None: ...

class ByteSearch:
    def __init__(self, blob: bytes, ends: NDArray[int64]) -> None: ...
    def find(self, block: bytes) -> tuple[NDArray[int64], NDArray[int64]]: ...

def dividend_values(
    numbers: list[float],
    steps: list[NDArray[float64]],
    options: list[NDArray[float64]],
    sign: float,
    out: NDArray[float64],
    threads: int,
) -> None: ...

class American:
    def __init__(
        self,
        levels: list[list[NDArray[float64]]],
        erfcx: NDArray[float64],
        centre: float,
        step: float,
        tail: float,
        settled: float,
    ) -> None: ...
    def prices(
        self,
        columns: list[NDArray[float64]],
        is_call: NDArray[bool_],
        with_vega: bool,
        out: NDArray[float64],
        threads: int,
    ) -> None: ...
    def volatilities(
        self,
        price: NDArray[float64],
        columns: list[NDArray[float64]],
        is_call: NDArray[bool_],
        out: NDArray[float64],
        threads: int,
    ) -> None: ...
