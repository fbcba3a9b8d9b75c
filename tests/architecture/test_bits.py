"""No function whose bits depend on the processor is called where a result is hashed, certified, or steers a search.

NumPy and the C library choose exp, log, sin, power and the like by the processor's instructions. BLAS, LAPACK and
einsum choose the order of a sum, and whether a product is rounded before it is added. ``kernels/elementary.py``,
``kernels/products.py`` and ``kernels/symmetric.py`` have what to call instead. ``x ** 2`` of a float is the C library's
pow, which is not always ``x * x``.

The syntax trees of the rooms are searched. It cannot be seen there whether ``abs`` or a product is of complex arrays:
``tests/laws/test_processors.py`` compares the bits themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.kernels.compiled import native

ROOMS = (
    "kernels",
    "quotes",
    "synthetic",
    "models",
    "statistics",
    "calibration",
    "assurance",
    "forgetting",
    "store",
    "scale",
    "book",
)
SOURCE = Path(__file__).resolve().parents[2] / "src" / "strikeout"
FILES = [
    *sorted(path for room in ROOMS for path in (SOURCE / room).rglob("*.py")),
    *(SOURCE / name for name in ("paper/heston.py", "paper/sets.py")),
]

LIBRARIES = ("numpy", "math", "cmath", "scipy", "statistics", "polars", "random")
TRANSCENDENTAL = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "logspace", "geomspace"),
    *("sin", "cos", "tan", "sinc", "arcsin", "arccos", "arctan", "arctan2", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "asinh", "acosh", "atanh", "phase", "polar", "angle"),
    *("pow", "power", "float_power", "cbrt", "hypot", "dist", "gamma", "lgamma", "erf", "erfc", "i0"),
}
SUMMED = {
    *("dot", "vdot", "inner", "matmul", "matvec", "vecmat", "vecdot", "tensordot", "einsum", "einsum_path", "sumprod"),
    *("convolve", "correlate", "cov", "corrcoef", "polyfit", "interp", "fft", "linalg"),
}
DRAWN = {
    *("standard_normal", "normal", "lognormal", "exponential", "standard_exponential", "standard_gamma", "beta"),
    *("poisson", "binomial", "multivariate_normal", "standard_t", "chisquare", "gauss", "normalvariate"),
}
FORBIDDEN = TRANSCENDENTAL | SUMMED | DRAWN
METHODS = TRANSCENDENTAL | DRAWN | {"dot"}  # of an array, a column of a frame, or a generator

# What may be called all the same: where, what, and why no result that is compared between processors depends on it.
TWIN = "computes only for kernel='numpy', whose name and whose certificates say so"
EXCEPTIONS: dict[str, tuple[str, str]] = {
    "kernels/elementary.py": ("exp expm1 log log1p sin cos arctan2 power", "without the compiled module alone"),
    "kernels/contours.py": ("asinh atan2 cos exp expm1 log sin **", TWIN),
    "kernels/taylor_cells.py": ("einsum exp exp2", TWIN),
    "kernels/heston_twin.py": ("cos exp", TWIN),
    "kernels/heston_cf.py": ("arctan2 cos exp log log1p sin", TWIN),
    "kernels/fourier_series.py": ("exp log log2", TWIN),
    "kernels/fourier_samples.py": ("** @ exp vecdot", TWIN),
    "paper/heston.py": (
        "** cos exp expm1 log sin",
        "the paper's scheme, as published: its certificates name the processor",
    ),
    "kernels/derivatives.py": (
        "arcsin arcsinh arctan arctanh cos cosh exp expm1 log log1p power sin sinh tan tanh",
        "derivatives of functions that users bring, which call NumPy themselves",
    ),
    "kernels/exact.py": ("dot", "of integers: exact in any order"),
    "kernels/chebyshev.py": ("@", "of integers below 2^53: exact in any order"),
    "kernels/fourier_trapezoid.py": (
        "** cos einsum exp expm1 geomspace log sin",
        "the twin of native/line.hpp, and characteristic functions that users bring: their certificates say so",
    ),
    "kernels/jump_cf.py": ("exp expm1", TWIN),
    "kernels/jump_split.py": ("exp expm1", TWIN),
    "assurance/perturbation.py": ("standard_normal", "noise that nobody is to draw again"),
    "synthetic/heston_quotes.py": ("standard_normal", "rounded to 2^-36 where a logarithm has a part in it"),
    "synthetic/sample_files.py": ("poisson", "traded volumes of a made-up file: whole numbers"),
}


def calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every use of something forbidden: its line and its name."""
    modules, ours = {"np": "numpy"}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {(each.asname or each.name).split(".")[0]: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {each.asname or each.name: each.name for each in node.names}
            if node.module.split(".")[0] in LIBRARIES:
                every = node.module in ("numpy.linalg", "numpy.fft")
                yield from ((node.lineno, name) for name in names.values() if every or name in FORBIDDEN)
            if node.module.split(".")[0] == "strikeout":
                ours |= set(names)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow) and not is_exact(node):
            yield node.lineno, "**"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "pow":
            yield node.lineno, "pow"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            owner = node.func.value
            if not (isinstance(owner, ast.Name) and (owner.id in ours or owner.id in modules)):
                yield node.lineno, node.func.attr
        elif isinstance(node, ast.Attribute):
            owner = node.value
            if isinstance(owner, ast.Name) and modules.get(owner.id, "").split(".")[0] in LIBRARIES:
                if node.attr in FORBIDDEN - {"linalg", "fft"}:
                    yield node.lineno, node.attr
            elif isinstance(owner, ast.Attribute) and owner.attr in ("linalg", "fft") and node.attr != "LinAlgError":
                yield node.lineno, f"{owner.attr}.{node.attr}"


