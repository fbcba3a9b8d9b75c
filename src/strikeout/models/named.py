"""The built-in models by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from strikeout.errors import ParameterError, UsageError
from strikeout.text import did_you_mean

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
# Names for a form of a model that is not the one it comes in.
CHOSEN: dict[str, tuple[str, dict[str, Any]]] = {
    "term-structure": ("black-scholes", {"expiries": "quoted"}),
    "natural-svi": ("svi", {"form": "natural"}),
}
MODELS = tuple(dict.fromkeys((*HOMES, *CHOSEN)))
# Ways to make a model that its name alone brings back; of all others, as it comes.
FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    **dict.fromkeys(("bates", "double-heston", "variance-gamma"), ({}, {"kernel": "numpy"})),
    "black-scholes": ({}, {"expiries": "quoted"}),
    "sabr": tuple(
        {"beta": beta, "volatility": volatility}
        for volatility in ("lognormal", "normal")
        for beta in (1.0, 0.5, 0.0, None)
    ),
    "svi": ({"form": "raw"}, {"form": "natural"}),
}


# Symbols of textbooks for parameters that have a longer name here.
ALIASES = {
    "kappa": "mean_reversion",
    "theta": "long_variance",
    "sigma": "vol_of_vol",
    "xi": "vol_of_vol",
    "rho": "correlation",
    "v0": "initial_variance",
}


def with_full_names(values: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Return the same values, symbols of textbooks replaced by the names of this model's parameters.

    A symbol that is itself a parameter of the model, such as ``rho`` of SVI, stays.

    >>> with_full_names({"rho": -0.7, "v0": 0.04}, model_named("heston"))
    {'correlation': -0.7, 'initial_variance': 0.04}
    """
    names = model.parameters.names
    found: dict[str, Any] = {}
    for name, value in values.items():
        full = ALIASES[name] if name not in names and ALIASES.get(name) in names else name
        if full in found:
            raise ParameterError(f"{name} is another name of {full}, which is given too. Leave one out.", name=full)
        found[full] = value
    return found


def model_named(name: str) -> Model:
    """Return the model of this name with its default options.

    >>> model_named("heston").parameters.names[0]
    'mean_reversion'
    """
    kind, how = CHOSEN.get(name, (name, {}))
    model: Model = _class(kind)(**how)
    return model


def described(model: Model) -> dict[str, Any] | None:
    """Return the name of a built-in model and how it was made, as plain values that ``remade`` takes; else
    None.

    Numbers are written as ``float.hex`` does, so that not a bit is lost.

    >>> described(model_named("svi"))
    {'name': 'svi', 'form': 'raw', 'expiries': 'quoted'}
    """
    home = (type(model).__module__, type(model).__name__)
    name = next((name for name, at in HOMES.items() if at == home), None)
    if name is None:
        return None
    return {"name": name, **{field.name: _plain(getattr(model, field.name)) for field in fields(model)}}  # type: ignore[arg-type]


def remade(plain: Mapping[str, Any]) -> Model:
    """Return the model that ``described`` described."""
    made: Model = model_named(plain["name"])
    how = {name: _value(value) for name, value in plain.items() if name != "name"}
    return made if not how else _class(plain["name"])(**how)


def title_of(name: str) -> str:
    """Return the name of a model as it begins a sentence.

    >>> title_of("sabr-normal/hagan-1"), title_of("double-heston/native-3"), title_of("mine/function")
    ('SABR', 'Double Heston', 'Mine')
    """
    kind = name.partition("/")[0].removesuffix("-normal").removesuffix("-lognormal")
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", HOMES[kind][1]) if kind in HOMES else kind.capitalize()


def recognised(name: str, contracts: Any) -> Model | None:
    """Return a built-in model with its defaults whose ``name`` in the form that suits these contracts is this; or
    None."""
    kind = name.partition("/")[0]
    for key in HOMES:
        if not kind.startswith(key):
            continue
        for how in FORMS.get(key, ({},)):
            model: Model = _class(key)(**how)
            suited = getattr(model, "suited", None)
            if (model if suited is None else suited(contracts)).name == name:
                return model
    return None


def _class(name: str) -> Any:
    if name not in HOMES:
        raise UsageError(
            f"No model is called {name!r}.{did_you_mean(name, MODELS)} There are {', '.join(MODELS)}.", model=name
        )
    module, made = HOMES[name]
    return getattr(import_module(module), made)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value.hex()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _value(plain: Any) -> Any:
    if isinstance(plain, str) and plain.startswith("0x"):
        return float.fromhex(plain)
    return tuple(_value(each) for each in plain) if isinstance(plain, list) else plain
