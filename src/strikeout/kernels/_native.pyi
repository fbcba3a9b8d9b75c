from numpy import float64, intp
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
) -> NDArray[float64]: ...
def instructions() -> str: ...
def use_instructions(name: str) -> None: ...
