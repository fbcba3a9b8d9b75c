"""The models that come along, by the names people type."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from strikeout.errors import UsageError

if TYPE_CHECKING:
    from strikeout.models.model import Model

# Name -> module and class. Imported when asked for: the command line shows the names without importing a model.
HOMES = {
    "heston": ("strikeout.models.heston", "Heston"),
    "bates": ("strikeout.models.bates", "Bates"),
    "double-heston": ("strikeout.models.double_heston", "DoubleHeston"),
    "variance-gamma": ("strikeout.models.variance_gamma", "VarianceGamma"),
    "black-scholes": ("strikeout.models.black_scholes", "BlackScholes"),
    "sabr": ("strikeout.models.sabr", "SABR"),
    "svi": ("strikeout.models.svi", "SVI"),
    "ssvi": ("strikeout.models.ssvi", "SSVI"),
}
MODELS = tuple(HOMES)


def model_named(name: str) -> Model:
    """A model as it comes, nothing chosen.

    Raises:
        UsageError: no model has this name.

    >>> model_named("heston").parameters.names[0]
    'mean_reversion'
    """
    if name not in HOMES:
        raise UsageError(f"No model is called {name!r}. There are {', '.join(MODELS)}.", model=name)
    module, made = HOMES[name]
    model: Model = getattr(import_module(module), made)()
    return model
