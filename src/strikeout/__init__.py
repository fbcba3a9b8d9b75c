"""strikeout strikes quotes out of calibrated option models, as if they had never been seen.

This file lists every public name. Names and modules load when they are first used, so importing strikeout is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strikeout import american as american
    from strikeout import errors as errors
    from strikeout import paper as paper
    from strikeout import results as results
    from strikeout import scale as scale
    from strikeout import states as states
    from strikeout import synthetic as synthetic
    from strikeout.assurance.comparison import compare_models as compare_models
    from strikeout.assurance.influence import influence as influence
    from strikeout.assurance.outliers import outliers as outliers
    from strikeout.assurance.robustness import robustness as robustness
    from strikeout.book import Book as Book
    from strikeout.calibration.calibrate import calibrate as calibrate
    from strikeout.forgetting.forget import forget as forget
    from strikeout.forgetting.preview import preview as preview
    from strikeout.forgetting.update import learn as learn
    from strikeout.forgetting.update import restore as restore
    from strikeout.forgetting.update import roll as roll
    from strikeout.models.bates import Bates as Bates
    from strikeout.models.black_scholes import BlackScholes as BlackScholes
    from strikeout.models.characteristic import CharacteristicModel as CharacteristicModel
    from strikeout.models.check import check_model as check_model
    from strikeout.models.custom import custom_model as custom_model
    from strikeout.models.double_heston import DoubleHeston as DoubleHeston
    from strikeout.models.heston import Heston as Heston
    from strikeout.models.model import Model as Model
    from strikeout.models.model import ParameterSpace as ParameterSpace
    from strikeout.models.sabr import SABR as SABR
    from strikeout.models.ssvi import SSVI as SSVI
    from strikeout.models.svi import SVI as SVI
    from strikeout.models.variance_gamma import VarianceGamma as VarianceGamma
    from strikeout.plots.draw import draw as draw
    from strikeout.quotes.clock import Clock as Clock
    from strikeout.quotes.contracts import Contracts as Contracts
    from strikeout.quotes.quotes import Quotes as Quotes
    from strikeout.quotes.reading import inspect_quotes as inspect_quotes
    from strikeout.quotes.reading import read_quotes as read_quotes
    from strikeout.quotes.writing import write_quotes as write_quotes
    from strikeout.store.signing import verify as verify

__version__ = "0.1.0"

_HOMES = {
    "Bates": "strikeout.models.bates",
    "BlackScholes": "strikeout.models.black_scholes",
    "Book": "strikeout.book",
    "CharacteristicModel": "strikeout.models.characteristic",
    "Clock": "strikeout.quotes.clock",
    "Contracts": "strikeout.quotes.contracts",
    "DoubleHeston": "strikeout.models.double_heston",
    "Heston": "strikeout.models.heston",
    "Model": "strikeout.models.model",
    "ParameterSpace": "strikeout.models.model",
    "Quotes": "strikeout.quotes.quotes",
    "SABR": "strikeout.models.sabr",
    "SSVI": "strikeout.models.ssvi",
    "SVI": "strikeout.models.svi",
    "VarianceGamma": "strikeout.models.variance_gamma",
    "calibrate": "strikeout.calibration.calibrate",
    "check_model": "strikeout.models.check",
    "compare_models": "strikeout.assurance.comparison",
    "custom_model": "strikeout.models.custom",
    "draw": "strikeout.plots.draw",
    "forget": "strikeout.forgetting.forget",
    "influence": "strikeout.assurance.influence",
    "inspect_quotes": "strikeout.quotes.reading",
    "learn": "strikeout.forgetting.update",
    "outliers": "strikeout.assurance.outliers",
    "preview": "strikeout.forgetting.preview",
    "read_quotes": "strikeout.quotes.reading",
    "restore": "strikeout.forgetting.update",
    "robustness": "strikeout.assurance.robustness",
    "roll": "strikeout.forgetting.update",
    "verify": "strikeout.store.signing",
    "write_quotes": "strikeout.quotes.writing",
}

_MODULES = ("american", "errors", "paper", "results", "scale", "states", "synthetic")

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"strikeout.{name}")
    if name not in _HOMES:
        raise AttributeError(f"strikeout has no name {name!r}; the public names are {', '.join(sorted(__all__))}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
