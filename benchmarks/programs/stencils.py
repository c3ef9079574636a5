"""Holds stencils over grids of two and three dimensions, and cellular automata."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("stencils", "stencils.cl")
EXTENT = np.dtype([("x", "i4"), ("y", "i4"), ("z", "i4")], align=True)
GRAY = np.dtype([(name, "f4") for name in ("du", "dv", "feed", "kill", "dt")], align=True)


def around(u: Array) -> Array:
    """Returns the sum of the four neighbours of all inner points."""
    return np.asarray(u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1])


def heat(a: Arrays, nx: int, ny: int, keep_edge: bool) -> Array:
    u = a["u"].reshape(ny, nx)
    new = u.copy() if keep_edge else np.zeros_like(u)
    new[1:-1, 1:-1] = u[1:-1, 1:-1] + a["r"] * (around(u) - 4 * u[1:-1, 1:-1])
    return np.asarray(new)


@GROUP.case(cpu={"nx": 301, "ny": 203}, gpu={"nx": 4099, "ny": 4001})
def heat_2d(rng: Rng, nx: int, ny: int) -> Launch:
    return Launch(
        (up(nx, 16), up(ny, 16)),
        (16, 16),
        {
            "u": Random("float32", nx * ny),
            "unew": Zeros("float32", nx * ny),
            "nx": np.int32(nx),
            "ny": np.int32(ny),
            "r": np.float32(0.2),
        },
        lambda a: {"unew": heat(a, nx, ny, True)},
    )


@GROUP.case(cpu={"nx": 301, "ny": 203}, gpu={"nx": 6000, "ny": 4001})
def heat_2d_tile(rng: Rng, nx: int, ny: int) -> Launch:
    return Launch(
        (up(nx, 32), up(ny, 8)),
        (32, 8),
        {
            "u": Random("float32", nx * ny),
            "unew": Zeros("float32", nx * ny),
            "nx": np.int32(nx),
            "ny": np.int32(ny),
            "r": np.float32(0.2),
        },
        lambda a: {"unew": heat(a, nx, ny, False)},
    )


@GROUP.case(cpu={"x": 37, "y": 30, "z": 25}, gpu={"x": 301, "y": 250, "z": 203})
def laplace_3d_7(rng: Rng, x: int, y: int, z: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        u = a["in"].reshape(z, y, x)
        inner = (slice(1, -1),) * 3
        six = sum(np.roll(u, step, axis)[inner] for axis in range(3) for step in (-1, 1))
        out = np.zeros_like(u)
        out[inner] = 0.4 * u[inner] + 0.1 * six
        return {"out": out}

    return Launch(
        (up(x, 32), up(y, 4), up(z, 2)),
        (32, 4, 2),
        {
            "in": Random("float64", x * y * z),
            "out": Zeros("float64", x * y * z),
            "e": np.array((x, y, z), EXTENT)[()],
            "c0": np.float64(0.4),
            "c1": np.float64(0.1),
        },
        reference,
        tolerance=1e-12,
    )


@GROUP.case(cpu={"nx": 31, "ny": 22, "nz": 17}, gpu={"nx": 257, "ny": 255, "nz": 201})
def box_3d_27(rng: Rng, nx: int, ny: int, nz: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        u = np.pad(a["in"].reshape(nz, ny, nx), 1, "edge")
        weights = np.array([0.5, 0.05, 0.012, 0.007], np.float32)
        return {
            "out": sum(
                weights[sum(d != 1 for d in (i, j, k))] * u[k : k + nz, j : j + ny, i : i + nx]
                for i, j, k in np.ndindex(3, 3, 3)
            )
        }

    return Launch(
        (up(nx, 8), up(ny, 8), up(nz, 4)),
        (8, 8, 4),
        {
            "in": Random("float32", nx * ny * nz),
            "out": Zeros("float32", nx * ny * nz),
            "nx": np.int32(nx),
            "ny": np.int32(ny),
            "nz": np.int32(nz),
        },
        reference,
    )


@GROUP.case(cpu={"nx": 70, "ny": 39, "nz": 21}, gpu={"nx": 420, "ny": 380, "nz": 150})
def wave_march(rng: Rng, nx: int, ny: int, nz: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        u, before, velocity = (a[name].reshape(nz, ny, nx) for name in ("cur", "prev", "vel2"))
        lap = 3 * -2.5 * u
        for axis in range(3):
            for step, weight in ((1, 4 / 3), (2, -1 / 12)):
                lap = lap + weight * (np.roll(u, step, axis) + np.roll(u, -step, axis))
        inner = (slice(2, -2),) * 3
        out = np.zeros_like(u)
        out[inner] = (2 * u - before + velocity * lap)[inner]
        return {"next": out}

    n = nx * ny * nz
    return Launch(
        (up(nx - 4, 32), up(ny - 4, 4)),
        (32, 4),
        {
            "cur": Random("float32", n, -1, 1),
            "prev": Random("float32", n, -1, 1),
            "vel2": Random("float32", n, 0, 0.2),
            "next": Zeros("float32", n),
            "nx": np.int32(nx),
            "ny": np.int32(ny),
            "nz": np.int32(nz),
        },
        reference,
    )


@GROUP.case(cpu={"w": 250, "h": 199}, gpu={"w": 3333, "h": 2999})
def anisotropic_diffusion(rng: Rng, w: int, h: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        image = a["img"].reshape(h, w)
        u = np.pad(image, 1, "edge")
        slopes = [side - image for side in (u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:])]
        return {"out": image + 0.2 * sum(d / (1 + d * d / np.float32(0.09)) for d in slopes)}

    return Launch(
        (up(w, 16), up(h, 16)),
        (16, 16),
        {
            "img": Random("float32", w * h),
            "out": Zeros("float32", w * h),
            "w": np.int32(w),
            "h": np.int32(h),
            "kappa": np.float32(0.3),
            "lambda": np.float32(0.2),
        },
        reference,
    )


@GROUP.case(cpu={"n": 199}, gpu={"n": 4001})
def red_black_sor(rng: Rng, n: int) -> Launch:
    width = n + 2

    def reference(a: Arrays) -> Arrays:
        p = a["p"].reshape(width, width)
        y, x = np.mgrid[1 : n + 1, 1 : n + 1]
        here = (x + y) % 2 == 0
        new = p.copy()
        residual = around(p) - 4 * p[1:-1, 1:-1] - a["rhs"].reshape(width, width)[1:-1, 1:-1]
        new[1:-1, 1:-1] += np.where(here, 0.25 * 1.7 * residual, 0)
        return {"p": new}

    return Launch(
        (up(-(-n // 2), 32), up(n, 4)),
        (32, 4),
        {
            "p": Random("float64", width * width),
            "rhs": Random("float64", width * width),
            "n": np.int32(n),
            "colour": np.int32(1),
            "omega": np.float64(1.7),
        },
        reference,
        tolerance=1e-12,
    )


@GROUP.case(cpu={"width": 150, "height": 101}, gpu={"width": 8000, "height": 5001})
def game_of_life(rng: Rng, width: int, height: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        world = a["world"].reshape(height, width)
        alive = sum(np.roll(world, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - world
        return {"next": ((alive == 3) | ((alive == 2) & (world == 1))).astype(np.uint8)}

    return Launch(
        (up(width, 32), up(height, 8)),
        (32, 8),
        {
            "world": Random("uint8", width * height, 0, 2),
            "next": Zeros("uint8", width * height),
            "width": np.int32(width),
            "height": np.int32(height),
        },
        reference,
    )


@GROUP.case(cpu={"words": 10007}, gpu={"words": 20000003})
def rule_automaton(rng: Rng, words: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        bits = np.unpackbits(a["cells"].view(np.uint8), bitorder="little").astype(np.uint8)
        seen = 4 * np.roll(bits, 1) + 2 * bits + np.roll(bits, -1)
        return {"out": np.packbits((110 >> seen) & 1, bitorder="little").view(np.uint32)}

    return Launch(
        (up(words, 256),),
        (256,),
        {
            "cells": Random("uint32", words, 0, 2**32),
            "out": Zeros("uint32", words),
            "words": np.uint32(words),
            "rule": np.uint8(110),
        },
        reference,
    )


@GROUP.case(cpu={"n": 150}, gpu={"n": 3000})
def gray_scott(rng: Rng, n: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        s = a["s"].reshape(n, n, 2)
        lap = sum(np.roll(s, step, axis) for axis in (0, 1) for step in (-1, 1)) - 4 * s
        u, v = s[..., 0], s[..., 1]
        uvv = u * v * v
        du = 0.16 * lap[..., 0] - uvv + 0.035 * (1 - u)
        dv = 0.08 * lap[..., 1] + uvv - 0.1 * v
        return {"d": np.stack([u + du, v + dv], -1)}

    return Launch(
        (up(n, 16), up(n, 8)),
        (16, 8),
        {
            "s": Random("float32", 2 * n * n),
            "d": Zeros("float32", 2 * n * n),
            "g": np.array((0.16, 0.08, 0.035, 0.065, 1.0), GRAY)[()],
            "n": np.int32(n),
        },
        reference,
    )
