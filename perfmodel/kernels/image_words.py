"""Words say what an image or a sampler is: ``image:rgba:unorm8:WIDTH:HEIGHT``, ``sampler:linear:clamp``."""

from __future__ import annotations

from dataclasses import replace

from perfmodel.basics.errors import KernelError
from perfmodel.basics.image_sampling import ADDRESSING
from perfmodel.kernels.arguments import Image, Sampler
from perfmodel.opencl_c.types import Image as ImageType

CHANNELS = {"r": 1, "rg": 2, "rgba": 4}
NUMBERS = {
    **{name: (name, False) for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")},
    "unorm8": ("uint8", True),
    "unorm16": ("uint16", True),
    "snorm8": ("int8", True),
    "snorm16": ("int16", True),
}
"""Here each name of a channel's numbers has its meaning, as numpy's type and whether they are normalized."""
FLAGS = {
    "unnormalized": 0,
    "normalized": 1,
    "none": 0,
    "clamp_to_edge": 2,
    "clamp": 4,
    "repeat": 6,
    "mirrored_repeat": 8,
    "nearest": 0x10,
    "linear": 0x20,
}
"""Here each word of a sampler has its flag, as OpenCL C numbers it: coordinates, what lies outside, filters."""
_FILTERS = FLAGS["nearest"] | FLAGS["linear"]
AXES = ("WIDTH", "HEIGHT", "DEPTH")


def image_argument(name: str, type_: ImageType, said: object, is_output: bool) -> Image:
    """Returns the image that words say, such as ``image:rgba:float32:n:n``.

    Raises:
        KernelError: for what is not understood, or has another number of axes than the argument's type.
    """
    word, *parts = [part.strip() for part in str(said).split(":")]
    form = ":".join(["image", "|".join(CHANNELS), "DTYPE", *AXES[: type_.axes]])
    if word != "image" or len(parts) != 2 + type_.axes or parts[0] not in CHANNELS or parts[1] not in NUMBERS:
        raise KernelError(
            f"argument {name!r} is an {type_.name}, and said to be {said!r:.60}; write {form}, with DTYPE one of "
            f"{', '.join(NUMBERS)}"
        )
    return replace(_image(parts[0], parts[1], tuple(parts[2:])), name=name, is_output=is_output, form=type_.name)


def texture(what: str, said: str) -> Image:
    """Returns the image that words say of a texture or surface of CUDA, such as ``image:r:float32:n:n:linear``.

    Behind the axes stands how a texture is read; what is not said is unnormalized coordinates, the nearest pixel, and
    that of the edge outside.

    Args:
        what: the argument, for errors.

    Raises:
        KernelError: for what is not understood.
    """
    word, *parts = [part.strip() for part in said.split(":")]
    flags = sum(FLAGS[part] for part in {*parts[2:]} & FLAGS.keys())
    sizes = tuple(part for part in parts[2:] if part not in FLAGS)
    is_known = word == "image" and len(parts) > 1 and parts[0] in CHANNELS and parts[1] in NUMBERS
    if not is_known or not 1 <= len(sizes) <= len(AXES):
        form = ":".join(["image", "|".join(CHANNELS), "DTYPE", *AXES[:2]])
        raise KernelError(
            f"{what}={said:.60} is no image; write {form}, with DTYPE one of {', '.join(NUMBERS)}, and how it is read "
            f"behind it, of {', '.join(FLAGS)}"
        )
    found = _image(parts[0], parts[1], sizes)
    return replace(found, form="texture", flags=flags if flags & ADDRESSING else flags | FLAGS["clamp_to_edge"])


def _image(order: str, numbers: str, sizes: tuple[str, ...]) -> Image:
    """Returns an image without a name, by the words for its channels and their numbers."""
    channels, (dtype, is_normalized) = CHANNELS[order], NUMBERS[numbers]
    extent = " * ".join(f"({size})" for size in (*sizes, channels))
    return Image(name="", dtype=dtype, extent=extent, sizes=sizes, channels=channels, normalized=is_normalized)


def sampler_argument(name: str, said: object) -> Sampler:
    """Returns the sampler that words say, such as ``sampler:normalized:linear:repeat``.

    What is not said is unnormalized coordinates, the nearest pixel, and none outside.

    Raises:
        KernelError: for what is not understood.
    """
    word, *parts = [part.strip() for part in str(said).split(":")]
    if word != "sampler" or not set(parts) <= FLAGS.keys():
        raise KernelError(
            f"argument {name!r} is a sampler, and said to be {said!r:.60}; write what it is between colons, as in "
            f"sampler:normalized:linear:repeat, of {', '.join(FLAGS)}"
        )
    flags = sum(FLAGS[part] for part in set(parts))
    return Sampler(name, flags if flags & _FILTERS else flags | FLAGS["nearest"])
