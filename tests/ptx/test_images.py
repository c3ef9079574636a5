"""Kernels of CUDA read and write what CUDA's documents say of textures and surfaces, pixel by pixel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import EmulationError, KernelError

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

WIDTH, HEIGHT, ITEMS = 7, 5, 256
READ = """
__global__ void read(cudaTextureObject_t image, const float *u, const float *v, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = READ;
}"""


def kernel(read: str, said: str) -> pm.Kernel:
    extents: dict[str, int | str] = {"image": said, "u": ITEMS, "v": ITEMS, "out": ITEMS}
    return pm.Kernel.from_cuda(READ.replace("READ", read), "read", ITEMS // 64, 64, extents, n=ITEMS)


def places() -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of pixels, some of them outside, none of them halfway between two."""
    u, v = np.random.default_rng(1).uniform(-0.5, 1.5, (2, ITEMS)).astype(np.float32)
    return u, v


def found(read: str, said: str, pixels: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return pm.emulate(kernel(read, said), {"image": pixels, "u": u, "v": v}, groups="all").array("out")


def to_edge(at: int, size: int) -> int:
    return min(max(at, 0), size - 1)


def mixed(pixels: np.ndarray, x: float, y: float, place: Callable[[int, int], int]) -> float:
    """Returns the mean of the four pixels around a place (CUDA C++ Programming Guide, linear filtering)."""
    left, top = math.floor(x - 0.5), math.floor(y - 0.5)
    a, b = x - 0.5 - left, y - 0.5 - top
    total = 0.0
    for down, right in itertools.product((0, 1), (0, 1)):
        weight = (a if right else 1 - a) * (b if down else 1 - b)
        total += weight * float(pixels[place(top + down, HEIGHT), place(left + right, WIDTH)])
    return total


def test_the_nearest_pixel_is_read_and_that_of_the_edge_outside() -> None:
    pixels = np.random.default_rng(2).random((HEIGHT, WIDTH), np.float32)
    u, v = places()
    got = found("tex2D<float>(image, u[i], v[i])", "image:r:float32:7:5", pixels, u * WIDTH, v * HEIGHT)
    scaled = zip((u * WIDTH).tolist(), (v * HEIGHT).tolist(), strict=True)
    wanted = [pixels[to_edge(math.floor(y), HEIGHT), to_edge(math.floor(x), WIDTH)] for x, y in scaled]
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("how", "place"),
    [("linear", to_edge), ("clamp_to_edge", to_edge), ("repeat", lambda at, size: at % size)],
    ids=["nothing said", "edge", "repeat"],
)
def test_pixels_around_are_mixed(how: str, place: Callable[[int, int], int]) -> None:
    pixels = np.random.default_rng(3).random((HEIGHT, WIDTH), np.float32)
    u, v = places()
    said = f"image:r:float32:7:5:linear:normalized:{how}"
    got = found("tex2D<float>(image, u[i], v[i])", said, pixels, u, v)
    if how == "repeat":
        u, v = u - np.floor(u), v - np.floor(v)
    wanted = [mixed(pixels, x * WIDTH, y * HEIGHT, place) for x, y in zip(u.tolist(), v.tolist(), strict=True)]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_outside_of_a_border_nothing_is_read() -> None:
    pixels = np.ones((HEIGHT, WIDTH), np.float32)
    u, v = places()
    got = found("tex2D<float>(image, u[i], v[i])", "image:r:float32:7:5:normalized:clamp", pixels, u, v)
    np.testing.assert_array_equal(got, (u >= 0) & (u < 1) & (v >= 0) & (v < 1))


def test_bytes_are_whole_numbers_or_parts_of_one_as_the_source_reads_them() -> None:
    pixels = np.random.default_rng(4).integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
    u, v = np.full(ITEMS, 3.5, np.float32), np.full(ITEMS, 2.5, np.float32)
    whole = found("tex2D<uchar4>(image, u[i], v[i]).z", "image:rgba:uint8:7:5", pixels, u, v)
    part = found("tex2D<float4>(image, u[i], v[i]).z", "image:rgba:uint8:7:5", pixels, u, v)
    assert whole[0] == pixels[2, 3, 2]
    assert part[0] == pytest.approx(pixels[2, 3, 2] / 255)


