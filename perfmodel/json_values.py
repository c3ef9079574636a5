"""Values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def finite(data: Any) -> Any:
    """The same with None for what JSON has no numbers for."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [finite(value) for value in data]
    return data
