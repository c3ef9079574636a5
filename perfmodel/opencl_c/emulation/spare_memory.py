"""Memory that an emulation no longer needs is used again here: pages that nobody has touched yet cost small kernels
more than all that they do with them."""

from __future__ import annotations

import sys
from threading import Lock

from perfmodel.basics.lazy_bytes import lazy_bytes
from perfmodel.opencl_c.emulation.footprints import Bytes

_MOST_BYTES = 1 << 26
_MOST_PIECES = 8
"""So much memory is kept, in so many pieces."""
_spare: list[Bytes] = []
_asking = Lock()


def used_again(size: int) -> Bytes:
    """Returns so many bytes that hold anything, of which only what is touched takes memory."""
    with _asking:
        for position in range(len(_spare)):
            # Views refer to it too, so that what anybody can still look at is not given away.
            if len(_spare[position]) == size and _references(_spare, position) == _UNUSED:
                return _spare[position]
        memory = lazy_bytes(size)
        if size <= _MOST_BYTES:
            _spare.append(memory)
            while len(_spare) > _MOST_PIECES or sum(map(len, _spare)) > _MOST_BYTES:
                del _spare[0]
        return memory


def _references(pieces: list[Bytes], position: int) -> int:
    return sys.getrefcount(pieces[position])


_UNUSED = _references([lazy_bytes(1)], 0)
"""So many references has a piece that only its list knows."""
