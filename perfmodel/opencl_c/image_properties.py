"""Says of images what ``get_image_width`` and its like do."""

from __future__ import annotations

from perfmodel.basics.image_sampling import Pixels
from perfmodel.opencl_c.types import Image

_ORDERS = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}
CHANNELS = {
    ("i1", False): 0x10D7,
    ("i2", False): 0x10D8,
    ("i4", False): 0x10D9,
    ("u1", False): 0x10DA,
    ("u2", False): 0x10DB,
    ("u4", False): 0x10DC,
    ("i1", True): 0x10D0,
    ("i2", True): 0x10D1,
    ("u1", True): 0x10D2,
    ("u2", True): 0x10D3,
    ("f2", False): 0x10DD,
    ("f4", False): 0x10DE,
}
"""OpenCL's numbers for the types of channels, by numpy's code and whether they are normalized."""


def image_property(pixels: Pixels, type_: Image, function: str) -> tuple[int, ...]:
    """Returns the number that a function says of an image, or the numbers of a vector."""
    width, *others = pixels.sizes
    height, depth = (*others, 1, 1)[:2]
    match function:
        case "get_image_width":
            return (width,)
        case "get_image_height":
            return (height,)
        case "get_image_depth":
            return (depth,)
        case "get_image_array_size":
            return (pixels.sizes[-1],)
        case "get_image_dim":
            return (width, height) if type_.axes - type_.is_array == 2 else (width, height, depth, 0)
        case "get_image_channel_order":
            return (_ORDERS[pixels.channels],)
    return (CHANNELS[pixels.dtype.str[1:], pixels.is_normalized],)
