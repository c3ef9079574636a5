"""Numbers in a model string that are facts of a device, ``${l1_bytes=32768}``, by which others can take their place."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfmodel.basics.errors import ModelStringError, nearest

_PLACE = re.compile(r"\$\{([a-z]\w*)=(\d+)\}")


def plain(written: str) -> str:
    """Returns a model string with each number alone in its place.

    Raises:
        ModelStringError: for a ``$`` that begins no such number.
    """
    found = _PLACE.sub(lambda place: place[2], written)
    if "$" in found:
        message = "'$' begins no number of a device: write its fact and the number, as in ${l1_bytes=32768}"
        raise ModelStringError(message, found, found.index("$"))
    return found


def with_numbers(written: str, facts: Mapping[str, float]) -> str:
    """Returns the model string with another device's numbers.

    Raises:
        ModelStringError: for a fact that is not among them, or that is no whole number.
    """

    def filled(place: re.Match[str]) -> str:
        name = place[1]
        if name not in facts:
            message = f"the device has no fact {name!r}{nearest(name, facts) or '; it has ' + ', '.join(facts)}"
        elif not float(facts[name]).is_integer():
            message = f"fact {name!r} is {facts[name]!r}; give a whole number"
        else:
            return f"${{{name}={int(facts[name])}}}"
        raise ModelStringError(message, written, place.start())

    return _PLACE.sub(filled, written)
