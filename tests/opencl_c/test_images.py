"""Images and samplers: read and written as a device does, and counted as accesses by their coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from numpy.typing import NDArray

from perfmodel import Kernel, feature
from perfmodel import emulate as pm_emulate
from perfmodel.basics.errors import KernelError
from perfmodel.counting.symbolic import name
from perfmodel.device import Device
from perfmodel.measuring.protocol import run_launch
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.emulation import Emulation, Image, Zeros, emulate
from perfmodel.opencl_c.static.counter import count_opencl
from perfmodel.opencl_c.static.grid import Grid

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (11, 13, 4), dtype=np.uint8)
FLOATS = RNG.random((11, 13, 4), dtype=np.float32)
SHORTS = RNG.integers(-3000, 3000, (11, 13, 2), dtype=np.int16)
CHANNELS = {
    "uint8": cl.channel_type.UNSIGNED_INT8,
    "int16": cl.channel_type.SIGNED_INT16,
    "float32": cl.channel_type.FLOAT,
    "float16": cl.channel_type.HALF_FLOAT,
}
ORDERS = {1: cl.channel_order.R, 2: cl.channel_order.RG, 4: cl.channel_order.RGBA}
READ = """
{before}
__kernel void k(__read_only image2d_t im, __global {type} *out, sampler_t given)
{{
    const int i = get_global_id(0), x = i % 32 - 8, y = i / 32 - 8;
    const float u = {scale} * (x + 0.37f), v = {scale} * (y + 0.81f);
    out[i] = {read};
}}
"""


def on_device(device: Device, source: str, image: Image, out: NDArray[Any], mode: int) -> NDArray[Any]:
    context, queue = device.context(), device.queue()
    channel = cl.channel_type.UNORM_INT8 if image.normalized else CHANNELS[str(image.array.dtype)]
    height, width, channels = image.array.shape
    form = cl.ImageFormat(ORDERS[channels], channel)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    held = cl.create_image(context, flags, form, shape=(width, height), hostbuf=np.ascontiguousarray(image.array))
    addressing = {2: "CLAMP_TO_EDGE", 4: "CLAMP", 6: "REPEAT", 8: "MIRRORED_REPEAT"}[mode & 14]
    filtering = cl.filter_mode.LINEAR if mode & 0x20 else cl.filter_mode.NEAREST
    sampler = cl.Sampler(context, bool(mode & 1), getattr(cl.addressing_mode, addressing), filtering)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, out.nbytes)
    cl.Kernel(cl.Program(context, source).build(), "k")(queue, (1024,), (32,), held, buffer, sampler)
    result = np.empty_like(out)
    cl.enqueue_copy(queue, result, buffer)
    return result


def emulated(source: str, image: Image, out: NDArray[Any], mode: int) -> Emulation:
    arguments: dict[str, Any] = {"im": image, "out": out, "given": mode}
    return emulate(lowered_kernel(source, "k"), 1024, 32, arguments, groups="all")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (0x12, "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST"),
        (0x14, "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST"),
        (0x22, "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR"),
        (0x24, "CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR"),
        (0x17, "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_NEAREST"),
        (0x27, "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR"),
        (0x19, "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_MIRRORED_REPEAT | CLK_FILTER_NEAREST"),
        (0x29, "CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_MIRRORED_REPEAT | CLK_FILTER_LINEAR"),
    ],
)
@pytest.mark.parametrize("image", [Image(FLOATS), Image(BYTES, normalized=True)], ids=["float", "unorm"])
@pytest.mark.parametrize("is_given", [False, True], ids=["constant", "argument"])
def test_floats_are_sampled_as_on_a_device(mode: int, words: str, image: Image, is_given: bool, cpu: Device) -> None:
    read = f"read_imagef(im, {'given' if is_given else 's'}, (float2)(u, v))"
    scale = "0.0737f" if mode & 1 else "1.0f"
    source = READ.format(before=f"__constant sampler_t s = {words};", type="float4", scale=scale, read=read)
    out = np.zeros((1024, 4), np.float32)
    found = emulated(source, image, out, mode)
    assert not found.findings
    # Devices filter with weights of 8 bits.
    tolerance = 2 / 256 if mode & 0x20 else 1e-6
    np.testing.assert_allclose(found.array("out"), on_device(cpu, source, image, out, mode), atol=tolerance)


@pytest.mark.parametrize(
    ("image", "type_", "read"),
    [
        (Image(BYTES), "uint4", "read_imageui(im, given, (int2)(x, y))"),
        (Image(SHORTS), "int4", "read_imagei(im, given, (int2)(x, y))"),
        (Image(FLOATS.astype(np.float16)), "float4", "read_imagef(im, given, (int2)(x, y))"),
        (Image(BYTES), "uint4", "read_imageui(im, (int2)(clamp(x, 0, 12), clamp(y, 0, 10)))"),
        (
            Image(SHORTS),
            "int4",
            "(int4)(get_image_width(im), get_image_height(im), get_image_dim(im).y, get_image_channel_order(im))",
        ),
    ],
    ids=["bytes", "shorts", "halves", "without a sampler", "sizes"],
)
def test_pixels_have_the_numbers_of_their_channels(image: Image, type_: str, read: str, cpu: Device) -> None:
    source = READ.format(before="", type=type_, scale="1.0f", read=read)
    out = np.zeros((1024, 4), {"u": np.uint32, "i": np.int32, "f": np.float32}[type_[0]])
    found = emulated(source, image, out, 0x14)
    np.testing.assert_array_equal(found.array("out"), on_device(cpu, source, image, out, 0x14))


WRITE = """
float4 twice(__read_only image2d_t from, sampler_t s, int2 at) { return 2 * read_imagef(from, s, at); }
__kernel void k(__read_only image2d_t from, __write_only image2d_t to)
{
    const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    const int x = get_global_id(0), y = get_global_id(1);
    float4 sum = 0;
    for (int i = -1; i <= 1; i++)
        sum += read_imagef(from, s, (int2)(x + i, y));
    write_imagef(to, (int2)(x, y), sum / 8 + twice(from, s, (int2)(x, y)) / 8);
}
"""


@pytest.mark.parametrize(
    "image", [Image(FLOATS[:8, :8]), Image(BYTES[:8, :8], normalized=True)], ids=["float", "unorm"]
)
def test_images_are_written(image: Image) -> None:
    kernel = lowered_kernel(WRITE, "k")
    empty = Image(np.zeros_like(image.array), image.normalized)
    found = emulate(kernel, (8, 8), (4, 4), {"from": image, "to": empty}, groups="all")
    assert not found.findings
    most = 255 if image.normalized else 1
    values = image.array.astype(np.float32) / most
    padded = np.pad(values, ((0, 0), (1, 1), (0, 0)), mode="edge")
    expected = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 8 + values / 4
    if image.normalized:
        np.testing.assert_allclose(found.array("to"), np.rint(expected * 255), atol=1)
    else:
        np.testing.assert_allclose(found.array("to"), expected, rtol=1e-6)
    assert found.accesses["executions"].sum(axis=0).tolist() == [64 * 3, 64, 64]


def test_pixels_outside_are_found_where_nothing_says_what_is_there() -> None:
    source = """__kernel void k(__read_only image1d_t im, __global float *out) {
        out[get_global_id(0)] = read_imagef(im, (int)get_global_id(0) - 1).x;
    }"""
    line = Image(np.arange(8, dtype=np.float32))
    found = emulate(lowered_kernel(source, "k"), 8, 8, {"im": line, "out": Zeros(8)})
    assert [finding.kind for finding in found.findings] == ["out of bounds"]
    assert found.array("out").tolist() == [0, *range(7)]


def test_layers_and_volumes() -> None:
    source = """__kernel void k(__read_only image2d_array_t im, __read_only image3d_t v, __global float *out) {
        const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
        const int i = get_global_id(0);
        const float2 both = (float2)(read_imagef(im, s, (int4)(i, 1, 2, 0)).x,
                                     read_imagef(v, s, (float4)(i + 0.5f, 1.5f, 2.5f, 0)).y);
        out[i] = both.x + both.y + get_image_array_size(im) + get_image_depth(v);
    }"""
    volume = RNG.random((3, 4, 8, 2), dtype=np.float32)
    arguments: dict[str, Any] = {"im": Image(volume[..., 0]), "v": Image(volume), "out": Zeros(8)}
    found = emulate(lowered_kernel(source, "k"), 8, 8, arguments)
    np.testing.assert_allclose(found.array("out"), volume[2, 1, :, 0] + volume[2, 1, :, 1] + 6, rtol=1e-6)


def test_accesses_are_counted_by_their_coordinates() -> None:
    grid = Grid("k", ["n"], [name("n"), name("n")], [16, 16])
    counts = count_opencl(lowered_kernel(WRITE, "k"), grid, {})
    size = {"n": np.array([64.0])}
    read, again, written = (access for access in counts.accesses if access.space == "global")
    assert [each.variable for each in (read, again, written)] == ["from", "from", "to"]
    assert [float(each.executions.workitem(size)[0]) for each in (read, again, written)] == [3 * 4096, 4096, 4096]
    for access, pixels in ((read, 66 * 64), (written, 64 * 64)):
        strides = {axis: stride and float(stride(size)[0]) for axis, stride in access.local_strides.items()}
        assert strides == {0: 1, 1: low.IMAGE_ROW}
        assert access.footprint is not None
        assert access.footprint(size) == [pixels]


@pytest.mark.parametrize("words", ["sampler", "sampler:linear:clamp", "sampler:repeat:normalized:linear"])
def test_samplers_may_be_arguments_of_launches(cpu: Device, words: str) -> None:
    scale = "0.07f" if "normalized" in words else "1.0f"
    offset = "+ 8" if words == "sampler" else ""  # outside of it, nothing says what is read
    read = f"read_imagef(im, given, (float2)(u {offset}, v {offset}))"
    source = READ.format(before="", type="float4", scale=scale, read=read)
    kernel = Kernel.from_opencl(source, "k", 1024, 32, {"im": "image:rgba:float32:40:40", "out": 1024, "given": words})
    arrays = {"im": RNG.random((40, 40, 4), dtype=np.float32), "out": np.zeros(4096, np.float32)}
    found = pm_emulate(kernel, arrays, groups="all").array("out")
    np.testing.assert_allclose(run_launch(kernel.launch(), cpu, arrays)["out"].ravel(), found.ravel(), atol=1e-4)


def test_samplers_that_are_not_understood_say_what_to_write() -> None:
    source = READ.format(before="", type="float4", scale="1.0f", read="read_imagef(im, given, (float2)(u, v))")
    for given in ({}, {"given": "sampler:liner"}, {"given": "linear"}):
        with pytest.raises(KernelError, match="sampler:normalized:linear:repeat, of unnormalized, "):
            Kernel.from_opencl(source, "k", 1024, 32, {"im": "image:rgba:float32:40:40", "out": 1024, **given})


def test_sizes_of_images_are_asked_for_once_each() -> None:
    """Texture units take 25 cycles of a compute unit to tell a sub-group a size; one that is known is not asked for."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    source = """
    __constant sampler_t how = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
    __kernel void k(read_only image2d_t from, write_only image2d_t to)
    {
        const int2 at = (int2)(get_global_id(0), get_global_id(1)), all = get_image_dim(from);
        if (at.x < get_image_width(from) && at.y < all.y && at.x < get_image_width(to))
            write_imagef(to, at, read_imagef(from, how, at) * (get_image_channel_order(from) == CLK_R ? 1 : 2));
    }"""
    kernel = Kernel.from_opencl(
        source, "k", (96, 64), (32, 2), {"from": "image:r:float32:80:64", "to": "image:r:float32:80:64"}
    ).as_machine_code()
    assert float(feature("f_issue_query").eval(kernel)) == pytest.approx(25 * 3 * 96 * 64 / 32)
    assert float(feature("f_mem_access_global_store").eval(kernel)) == 80 * 64