@pytest.mark.parametrize(
    ("read", "said", "shape", "place"),
    [
        ("tex1Dfetch<float>(image, i % 30)", "image:r:float32:30", (30,), lambda i: (i % 30,)),
        ("tex1D<float>(image, i % 30 + 0.5f)", "image:r:float32:30", (30,), lambda i: (i % 30,)),
        (
            "tex3D<float>(image, i % 3, i % 4, i % 5)",
            "image:r:float32:3:4:5",
            (5, 4, 3),
            lambda i: (i % 5, i % 4, i % 3),
        ),
        (
            "tex2DLayered<float>(image, i % 3, 1, i % 5)",
            "image:r:float32:3:4:5",
            (5, 4, 3),
            lambda i: (i % 5, 1, i % 3),
        ),
        ("tex2DLod<float>(image, i % 3, i % 4, 0)", "image:r:float32:3:4", (4, 3), lambda i: (i % 4, i % 3)),
    ],
)
def test_images_have_one_to_three_axes(
    read: str, said: str, shape: tuple[int, ...], place: Callable[[int], tuple[int, ...]]
) -> None:
    pixels = np.random.default_rng(5).random(shape, np.float32)
    none = np.zeros(ITEMS, np.float32)
    wanted = [pixels[place(i)] for i in range(ITEMS)]
    np.testing.assert_array_equal(found(read, said, pixels, none, none), wanted)


def test_a_gather_returns_four_pixels_against_the_clock() -> None:
    pixels = np.arange(HEIGHT * WIDTH, dtype=np.float32).reshape(HEIGHT, WIDTH)
    at = np.full(ITEMS, 3.0, np.float32)
    texts = [f"tex2Dgather<float4>(image, u[i], v[i], 0).{axis}" for axis in "xyzw"]
    got = [found(text, "image:r:float32:7:5", pixels, at, at)[0] for text in texts]
    assert got == [pixels[3, 2], pixels[3, 3], pixels[2, 3], pixels[2, 2]]


SURFACE = """
__global__ void turned(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int w, int h)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= w) return;
    const uchar4 pixel = surf2Dread<uchar4>(from, x * 4, y);
    surf2Dwrite(make_uchar4(pixel.w, pixel.z, pixel.y, pixel.x), to, (w - 1 - x) * 4, y);
}"""


def test_surfaces_are_read_and_written_by_bytes() -> None:
    said = {"from": "image:rgba:uint8:w:h", "to": "image:rgba:uint8:w:h"}
    turned = pm.Kernel.from_cuda(SURFACE, "turned", ("(w + 31) // 32", "h"), 32, said, w=40, h=6)
    pixels = np.random.default_rng(6).integers(0, 256, (6, 40, 4), np.uint8)
    profile = pm.emulate(turned, {"from": pixels, "to": np.zeros_like(pixels)}, groups="all")
    np.testing.assert_array_equal(profile.array("to").reshape(pixels.shape), pixels[:, ::-1, ::-1])


