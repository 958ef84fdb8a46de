"""The kinds of numbers that strategies are written in. Not said is absent: zero is a legal wish."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, UnsetType

from j10ce.model.bounds import MOST_ITEMS

Plain = dict[str, Any]  # as JSON has it

Percent = Annotated[int, Meta(ge=0, le=100)] | UnsetType
NotNegative = Annotated[int, Meta(ge=0, le=2**53)] | UnsetType
AtLeastOne = Annotated[int, Meta(ge=1, le=2**31)] | UnsetType
Switch = Annotated[int, Meta(ge=0, le=1)] | UnsetType
Flag = bool | UnsetType
Ratio = Annotated[float, Meta(ge=1, le=5)] | UnsetType
Map = Annotated[dict[str, Any], Meta(max_length=MOST_ITEMS)]
Class = Literal["SYSTEM", "LSE", "LSR", "LS", "BE"]
Priority = Literal["koord-prod", "koord-mid", "koord-batch", "koord-free"]

LEAST_RATIO: Final = 1.0
MOST_RATIO: Final = 5.0
