"""Device memory for a kernel's images, samplers of them, and copies between it and the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfmodel.device.drivers import opencl

_TYPES = {
    "int8": "SIGNED_INT8",
    "int16": "SIGNED_INT16",
    "int32": "SIGNED_INT32",
    "uint8": "UNSIGNED_INT8",
    "uint16": "UNSIGNED_INT16",
    "uint32": "UNSIGNED_INT32",
    "float16": "HALF_FLOAT",
    "float32": "FLOAT",
}
_NORMALIZED = {"int8": "SNORM_INT8", "int16": "SNORM_INT16", "uint8": "UNORM_INT8", "uint16": "UNORM_INT16"}
_ORDERS = {1: "R", 2: "RG", 4: "RGBA"}
_ADDRESSING, _LINEAR = 0xE, 0x20
_MODES = ("NONE", "CLAMP_TO_EDGE", "CLAMP", "REPEAT", "MIRRORED_REPEAT")
_FORMS = {
    "image1d_t": "IMAGE1D",
    "image1d_buffer_t": "IMAGE1D_BUFFER",
    "image1d_array_t": "IMAGE1D_ARRAY",
    "image2d_t": "IMAGE2D",
    "image2d_array_t": "IMAGE2D_ARRAY",
    "image3d_t": "IMAGE3D",
}


def image_of(
    context: Any, form: str, sizes: Sequence[int], channels: int, dtype: str, is_normalized: bool, n_bytes: int
) -> Any:
    """Returns a new image, its contents undefined.

    Args:
        form: its type in OpenCL C, such as ``image2d_t``.
        sizes: of its axes, the width first.
        n_bytes: of all pixels.
    """
    cl = opencl()
    order = getattr(cl.channel_order, _ORDERS[channels])
    channel = getattr(cl.channel_type, (_NORMALIZED if is_normalized else _TYPES)[dtype])
    described = cl.ImageDescriptor()
    described.image_type = getattr(cl.mem_object_type, _FORMS[form])
    is_array = form.endswith("_array_t")
    axes = tuple(sizes[:-1]) if is_array else tuple(sizes)
    described.shape = (*axes, *(0,) * (3 - len(axes)))
    described.array_size = sizes[-1] if is_array else 0
    described.pitches, described.num_mip_levels, described.num_samples = (0, 0), 0, 0
    if form == "image1d_buffer_t":
        below = cl.Buffer(context, cl.mem_flags.READ_WRITE, n_bytes)  # held, as a descriptor doesn't
        described.buffer = below
    return cl.Image(context, cl.mem_flags.READ_WRITE, cl.ImageFormat(order, channel), desc=described)


def sampler_of(context: Any, flags: int) -> Any:
    """Returns a new sampler, of flags as OpenCL C numbers them."""
    cl = opencl()
    addressing = getattr(cl.addressing_mode, _MODES[(flags & _ADDRESSING) >> 1])
    filtering = cl.filter_mode.LINEAR if flags & _LINEAR else cl.filter_mode.NEAREST
    return cl.Sampler(context, bool(flags & 1), addressing, filtering)


def copy(queue: Any, target: Any, source: Any) -> None:
    """Copies between memory of the device, a buffer or an image, and an array of the host, and waits for it."""
    cl = opencl()
    image = next((each for each in (target, source) if isinstance(each, cl.Image)), None)
    if image is None:
        cl.enqueue_copy(queue, target, source, is_blocking=True)
    elif cl.mem_object_type.to_string(image.type).startswith("IMAGE1D"):
        _copy_rows(queue, image, source if image is target else target, image is target)
    else:
        region = (image.width, max(image.height, 1), max(image.depth, image.array_size, 1))
        cl.enqueue_copy(queue, target, source, is_blocking=True, origin=(0, 0, 0), region=region)


def _copy_rows(queue: Any, image: Any, host: Any, is_written: bool) -> None:
    """Copies rows of an image that has one axis, or layers of such, which pyopencl's copies leave out."""
    import numpy as np  # slow to import

    cl = opencl()
    rows = host.view(np.uint8).reshape(max(image.array_size, 1), -1)
    flags = cl.map_flags.WRITE if is_written else cl.map_flags.READ
    for layer, row in enumerate(rows):
        mapped, *_ = cl.enqueue_map_image(
            queue, image, flags, (0, layer, 0), (image.width, 1, 1), row.shape, np.dtype(np.uint8)
        )
        with mapped.base:
            if is_written:
                mapped[:] = row
            else:
                row[:] = mapped
    queue.finish()