def test_structs_hold_textures() -> None:
    source = """struct Photo { cudaTextureObject_t image; int width; };
    __global__ void read(Photo photo, float *out)
    {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[i] = tex2D<float>(photo.image, i % photo.width, i / photo.width);
    }"""
    extents: dict[str, int | str] = {"photo_0": "image:r:float32:16:16", "out": ITEMS}
    read = pm.Kernel.from_cuda(source, "read", ITEMS // 64, 64, extents, photo_2=16)
    pixels = np.random.default_rng(9).random((16, 16), np.float32)
    found = pm.emulate(read, {"photo_0": pixels}, groups="all").array("out")
    np.testing.assert_array_equal(found, pixels.ravel())


def test_pixels_are_counted_as_those_of_images() -> None:
    blur = kernel("tex2D<float>(image, u[i], v[i]) + tex2D<float>(image, v[i], u[i])", "image:r:float32:64:64")
    features = {
        "f_mem_access_global_load_tag:image": 2 * ITEMS,
        "f_mem_bytes_global_load_tag:image": 8 * ITEMS,
        "f_mem_access_global_load": 4 * ITEMS,
    }
    for name, wanted in features.items():
        assert float(pm.feature(name).eval(blur)) == wanted, name


@pytest.mark.parametrize(
    ("read", "said", "tags"),
    [
        ("tex2D<float>(image, u[i], v[i])", "image:r:float32:64:64", set()),
        ("tex2D<float>(image, u[i], v[i])", "image:r:float32:64:64:linear", {"filtered"}),
        ("tex3D<float>(image, u[i], v[i], 2.5f)", "image:r:float32:64:64:64", {"volume"}),
        ("tex3D<float>(image, u[i], v[i], 2.5f)", "image:r:float32:64:64:64:linear", {"filtered", "volume", "thick"}),
    ],
)
def test_what_texture_units_mix_is_told_by_tags(read: str, said: str, tags: set[str]) -> None:
    counted = kernel(read, said)
    for tag in ("filtered", "volume", "thick"):
        wanted = ITEMS if tag in tags else 0
        assert float(pm.feature(f"f_mem_access_global_load_tag:{tag}").eval(counted)) == wanted, tag


def test_pixels_below_each_other_share_lines_as_images_lie_in_tiles() -> None:
    """A tile of 64 bytes by 8 rows has 4 lines of 128 bytes; an array has one line or more for each row."""
    along, below = (
        float(
            pm.feature("f_mem_transactions_global_load_block:128_tag:image").eval(
                kernel(read, "image:r:float32:256:256")
            )
        )
        for read in ("tex2D<float>(image, i, 3)", "tex2D<float>(image, 3, i)")
    )
    rows = ITEMS / 32
    assert along == 32 * 4 / 128 * rows
    assert below == 32 / 8 * 2 * rows


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("image:r:float33:7:5", "image=image:r:float33:7:5 is no image; write image:r|rg|rgba:DTYPE:WIDTH:HEIGHT"),
        ("image:r:float32:7:5:3:2", "write image:r|rg|rgba:DTYPE:WIDTH:HEIGHT"),
    ],
)
def test_words_that_say_no_image_are_refused(said: str, message: str) -> None:
    with pytest.raises(KernelError) as refused:
        kernel("tex2D<float>(image, u[i], v[i])", said)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("said", "message"),
    [("image:r:float32:7", "by 2 coordinates, which has 1 axes"), (str(ITEMS), "is given none; say what the argument")],
)
def test_other_images_than_the_kernel_reads_are_refused(said: str, message: str) -> None:
    with pytest.raises(EmulationError) as refused:
        pm.emulate(kernel("tex2D<float>(image, u[i], v[i])", said))
    assert message in str(refused.value)


WRITTEN = """
__global__ void write(cudaSurfaceObject_t image)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    surf2Dwrite(make_float4(x, y, 0, 1), image, x * 16, y);
}"""


@pytest.mark.parametrize(("block", "sectors"), [((256, 1), 32), ((32, 8), 16), ((16, 16), 16), ((8, 4), 16)])
def test_a_work_group_writes_sectors_of_two_rows(block: tuple[int, int], sectors: int) -> None:
    """A sector of 32 bytes has a pixel of 16 bytes, and that below: one row fills each in half."""
    side = 256
    grid = side // block[0], side // block[1]
    written = pm.Kernel.from_cuda(WRITTEN, "write", grid, block, {"image": f"image:rgba:float32:{side}:{side}"})
    found = float(pm.feature("f_mem_transactions_global_store_block:32_tag:image").eval(written))
    assert found == sectors * side * side / 32


def test_reads_of_pixels_are_waited_for() -> None:
    """A pixel that says where the next one lies is waited for, as an element of an array is."""
    following = kernel(
        "tex2D<float>(image, tex2D<float>(image, i, 1) + tex2D<float>(image, i, 2), 3)", "image:r:float32:64:64"
    )
    apart = kernel("tex2D<float>(image, i, 1) + tex2D<float>(image, i, 2)", "image:r:float32:64:64")
    for read, waits in ((following, 2), (apart, 1)):
        found = float(pm.feature("f_mem_waits_global_granularity:longest").eval(read)) / ITEMS
        assert found == pytest.approx(waits, rel=0.1)
