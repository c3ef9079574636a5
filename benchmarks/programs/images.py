"""Holds filters and conversions of images."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("images", "images.cl")
RGB = np.dtype([("r", "u1"), ("g", "u1"), ("b", "u1")])
# fmt: off
QUALITY = np.array([
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57,
    69, 56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64,
    81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
])
# fmt: on


def weights(radius: int) -> Array:
    weight = np.exp(-0.5 * (np.arange(-radius, radius + 1) / (0.5 * radius)) ** 2)
    return np.asarray(weight / weight.sum(), np.float32)


def size(w: int, h: int) -> dict[str, np.int32]:
    return {"w": np.int32(w), "h": np.int32(h)}


def windows(image: Array) -> list[Array]:
    """Returns the image shifted to each of nine neighbours, row by row, with its edges repeated."""
    h, w = image.shape
    wide = np.pad(image, 1, "edge")
    return [wide[j : j + h, i : i + w] for j in range(3) for i in range(3)]


@GROUP.case(cpu={"w": 201, "h": 99, "radius": 5}, gpu={"w": 4001, "h": 3000, "radius": 8})
def gauss_rows(rng: Rng, w: int, h: int, radius: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        wide = np.pad(a["src"].reshape(h, w), ((0, 0), (radius, radius)), "edge")
        return {"dst": sum(weight * wide[:, k : k + w] for k, weight in enumerate(weights(radius)))}

    return Launch(
        (up(w, 32), up(h, 4)),
        (32, 4),
        {
            "src": Random("float32", w * h),
            "dst": Zeros("float32", w * h),
            "weight": weights(radius),
            "radius": np.int32(radius),
            **size(w, h),
        },
        reference,
    )


@GROUP.case(cpu={"w": 75, "h": 101}, gpu={"w": 3001, "h": 4000})
def gauss_columns(rng: Rng, w: int, h: int) -> Launch:
    def invariant(before: Arrays, after: Arrays) -> None:
        wide = np.pad(before["src"].reshape(h, w, 4).astype(np.float64), ((4, 4), (0, 0), (0, 0)), "edge")
        smooth = sum(weight * wide[k : k + h] for k, weight in enumerate(weights(4)))
        assert np.abs(after["dst"].reshape(h, w, 4) - smooth).max() < 0.501, "a pixel is off by more than rounding"

    return Launch(
        (up(w, 16), up(h, 16)),
        (16, 16),
        {
            "src": Random("uint8", 4 * w * h, 0, 256),
            "dst": Zeros("uint8", 4 * w * h),
            "weight": weights(4),
            **size(w, h),
        },
        invariant=invariant,
    )


@GROUP.case(cpu={"width": 203, "height": 151}, gpu={"width": 7001, "height": 5003})
def sobel(rng: Rng, width: int, height: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        n = windows(a["img"].reshape(height, width).astype(np.int32))
        gx = n[2] + 2 * n[5] + n[8] - n[0] - 2 * n[3] - n[6]
        gy = n[6] + 2 * n[7] + n[8] - n[0] - 2 * n[1] - n[2]
        edges = np.minimum(np.abs(gx) + np.abs(gy), 255).astype(np.uint8)
        edges[[0, -1]], edges[:, [0, -1]] = 0, 0
        return {"edges": edges}

    return Launch(
        (up(width, 16), up(height, 16)),
        (16, 16),
        {
            "img": Random("uint8", width * height, 0, 256),
            "edges": Zeros("uint8", width * height),
            "width": np.uint32(width),
            "height": np.uint32(height),
        },
        reference,
    )


@GROUP.case(cpu={"w": 150, "h": 101}, gpu={"w": 6001, "h": 4001})
def median_3x3(rng: Rng, w: int, h: int) -> Launch:
    return Launch(
        (up(w, 32), up(h, 8)),
        (32, 8),
        {"in": Random("uint8", w * h, 0, 256), "out": Zeros("uint8", w * h), **size(w, h)},
        lambda a: {"out": np.median(np.stack(windows(a["in"].reshape(h, w))), 0).astype(np.uint8)},
    )


@GROUP.case(cpu={"w": 101, "h": 70, "radius": 3}, gpu={"w": 2001, "h": 1500, "radius": 6})
def bilateral(rng: Rng, w: int, h: int, radius: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        image = a["in"].reshape(h, w)
        wide = np.pad(image, radius, constant_values=np.nan)
        total, norm = np.zeros((h, w)), np.zeros((h, w))
        for j, i in np.ndindex(2 * radius + 1, 2 * radius + 1):
            v = wide[j : j + h, i : i + w].astype(np.float64)
            space = (i - radius) ** 2 + (j - radius) ** 2
            weight = np.nan_to_num(np.exp(-space / 8 - (v - image) ** 2 / 0.18))
            total, norm = total + weight * np.nan_to_num(v), norm + weight
        return {"out": total / norm}

    return Launch(
        (up(w, 16), up(h, 8)),
        (16, 8),
        {
            "in": Random("float32", w * h),
            "out": Zeros("float32", w * h),
            **size(w, h),
            "radius": np.int32(radius),
            "sigma_s": np.float32(2),
            "sigma_r": np.float32(0.3),
        },
        reference,
    )


@GROUP.case(cpu={"w": 203, "h": 101}, gpu={"w": 6003, "h": 4001})
def non_maximum(rng: Rng, w: int, h: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        mag = a["mag"]
        at = np.arange(w * h).reshape(h, w)[1:-1, 1:-1]
        step = np.array([1, w - 1, w, w + 1])[a["direction"][at]]
        out = np.zeros_like(mag)
        out[at] = np.where((mag[at] >= mag[at - step]) & (mag[at] > mag[at + step]), mag[at], 0)
        return {"out": out}

    return Launch(
        (up(w - 2, 32), up(h - 2, 4)),
        (32, 4),
        {
            "mag": Random("float32", w * h),
            "direction": Random("uint8", w * h, 0, 4),
            "out": Zeros("float32", w * h),
            **size(w, h),
        },
        reference,
    )


@GROUP.case(cpu={"w": 131, "h": 103, "reach": 4}, gpu={"w": 5003, "h": 4001, "reach": 5})
def dilate_cross(rng: Rng, w: int, h: int, reach: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        image = a["in"].reshape(h, w)
        wide = np.pad(image, reach)
        shifts = [wide[reach : reach + h, k : k + w] for k in range(2 * reach + 1)]
        shifts += [wide[k : k + h, reach : reach + w] for k in range(2 * reach + 1)]
        return {"out": np.max(shifts, 0)}

    return Launch(
        (up(w, 16), up(h, 16)),
        (16, 16),
        {
            "in": Random("uint8", w * h, 0, 256),
            "out": Zeros("uint8", w * h),
            **size(w, h),
            "reach": np.int32(reach),
        },
        reference,
    )


@GROUP.case(cpu={"w": 170, "h": 102}, gpu={"w": 7680, "h": 4320})
def rgb_to_yuv420(rng: Rng, w: int, h: int) -> Launch:
    pixels = rng.integers(0, 256, (h, w, 3), np.uint8)

    def reference(a: Arrays) -> Arrays:
        p = pixels.astype(np.int32)
        quads = p.reshape(h // 2, 2, w // 2, 2, 3).sum((1, 3)) // 4
        return {
            "luma": (((p @ np.array([66, 129, 25]) + 128) >> 8) + 16).astype(np.uint8),
            "u": (((quads @ np.array([-38, -74, 112]) + 128) >> 8) + 128).astype(np.uint8),
            "v": (((quads @ np.array([112, -94, -18]) + 128) >> 8) + 128).astype(np.uint8),
        }

    return Launch(
        (up(w // 2, 16), up(h // 2, 8)),
        (16, 8),
        {
            "rgb": pixels.view(RGB).reshape(-1),
            "luma": Zeros("uint8", w * h),
            "u": Zeros("uint8", w * h // 4),
            "v": Zeros("uint8", w * h // 4),
            **size(w, h),
        },
        reference,
    )


@GROUP.case(cpu={"n": 10007}, gpu={"n": 30000001})
def equalise_apply(rng: Rng, n: int) -> Launch:
    counts = rng.integers(0, 2 * n // 256, 256)
    cdf = np.cumsum(counts).astype(np.uint32)

    def reference(a: Arrays) -> Arrays:
        table = ((cdf - cdf[3]).astype(np.uint64) * np.uint64(255) // np.uint64(cdf[-1] - cdf[3])).astype(np.uint8)
        table[cdf <= cdf[3]] = 0
        pixels = a["pixels"].reshape(n, 4)
        return {"pixels": np.concatenate([table[pixels[:, :3]], pixels[:, 3:]], 1)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "pixels": Random("uint8", 4 * n, 0, 256),
            "cdf": cdf,
            "lowest": np.uint32(cdf[3]),
            "total": np.uint32(cdf[-1]),
            "n": np.uint32(n),
        },
        reference,
    )


@GROUP.case(cpu={"sw": 90, "sh": 61, "dw": 133, "dh": 101}, gpu={"sw": 2500, "sh": 1800, "dw": 5003, "dh": 3001})
def resize_bilinear(rng: Rng, sw: int, sh: int, dw: int, dh: int) -> Launch:
    def axis(source: int, target: int) -> tuple[Array, Array, Array]:
        at = (np.arange(target) + 0.5) * source / target - 0.5
        low = np.floor(at).astype(int)
        return np.maximum(low, 0), np.minimum(low + 1, source - 1), at - low

    def invariant(before: Arrays, after: Arrays) -> None:
        image = before["src"].reshape(sh, sw, 4).astype(np.float64)
        (x0, x1, fx), (y0, y1, fy) = axis(sw, dw), axis(sh, dh)
        rows = image[y0] * (1 - fy[:, None, None]) + image[y1] * fy[:, None, None]
        smooth = rows[:, x0] * (1 - fx[:, None]) + rows[:, x1] * fx[:, None]
        assert np.abs(after["dst"].reshape(dh, dw, 4) - smooth).max() < 0.75, "a pixel is off by more than rounding"

    return Launch(
        (up(dw, 16), up(dh, 16)),
        (16, 16),
        {
            "src": Random("uint8", 4 * sw * sh, 0, 256),
            "dst": Zeros("uint8", 4 * dw * dh),
            "sw": np.int32(sw),
            "sh": np.int32(sh),
            "dw": np.int32(dw),
            "dh": np.int32(dh),
        },
        invariant=invariant,
    )


@GROUP.case(cpu={"w": 301, "h": 200}, gpu={"w": 2003, "h": 8000})
def integral_rows(rng: Rng, w: int, h: int) -> Launch:
    return Launch(
        (up(h, 64),),
        (64,),
        {"img": Random("uint8", w * h, 0, 256), "sums": Zeros("uint32", w * h), **size(w, h)},
        lambda a: {"sums": np.cumsum(a["img"].reshape(h, w), 1, dtype=np.uint32)},
    )


@GROUP.case(cpu={"w": 131, "h": 70}, gpu={"w": 6003, "h": 4001}, any_order=("edge",))
def canny_hysteresis(rng: Rng, w: int, h: int) -> Launch:
    """Groups may see what others wrote or not, except that the new mark's low bits are those of a strong edge."""
    chance = rng.integers(0, 256, w * h, np.uint8)
    edge = (chance >= 128).astype(np.uint8) + (chance >= 248)

    def invariant(before: Arrays, after: Arrays) -> None:
        old, new = edge.reshape(h, w), after["edge"].reshape(h, w)
        strong = (new & 3) == 2
        assert (strong | (new == old)).all(), "a pixel changed that did not become strong"
        assert (old[new != old] == 1).all(), "a pixel became strong that was not weak"
        inner = (np.arange(h)[:, None] % 16 % 15 > 0) & (np.arange(w) % 16 % 15 > 0)
        beside = np.max(windows(np.pad(old, 1)), 0)[1:-1, 1:-1] == 2
        assert strong[(old == 1) & beside & inner].all(), "a weak pixel beside a strong one stayed weak"
        assert int(after["changed"][0]) == int((new != old).any()), "the flag is wrong"

    return Launch(
        (up(w, 16), up(h, 16)),
        (16, 16),
        {"edge": edge, "changed": Zeros("int32", 1), **size(w, h)},
        invariant=invariant,
    )


@GROUP.case(cpu={"blocks": 301}, gpu={"blocks": 300001})
def quantise_zigzag(rng: Rng, blocks: int) -> Launch:
    places = sorted(np.ndindex(8, 8), key=lambda p: (sum(p), p[0] if sum(p) % 2 else p[1]))
    zigzag = np.array([8 * y + x for y, x in places], np.uint8)

    def reference(a: Arrays) -> Arrays:
        steps = np.maximum(1, QUALITY * np.float32(1.5)).astype(np.float32)
        q = np.rint(a["coef"].reshape(blocks, 64) / steps).astype(np.int16)[:, zigzag]
        return {"out": q, "used": np.where(q != 0, np.arange(1, 65), 0).max(1).astype(np.uint8)}

    return Launch(
        (up(blocks, 64),),
        (64,),
        {
            "coef": Random("float32", 64 * blocks, -90, 90),
            "zigzag": zigzag,
            "out": Zeros("int16", 64 * blocks),
            "used": Zeros("uint8", blocks),
            "blocks": np.int32(blocks),
            "scale": np.float32(1.5),
        },
        reference,
        outliers=1e-3,
    )
