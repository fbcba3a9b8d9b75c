"""Exact states of quotes: footprints, normal equations, moments and shards, which are added and subtracted."""

from strikeout.calibration.from_moments import interpolation_bound as interpolation_bound
from strikeout.calibration.from_moments import interpolation_error as interpolation_error
from strikeout.statistics.footprints import Footprints as Footprints
from strikeout.statistics.linearize import footprints_of as footprints_of
from strikeout.statistics.moments import Basis as Basis
from strikeout.statistics.moments import Moments as Moments
from strikeout.statistics.moments import moments_of as moments_of
from strikeout.statistics.normal_equations import NormalEquations as NormalEquations
from strikeout.statistics.shards import Shards as Shards
from strikeout.statistics.shards import shard as shard
from strikeout.statistics.shards import shard_states as shard_states
from strikeout.statistics.system import System as System

__all__ = [
    "Basis",
    "Footprints",
    "Moments",
    "NormalEquations",
    "Shards",
    "System",
    "footprints_of",
    "interpolation_bound",
    "interpolation_error",
    "moments_of",
    "shard",
    "shard_states",
]
