"""Kernels with images are counted with what they touch, predicted, emulated, and given to a device."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.kernels.arguments import Image
from perfmodel.measuring.isolation.child import as_launch, as_message
from perfmodel.measuring.protocol import PROTOCOLS, run_launch, time_launch

MEDIAN = """
__constant sampler_t at_pixels = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
__kernel void median(__read_only image2d_t photo, __write_only image2d_t out, const int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= n || y >= n)
        return;
    const float4 left = read_imagef(photo, at_pixels, (int2)(x - 1, y));
    const float4 here = read_imagef(photo, at_pixels, (int2)(x, y));
    const float4 right = read_imagef(photo, at_pixels, (int2)(x + 1, y));
    write_imagef(out, (int2)(x, y), fmax(fmin(left, here), fmin(fmax(left, here), right)));
}
"""
ROWS = """
__kernel void rows(__read_only image1d_buffer_t table, __read_only image3d_t volume, __write_only image2d_array_t out,
                   __global float *sums)
{
    const int x = get_global_id(0), y = get_global_id(1);
    const float4 a = read_imagef(table, x), b = read_imagef(volume, (int4)(x, y, x % 3, 0));
    sums[y * get_global_size(0) + x] = a.x + a.w + b.y + get_image_width(table) + get_image_depth(volume);
    write_imagef(out, (int4)(x, y, x & 1, 0), a * b);
}
"""
GLOBAL = "(n + 15) // 16 * 16"


def median(photo: str = "rgba:unorm8", n: int = 100) -> pm.Kernel:
    images = {"photo": f"image:{photo}:n:n", "out": "image:rgba:float32:n:n"}
    return pm.Kernel.from_opencl(MEDIAN, "median", (GLOBAL, GLOBAL), (16, 16), images, n=n)


def test_the_device_and_the_emulation_have_the_same_pixels(cpu: Device) -> None:
    kernel = median()
    photo = np.random.default_rng(1).integers(0, 256, (100, 100, 4), np.uint8)
    found = run_launch(kernel.launch(), cpu, {"photo": photo})["out"]
    emulated = pm.emulate(kernel, {"photo": photo}, groups="all")
    assert not emulated.findings
    np.testing.assert_allclose(found.reshape(100, 100, 4), emulated.array("out"), rtol=1e-6)
    assert time_launch(kernel.launch(), cpu, PROTOCOLS["quick"], {"photo": photo}).seconds > 0


def test_images_of_all_axes_are_given_to_a_device(cpu: Device) -> None:
    images = {
        "table": "image:rgba:float32:64",
        "volume": "image:rg:float32:64:16:3",
        "out": "image:rgba:float32:64:16:2",
        "sums": "64 * 16",
    }
    kernel = pm.Kernel.from_opencl(ROWS, "rows", (64, 16), (16, 4), images)
    random = np.random.default_rng(2)
    shapes = {each.name: each.shape for each in kernel.launch().arguments if isinstance(each, Image)}
    given = {name: random.random(shapes[name], np.float32) for name in ("table", "volume")}
    found, emulated = run_launch(kernel.launch(), cpu, given), pm.emulate(kernel, given, groups="all")
    np.testing.assert_allclose(found["sums"], emulated.array("sums"), rtol=1e-6)
    written = [found["out"].reshape(2, 16, 64, 4)[x & 1, :, x] for x in range(64)]
    expected = [emulated.array("out")[x & 1, :, x] for x in range(64)]
    np.testing.assert_allclose(written, expected, rtol=1e-6)


def test_pixels_count_with_the_bytes_that_they_take() -> None:
    for photo, times in (("rgba:unorm8", 4), ("rg:float32", 8), ("r:float16", 2)):
        kernel = median(photo)
        touched = {each.variable: each for each in kernel.counts_for(32).footprints if each.direction == "any"}
        elements = touched["photo"].elements
        assert elements is not None
        pixels = elements(kernel.sizes) * np.dtype(touched["photo"].dtype).itemsize
        assert pixels == 102 * 100 * times  # that two columns lie outside is not known


COPY = """
__kernel void copied(__read_only image2d_t from, __write_only image2d_t to, const int n)
{
    const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    const int x = get_global_id(0), y = get_global_id(1);
    write_imagef(to, (int2)(x, y), read_imagef(from, s, (int2)(x, y)));
}
"""


@pytest.mark.parametrize(
    ("read", "written", "loaded", "stored"),
    [("r:float32", "r:unorm8", 4, 1), ("rgba:unorm8", "rg:float16", 4, 4), ("rgba:float32", "rgba:float32", 16, 16)],
)
def test_accesses_move_the_bytes_of_a_pixel(read: str, written: str, loaded: int, stored: int) -> None:
    images = {"from": f"image:{read}:n:n", "to": f"image:{written}:n:n"}
    kernel = pm.Kernel.from_opencl(COPY, "copied", ("n", "n"), (32, 8), images, n=64)
    for counted in (kernel, kernel.as_emulated()):  # a row of a sub-group's pixels is a line
        for direction, item in (("load", loaded), ("store", stored)):
            value = {
                name: pm.feature(f"f_mem_{name}").eval(counted)
                for name in (
                    f"bytes_global_{direction}",
                    f"transactions_global_{direction}_block:32",
                    f"footprint_global_{direction}_granularity:workgroup",
                )
            }
            assert list(value.values()) == [64 * 64 * item, 64 * 64 / 32 * item, 64 * 64 * item]
    for direction, item in (("load", loaded), ("store", stored)):  # rows of 65,536 pixels are not filled
        assert pm.feature(f"f_mem_footprint_global_{direction}_block:64").eval(kernel) == 64 * 64 * item


def test_a_launch_goes_to_another_process_with_its_images() -> None:
    launch = median().launch()
    assert isinstance(launch.arguments[0], Image)
    assert launch.arguments[0].shape == (100, 100, 4)
    assert as_launch(json.loads(json.dumps(as_message(launch)))) == launch


def test_a_prediction_follows_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "median.cl").write_text(MEDIAN)
    given = ["--arg", "photo=image:rgba:unorm8:n:n", "--arg", "out=image:rgba:float32:n:n", "--arg", "n=1024"]
    common = [str(tmp_path / "median.cl"), "--global", "n,n", "--local", "16,16", *given]
    assert main(["predict", "unified-plus@h200", *common]) == 0
    assert "median" in capsys.readouterr().out
    assert main(["emulate", *common]) == 0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("n*n", r"argument 'photo' is an image2d_t, and said to be 'n\*n'; write image:r|rg|rgba:DTYPE:WIDTH:HEIGHT"),
        ("image:rgba:float64:n:n", "write image:"),
        ("image:rgb:uint8:n:n", "write image:"),
        ("image:rgba:uint8:n", "write image:"),
        ("image:rgba:uint8:n:m", "size of image 'photo' of kernel 'median' needs 'm'"),
    ],
)
def test_what_is_no_image_is_refused(said: str, words: str) -> None:
    images = {"photo": said, "out": "image:rgba:float32:n:n"}
    with pytest.raises(KernelError, match=words):
        pm.Kernel.from_opencl(MEDIAN, "median", (GLOBAL, GLOBAL), (16, 16), images, n=64)


def test_contents_of_another_size_are_refused() -> None:
    with pytest.raises(KernelError, match=r"of shape \(100, 100, 4\); give an array of these"):
        pm.emulate(median(), {"photo": np.zeros((100, 100), np.uint8)})
