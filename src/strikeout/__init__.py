"""strikeout strikes quotes out of calibrated option models, as if they had never been seen.

This file is the whole public surface. Names are fetched on first use, so importing it stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from strikeout.errors import StrikeoutError

if TYPE_CHECKING:
    from strikeout.assurance.certificate import Certificate as Certificate
    from strikeout.assurance.comparison import ModelComparison as ModelComparison
    from strikeout.assurance.comparison import compare_models as compare_models
    from strikeout.assurance.influence import Influence as Influence
    from strikeout.assurance.influence import influence as influence
    from strikeout.assurance.verification import Verification as Verification
    from strikeout.book import Book as Book
    from strikeout.calibration.calibrate import calibrate as calibrate
    from strikeout.calibration.calibration import Calibration as Calibration
    from strikeout.calibration.interpolation import interpolation_error as interpolation_error
    from strikeout.calibration.panel_calibration import PanelCalibration as PanelCalibration
    from strikeout.calibration.resolution import interpolation_bound as interpolation_bound
    from strikeout.calibration.termination import Termination as Termination
    from strikeout.forgetting.forget import forget as forget
    from strikeout.forgetting.forgetting import Forgetting as Forgetting
    from strikeout.forgetting.panel_forgetting import PanelForgetting as PanelForgetting
    from strikeout.forgetting.preview import Preview as Preview
    from strikeout.forgetting.preview import preview as preview
    from strikeout.forgetting.rolling import learn as learn
    from strikeout.forgetting.rolling import restore as restore
    from strikeout.forgetting.rolling import roll as roll
    from strikeout.models.bates import Bates as Bates
    from strikeout.models.black_scholes import BlackScholes as BlackScholes
    from strikeout.models.characteristic import CharacteristicModel as CharacteristicModel
    from strikeout.models.check import ModelCheck as ModelCheck
    from strikeout.models.check import check_model as check_model
    from strikeout.models.custom import custom_model as custom_model
    from strikeout.models.double_heston import DoubleHeston as DoubleHeston
    from strikeout.models.heston import Heston as Heston
    from strikeout.models.model import Model as Model
    from strikeout.models.model import ParameterSpace as ParameterSpace
    from strikeout.models.paper_heston import PaperHeston as PaperHeston
    from strikeout.models.sabr import SABR as SABR
    from strikeout.models.ssvi import SSVI as SSVI
    from strikeout.models.svi import SVI as SVI
    from strikeout.models.variance_gamma import VarianceGamma as VarianceGamma
    from strikeout.quotes.clock import Clock as Clock
    from strikeout.quotes.contracts import Contracts as Contracts
    from strikeout.quotes.quotes import Quotes as Quotes
    from strikeout.quotes.reading import inspect_quotes as inspect_quotes
    from strikeout.quotes.reading import read_quotes as read_quotes
    from strikeout.quotes.samples import write_sample as write_sample
    from strikeout.quotes.synthetic import paper_quotes as paper_quotes
    from strikeout.quotes.synthetic import random_quotes as random_quotes
    from strikeout.quotes.synthetic_panel import panel_quotes as panel_quotes
    from strikeout.quotes.writing import write_quotes as write_quotes
    from strikeout.statistics.basis import Basis as Basis
    from strikeout.statistics.footprinting import footprints_of as footprints_of
    from strikeout.statistics.moments import Moments as Moments
    from strikeout.statistics.moments import moments_of as moments_of
    from strikeout.statistics.normal_equations import NormalEquations as NormalEquations
    from strikeout.statistics.shards import shard as shard
    from strikeout.statistics.shards import shard_states as shard_states
    from strikeout.statistics.system import System as System
    from strikeout.store.signing import verify as verify

__version__ = "0.1.0"

_HOMES = {
    "Basis": "strikeout.statistics.basis",
    "Bates": "strikeout.models.bates",
    "BlackScholes": "strikeout.models.black_scholes",
    "Book": "strikeout.book",
    "Calibration": "strikeout.calibration.calibration",
    "Certificate": "strikeout.assurance.certificate",
    "CharacteristicModel": "strikeout.models.characteristic",
    "Clock": "strikeout.quotes.clock",
    "Contracts": "strikeout.quotes.contracts",
    "DoubleHeston": "strikeout.models.double_heston",
    "Forgetting": "strikeout.forgetting.forgetting",
    "Heston": "strikeout.models.heston",
    "Influence": "strikeout.assurance.influence",
    "Model": "strikeout.models.model",
    "ModelCheck": "strikeout.models.check",
    "ModelComparison": "strikeout.assurance.comparison",
    "Moments": "strikeout.statistics.moments",
    "NormalEquations": "strikeout.statistics.normal_equations",
    "PanelCalibration": "strikeout.calibration.panel_calibration",
    "PanelForgetting": "strikeout.forgetting.panel_forgetting",
    "PaperHeston": "strikeout.models.paper_heston",
    "ParameterSpace": "strikeout.models.model",
    "Preview": "strikeout.forgetting.preview",
    "Quotes": "strikeout.quotes.quotes",
    "SABR": "strikeout.models.sabr",
    "SSVI": "strikeout.models.ssvi",
    "SVI": "strikeout.models.svi",
    "System": "strikeout.statistics.system",
    "Termination": "strikeout.calibration.termination",
    "VarianceGamma": "strikeout.models.variance_gamma",
    "Verification": "strikeout.assurance.verification",
    "calibrate": "strikeout.calibration.calibrate",
    "check_model": "strikeout.models.check",
    "compare_models": "strikeout.assurance.comparison",
    "custom_model": "strikeout.models.custom",
    "footprints_of": "strikeout.statistics.footprinting",
    "forget": "strikeout.forgetting.forget",
    "influence": "strikeout.assurance.influence",
    "inspect_quotes": "strikeout.quotes.reading",
    "interpolation_bound": "strikeout.calibration.resolution",
    "interpolation_error": "strikeout.calibration.interpolation",
    "learn": "strikeout.forgetting.rolling",
    "moments_of": "strikeout.statistics.moments",
    "panel_quotes": "strikeout.quotes.synthetic_panel",
    "paper_quotes": "strikeout.quotes.synthetic",
    "preview": "strikeout.forgetting.preview",
    "random_quotes": "strikeout.quotes.synthetic",
    "read_quotes": "strikeout.quotes.reading",
    "restore": "strikeout.forgetting.rolling",
    "roll": "strikeout.forgetting.rolling",
    "shard": "strikeout.statistics.shards",
    "shard_states": "strikeout.statistics.shards",
    "verify": "strikeout.store.signing",
    "write_quotes": "strikeout.quotes.writing",
    "write_sample": "strikeout.quotes.samples",
}

__all__ = ["StrikeoutError", "__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"strikeout has no name {name!r}; the public names are {', '.join(sorted(_HOMES))}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
