"""Quotes in many files and calibrations by the thousand: lakes, exact states gathered from them, fleets, engines."""

from __future__ import annotations

from strikeout.scale.engines import Engine as Engine
from strikeout.scale.engines import Here as Here
from strikeout.scale.engines import Processes as Processes
from strikeout.scale.engines import engine_named as engine_named
from strikeout.scale.exchange import OwnerState as OwnerState
from strikeout.scale.exchange import joint_state as joint_state
from strikeout.scale.exchange import read_states as read_states
from strikeout.scale.exchange import write_states as write_states
from strikeout.scale.fleet import Fit as Fit
from strikeout.scale.fleet import Fleet as Fleet
from strikeout.scale.fleet import calibrate_many as calibrate_many
from strikeout.scale.gather import At as At
from strikeout.scale.gather import Gathered as Gathered
from strikeout.scale.gather import Recount as Recount
from strikeout.scale.gather import gather as gather
from strikeout.scale.lake import Lake as Lake
from strikeout.scale.partition import Receipt as Receipt
from strikeout.scale.residue import KeptErased as KeptErased
from strikeout.scale.residue import LakeSearch as LakeSearch
from strikeout.scale.residue import erase_kept as erase_kept
from strikeout.scale.residue import search_lake as search_lake
from strikeout.scale.strike_out import FleetStrikeOut as FleetStrikeOut
from strikeout.scale.strike_out import StrikeOut as StrikeOut
from strikeout.scale.strike_out import forget_many as forget_many

__all__ = [
    "At",
    "Engine",
    "Fit",
    "Fleet",
    "FleetStrikeOut",
    "Gathered",
    "Here",
    "KeptErased",
    "Lake",
    "LakeSearch",
    "OwnerState",
    "Processes",
    "Receipt",
    "Recount",
    "StrikeOut",
    "calibrate_many",
    "engine_named",
    "erase_kept",
    "forget_many",
    "gather",
    "joint_state",
    "read_states",
    "search_lake",
    "write_states",
]
