"""Compares what pixels of images take that work-items read side by side or anywhere, measured and predicted.

    python -m benchmarks.pixels --device nvidia-h200-e38dd1 --predict h200 \
        --store docs/results/pixels-nvidia-h200-e38dd1/measurements.sqlite.xz

Each work-item of a kernel in OpenCL C reads 64 pixels of an image: neighbours read neighbours along a row, or below
each other, or in blocks of 8 by 4, or one pixel together, or each its own within a tile of 32 x 32 that moves about, or
anywhere; of images with three axes along each of them, or in blocks. Others write pixels at such places, or have the
texture units mix the pixels around places between them; or copy an image once, by work-groups of several shapes, some
after they have asked how large it is; or read pixels, or numbers of an array, where the last one says. Times come from
the store; kernels that it lacks are measured if the device is here. They join no fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import perfmodel as pm
from benchmarks.kernels_compared import compared
from perfmodel.basics.tables import grid

GROUP, ITEMS, READS, SUBGROUP = 256, 2**20, 64, 32
SOURCE = """
__constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

uint hash(uint x)
{
    x *= 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

__kernel void pixels(read_only image2d_t image, __global float *out)
{
    const uint i = get_global_id(0);
    float total = 0;
    for (uint k = 0; k < READS; k++) {
        const uint own = hash(i * READS + k), shared = hash(i / NEIGHBOURS * READS + k), lane = i % NEIGHBOURS;
        const uint x = X, y = Y;
        total += read_imagef(image, at, (int2)(x % SIDE, y % SIDE)).x;
    }
    out[i] = total;
}
"""
OF_VOLUMES = SOURCE.replace("image2d_t", "image3d_t").replace(
    "(int2)(x % SIDE, y % SIDE)", "(int4)(x % SIDE, y % SIDE, (Z) % SIDE, 0)"
)
PLACES = {
    "along a row": ("i + k", "i / SIDE + k"),
    "below each other": ("i / SIDE + k", "i + k"),
    "blocks of 8 x 4": ("i % 8 + i / 32 % 16 * 8 + k", "i / 8 % 4 + i / 512 * 4"),
    "all from one": ("shared", "shared >> 16"),
    "rows anywhere": ("(shared & ~31u) + lane", "shared >> 16"),
    "in a tile": ("shared + own % 32", "(shared >> 16) + (own >> 16) % 32"),
    "anywhere": ("own", "own >> 16"),
}
PIXELS = ("r:unorm8", "r:float32", "rgba:unorm8", "rgba:float32")
SIDES = (128, 1024, 4096)
VOLUMES = {
    "along a row": ("i + k", "i / SIDE", "i / SIDE / SIDE"),
    "below each other": ("i / SIDE + k", "i", "i / SIDE / SIDE"),
    "behind each other": ("i / SIDE + k", "i / SIDE / SIDE", "i"),
    "blocks of 4 x 4 x 2": ("i % 4 + i / 32 % 16 * 4 + k", "i / 4 % 4 + i / 512 * 4", "i / 16 % 2 + i / 16384 * 2"),
    "anywhere": ("own", "own >> 8", "own >> 16"),
}
DEPTHS = (64, 256)
WRITTEN = """
__kernel void pixels(write_only image2d_t image, __global float *out)
{
    const uint i = get_global_id(0);
    for (uint k = 0; k < READS; k++) {
        const uint own = hash(i * READS + k), shared = hash(i / NEIGHBOURS * READS + k), lane = i % NEIGHBOURS;
        const uint x = X, y = Y;
        write_imagef(image, (int2)(x % SIDE, y % SIDE), (float4)(k, i, 0.25f, 0.5f));
    }
    out[i] = i;
}
"""
TO_IMAGES = SOURCE[: SOURCE.index("__kernel")] + WRITTEN
BETWEEN = ("along a row", "blocks of 8 x 4", "anywhere")
MIXED, MIXED_OF_VOLUMES = (
    source.replace("FILTER_NEAREST", "FILTER_LINEAR")
    .replace("(int2)(x % SIDE, y % SIDE)", "(float2)(x % SIDE + 0.3f, y % SIDE + 0.4f)")
    .replace(
        "(int4)(x % SIDE, y % SIDE, (Z) % SIDE, 0)", "(float4)(x % SIDE + 0.3f, y % SIDE + 0.4f, (Z) % SIDE + 0.2f, 0)"
    )
    for source in (SOURCE, OF_VOLUMES)
)

COPIED = (
    SOURCE[: SOURCE.index("__kernel")].replace("CLK_FILTER_NEAREST", "FILTER")
    + """
__kernel void pixels(read_only image2d_t image, write_only image2d_t copy, __global float4 *out)
{
    const int x = get_global_id(0), y = get_global_id(1);
    const uint own = hash(y * SIDE + x);
    if (ASKED) return;
    const float4 pixel = READ;
    WRITE;
}
"""
)
TO_IMAGE = "write_imagef(copy, (int2)(x, y), pixel)"
COPIES = {
    "an image to an array": ("read_imagef(image, at, (int2)(x, y))", "out[y * SIDE + x] = pixel"),
    "an array to an image": ("out[y * SIDE + x]", TO_IMAGE),
    "an image": ("read_imagef(image, at, (int2)(x, y))", TO_IMAGE),
    "an image, from beside": ("read_imagef(image, at, (int2)(x + own % 3, y + own / 3 % 3))", TO_IMAGE),
    "an image, from near": ("read_imagef(image, at, (int2)(x + own % 16, y + own / 16 % 16))", TO_IMAGE),
    "an image, between pixels": ("read_imagef(image, at, (float2)(x + 0.3f, y + 0.4f))", TO_IMAGE),
    "an image, between pixels beside": (
        "read_imagef(image, at, (float2)(x + own % 16 / 8.0f, y + own / 16 % 16 / 8.0f))",
        TO_IMAGE,
    ),
}
SIZES = ("x>=get_image_width(image)", "y>=get_image_height(image)", "x>=get_image_width(copy)")
TILES = ((256, 1), (32, 8), (16, 16), (8, 8))
FOLLOWED = (
    SOURCE[: SOURCE.index("uint hash")]
    + """
__kernel void pixels(read_only image2d_t image, __global const float *array, __global float *out)
{
    const int i = get_global_id(0);
    int x = i % 32, y = i / 32 % SIDE;
    for (int k = 0; k < FOLLOWING; k++) {
        const int next = (int)READ;
        x += next;
        y = (y + next + STEP) & (SIDE - 1);
    }
    out[i] = x + y;
}
"""
)
FEW, FOLLOWING = 32 * 64, 1024


def kernels() -> Iterator[tuple[str, str, str, pm.Kernel]]:
    """Yields kernels with the places that they read, and the form and side of their image."""
    for form, side in product(PIXELS, SIDES):
        for place, (x, y) in PLACES.items():
            for neighbours in (SUBGROUP, 4) if "shared" in x and place != "in a tile" else (SUBGROUP,):
                name = place if neighbours == SUBGROUP else f"{place}, by four"
                yield name, form, f"{side}^2", _kernel(SOURCE, form, side, neighbours, X=x, Y=y)


def volumes() -> Iterator[tuple[str, str, str, pm.Kernel]]:
    """Yields the same of images with three axes."""
    for form, side in product(PIXELS, DEPTHS):
        for place, (x, y, z) in VOLUMES.items():
            yield place, form, f"{side}^3", _kernel(OF_VOLUMES, form, side, SUBGROUP, X=x, Y=y, Z=z)


def written() -> Iterator[tuple[str, str, str, pm.Kernel]]:
    """Yields kernels that write pixels to images."""
    for form, side in product(PIXELS, SIDES):
        for place in ("along a row", "below each other", "blocks of 8 x 4", "rows anywhere", "anywhere"):
            x, y = PLACES[place]
            yield f"written {place}", form, f"{side}^2", _kernel(TO_IMAGES, form, side, SUBGROUP, X=x, Y=y)


def mixed() -> Iterator[tuple[str, str, str, pm.Kernel]]:
    """Yields kernels that read between pixels, of images with two axes and with three."""
    for form, side in product(PIXELS, SIDES):
        for place in BETWEEN:
            x, y = PLACES[place]
            yield f"between, {place}", form, f"{side}^2", _kernel(MIXED, form, side, SUBGROUP, X=x, Y=y)
    for form, side in product(PIXELS, DEPTHS):
        for place in ("along a row", "anywhere"):
            x, y, z = VOLUMES[place]
            yield f"between, {place}", form, f"{side}^3", _kernel(MIXED_OF_VOLUMES, form, side, SUBGROUP, X=x, Y=y, Z=z)


def copied() -> Iterator[tuple[str, str, str, pm.Kernel]]:
    """Yields kernels whose work-items read a pixel of an image, or write one, once; some ask for sizes before."""
    for form, side, tile in product(("r:float32", "rgba:float32"), (2048, 4096), TILES):
        for what, (read, write) in COPIES.items():
            if form == "rgba:float32" or tile in ((256, 1), (16, 16)):
                by = f"by {tile[0]} x {tile[1]}"
                yield f"copied {what}, {by}", form, f"{side}^2", _copy(form, side, tile, read, write)
    for sizes in range(1, len(SIZES) + 1):
        kernel = _copy("rgba:float32", 2048, (16, 16), *COPIES["an image"], "||".join(SIZES[:sizes]))
        yield f"copied an image, {sizes} sizes asked for", "rgba:float32", "2048^2", kernel


def _copy(form: str, side: int, tile: tuple[int, int], read: str, write: str, asked: str = "0") -> pm.Kernel:
    words = {
        "SIDE": side,
        "FILTER": "CLK_FILTER_LINEAR" if "(float2)" in read else "CLK_FILTER_NEAREST",
        "READ": read,
        "WRITE": write,
        "ASKED": asked,
    }
    options = [f"-D{word}={text}".replace(" ", "") for word, text in words.items()]
    whole = f"image:{form}:{side}:{side}"
    said: dict[str, int | str] = {"image": whole, "copy": whole, "out": side * side}
    return pm.Kernel.from_opencl(COPIED, "pixels", (side, side), tile, said, options)


def followed() -> Iterator[tuple[str, str, str, pm.Kernel]]:
    """Yields kernels of few work-items that read pixels between 0 and 1, or numbers of an array, each where the last
    one says."""
    reads = {"pixels": "read_imagef(image,at,(int2)(x,y)).x", "numbers": "array[x+SIDE*y]"}
    for (side, step), (what, read) in product(((32, 0), (1024, 37), (4096, 37)), reads.items()):
        words = {"READ": read, "SIDE": side, "STEP": step, "FOLLOWING": FOLLOWING}
        said: dict[str, int | str] = {
            "image": f"image:r:float32:{side}:{side}",
            "array": side * side,
            "out": FEW,
        }
        kernel = pm.Kernel.from_opencl(
            FOLLOWED, "pixels", FEW, 32, said, [f"-D{word}={text}" for word, text in words.items()]
        )
        yield f"{what} one after the other, {step} below", "r:float32", f"{side}^2", kernel


def _kernel(source: str, form: str, side: int, neighbours: int, **axes: str) -> pm.Kernel:
    """Returns a kernel that reads pixels at these coordinates."""
    words = {
        "READS": READS,
        "NEIGHBOURS": neighbours,
        "SIDE": side,
        **{axis: f"({text})" for axis, text in axes.items()},
    }
    options = [f"-D{word}={text}".replace(" ", "") for word, text in words.items()]
    said: dict[str, int | str] = {"image": ":".join(["image", form, *[str(side)] * len(axes)]), "out": ITEMS}
    return pm.Kernel.from_opencl(source, "pixels", ITEMS, GROUP, said, options)


def main() -> None:
    found = [*kernels(), *volumes(), *written(), *mixed(), *copied(), *followed()]
    times = compared([kernel for *_, kernel in found], "what pixels of images take, measured and predicted")
    lines = []
    for (place, form, side, kernel), took, said in zip(found, times.measured, times.predicted, strict=True):
        each_reads = 1 if "copied" in place else FOLLOWING if "one after" in place else READS
        pixels = kernel.counts.work_items({}) * each_reads
        each = [f"{1e12 * time / pixels:.3g}" for time in (took, said)]
        lines.append([place, form, side, *each, f"{said / took:.2f}"])
    print(f"{times.device}, picoseconds for each pixel\n")
    print(grid(["place", "pixels", "image", "measured", "predicted", "ratio"], lines))


if __name__ == "__main__":
    main()
