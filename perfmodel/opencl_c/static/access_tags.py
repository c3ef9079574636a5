"""Says by tags which accesses go another way than through the caches of global memory."""

from __future__ import annotations

from perfmodel.opencl_c import lowered as low

IMAGE, FILTERED, CONSTANT = frozenset(("image",)), frozenset(("filtered",)), frozenset(("constant",))
"""Tags of accesses that texture units and constant caches serve, and of those to images that mix pixels."""


def tags_of(access: low.Access, is_argument: bool, is_image: bool) -> frozenset[str]:
    """Returns the tags of an access; arguments in constant memory come through the caches of global memory."""
    if is_image:
        return IMAGE | FILTERED if access.is_filtered else IMAGE
    return CONSTANT if not is_argument and access.space == "constant" else frozenset()
