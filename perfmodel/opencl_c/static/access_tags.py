"""Says by tags which accesses go another way than through the caches of global memory."""

from __future__ import annotations

from perfmodel.opencl_c import lowered as low

IMAGE, CONSTANT = frozenset(("image",)), frozenset(("constant",))
"""Tags of accesses that texture units and constant caches serve."""


def tags_of(access: low.Access, is_argument: bool, is_image: bool) -> frozenset[str]:
    """Returns the tags of an access; arguments in constant memory come through the caches of global memory."""
    if is_image:
        return IMAGE
    return CONSTANT if not is_argument and access.space == "constant" else frozenset()