def is_exact(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether a power is one of whole numbers, or of two: those have one answer everywhere."""
    if isinstance(node, ast.AugAssign):
        return False
    base, exponent = node.left, node.right
    if isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub):
        exponent = exponent.operand
    whole = isinstance(exponent, ast.Constant) and isinstance(exponent.value, int)
    constant = isinstance(exponent, ast.Name) and exponent.id.isupper()
    if not isinstance(base, ast.Constant):
        return False
    return (base.value == 2 and (whole or constant)) or (isinstance(base.value, int) and whole)


def found_in(path: Path) -> dict[str, list[int]]:
    """Lines by what is called there."""
    out: dict[str, list[int]] = {}
    for line, name in calls(ast.parse(path.read_text(encoding="utf-8"))):
        out.setdefault(name, []).append(line)
    return out


def test_only_the_exceptions_call_what_depends_on_the_processor():
    found = {path.relative_to(SOURCE).as_posix(): found_in(path) for path in FILES}
    assert len(found) > 200
    excepted = {name: set(calls.split()) for name, (calls, _) in EXCEPTIONS.items()}
    bad = [
        f"{file}:{lines[0]} {name}"
        for file, here in found.items()
        for name, lines in here.items()
        if name not in excepted.get(file, ())
    ]
    assert bad == []
    unneeded = {(file, name) for file, names in excepted.items() for name in names if name not in found[file]}
    assert unneeded == set()


def test_exceptions_are_of_files_that_are_there_and_give_a_reason():
    assert {SOURCE / name for name in EXCEPTIONS} <= set(FILES)
    assert all(reason for _, reason in EXCEPTIONS.values())


GUARDED = ["kernels/fourier_trapezoid.py", *(name for name, (_, reason) in EXCEPTIONS.items() if reason == TWIN)]


@pytest.mark.skipif(native() is None, reason="the twin is all there is without the compiled kernel")
@pytest.mark.parametrize("name", GUARDED)
def test_the_compiled_models_do_without_the_twin(monkeypatch, name):
    class Guard:
        def __getattr__(self, function):
            raise AssertionError(f"{name} called numpy.{function}")

    module = import_module("strikeout." + name.removesuffix(".py").replace("/", "."))
    quotes = so.synthetic.random_quotes(40, maturities=40, seed=1, noise=1e-3)
    monkeypatch.setattr(module, "np", Guard())
    for model in (so.Heston("native", "shared"), so.Heston("native", "scattered")):
        found = so.calibrate(quotes, model)
        assert so.forget(found, ids=quotes.ids[:2]).certificate.to_bytes()
    assert so.calibrate(so.states.moments_of(quotes), so.Heston("native")).converged
    for model in (so.Bates(), so.DoubleHeston(), so.VarianceGamma()):
        for start in model.parameters.starts:
            assert np.isfinite(model.linearize(start, quotes.contracts)[1]).all()
    if name in (
        "kernels/heston_twin.py",
        "kernels/contours.py",
        "kernels/taylor_cells.py",
    ):  # a control
        with pytest.raises(AssertionError, match="called numpy"):
            so.Heston("numpy").price(so.Heston().parameters.starts[0], quotes.contracts)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import numpy as np\ny = np.exp(x)", "exp"),
        ("import numpy\ny = numpy.log(x)", "log"),
        ("from math import log as ln", "log"),
        ("import math\nf = math.erf", "erf"),
        ("import cmath\ny = cmath.sqrt(x) + cmath.exp(x)", "exp"),
        ("y = x ** 2", "**"),
        ("y = x ** 0.5", "**"),
        ("x **= 2", "**"),
        ("y = 10.0 ** -8", "**"),
        ("y = pow(x, 2)", "pow"),
        ("y = A @ B", "@"),
        ("A @= B", "@"),
        ("import numpy as np\ny = np.einsum('ij,j', A, x)", "einsum"),
        ("import numpy as np\ny = np.linalg.eigvalsh(A)", "linalg.eigvalsh"),
        ("from numpy.linalg import solve", "solve"),
        ("from numpy import linalg", "linalg"),
        ("y = A.dot(x)", "dot"),
        ("y = frame['a'].log()", "log"),
        ("import polars as pl\ny = pl.col('a').exp()", "exp"),
        ("y = draw.standard_normal(3)", "standard_normal"),
    ],
)
def test_what_depends_on_the_processor_is_found(source, name):
    assert name in [found for _, found in calls(ast.parse(source))]


@pytest.mark.parametrize(
    "source",
    [
        "from strikeout.kernels import elementary\ny = elementary.exp(x)",
        "from strikeout.kernels.elementary import log\ny = log(x)",
        "import numpy as np\ny = np.sqrt(np.add.reduce(x * x))",
        "import numpy as np\ntry: f()\nexcept np.linalg.LinAlgError: pass",
        "SMALL = 2.0**-60\nLARGE = 2**53 + 10**6\nUNIT = 2.0**GRID",
        "y = f(**options, beta=model.beta)",
    ],
)
def test_what_does_not_is_let_through(source):
    assert list(calls(ast.parse(source))) == []
