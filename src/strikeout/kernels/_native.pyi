from numpy import float64, int32, int64, intp, uint64
from numpy.typing import NDArray

def heston_rows(
    theta: NDArray[float64],
    expiries: NDArray[float64],
    offsets: NDArray[intp],
    k: NDArray[float64],
    t: NDArray[float64] | None,
    half: float,
    threads: int,
) -> NDArray[float64]: ...
def heston_sums(
    theta: NDArray[float64],
    expiries: NDArray[float64],
    offsets: NDArray[intp],
    k: NDArray[float64],
    t: NDArray[float64] | None,
    half: float,
    scale: NDArray[float64],
    target: NDArray[float64],
    threads: int,
    out: NDArray[float64],
) -> None: ...
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
def instructions() -> str: ...
def use_instructions(name: str) -> None: ...
def exact_change(
    state: NDArray[uint64], rows: NDArray[int64], pick: NDArray[int64] | None, subtract: bool
) -> NDArray[uint64]: ...
def exact_read(state: NDArray[uint64], exponents: NDArray[int32]) -> NDArray[float64]: ...
def exact_weighted(
    basis: NDArray[float64], factors: NDArray[float64], starts: NDArray[int64], basis_grid: int, factor_grid: int
) -> NDArray[uint64]: ...
def exact_downdate(
    state: NDArray[uint64], rows: NDArray[int64], pick: NDArray[int64] | None, exponents: NDArray[int32]
) -> tuple[bytes, bytes]: ...
def symmetric_solve(triangle: NDArray[float64], p: int) -> NDArray[float64]: ...
def symmetric_factor(A: list[list[float]], damping: float) -> tuple[list[float], list[list[float]]]: ...
def symmetric_forward(d: list[float], L: list[list[float]], b: list[float]) -> list[float]: ...
def symmetric_length(A: list[list[float]], b: list[float], damping: float) -> float: ...
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
