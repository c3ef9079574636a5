"""Holds lattice Boltzmann methods and finite volumes."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("fluids", "fluids.cl")
CELL = np.dtype([("q", "f4", 9)], align=True)
STATE = np.dtype([(name, "f4") for name in ("rho", "mx", "my", "energy")], align=True)
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
WAYS = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
OPPOSITE = [0, 3, 4, 1, 2, 7, 8, 5, 6]


def equilibrium(rho: Array, ux: Array, uy: Array) -> Array:
    cu = 3 * (WAYS[:, :1] * ux + WAYS[:, 1:] * uy)
    return np.asarray(rho * WEIGHTS[:, None] * (1 + cu + 0.5 * cu * cu - 1.5 * (ux * ux + uy * uy)))


@GROUP.case(cpu={"nx": 101, "ny": 60}, gpu={"nx": 2003, "ny": 1500})
def lbm_push(rng: Rng, nx: int, ny: int) -> Launch:
    n = nx * ny
    solid = (rng.random(n) < 0.05).astype(np.uint8)

    def reference(a: Arrays) -> Arrays:
        f = a["f"].reshape(9, n).astype(np.float64)
        rho = f.sum(0)
        ux, uy = (WAYS.T @ f) / rho
        out = np.where(solid, f[OPPOSITE], f + 1.2 * (equilibrium(rho, ux, uy) - f)).reshape(9, ny, nx)
        return {"g": np.stack([np.roll(plane, (y, x), (0, 1)) for plane, (x, y) in zip(out, WAYS, strict=True)])}

    return Launch(
        (up(nx, 64), up(ny, 2)),
        (64, 2),
        {
            "f": Random("float32", 9 * n, 0.1, 0.2),
            "g": Zeros("float32", 9 * n),
            "solid": solid,
            "nx": np.int32(nx),
            "ny": np.int32(ny),
            "omega": np.float32(1.2),
        },
        reference,
    )


@GROUP.case(cpu={"n": 5001}, gpu={"n": 3000001})
def lbm_collide_structs(rng: Rng, n: int) -> Launch:
    cells = (0.1 + 0.1 * rng.random((n, 9), np.float32)).astype(np.float32)

    def reference(a: Arrays) -> Arrays:
        f = cells.T.astype(np.float64)
        rho = f.sum(0)
        ux, uy = (WAYS.T @ f) / rho
        out = -0.7 * f + 1.7 * equilibrium(rho, ux + 0.01, uy)
        return {"cells": np.ascontiguousarray(out.T.astype(np.float32)).view(CELL).reshape(-1)}

    return Launch(
        (up(n, 128),),
        (128,),
        {"cells": cells.view(CELL).reshape(-1), "n": np.int32(n), "omega": np.float32(1.7), "force": np.float32(0.01)},
        reference,
    )


@GROUP.case(cpu={"n": 4001}, gpu={"n": 3000001})
def lbm_pull_indexed(rng: Rng, n: int) -> Launch:
    cells = np.arange(n, dtype=np.int32)
    width = max(2, int(n**0.5))
    sources = np.stack([(cells + step) % n for step in (-1, -width, 1, width)]).astype(np.int32)
    walls = rng.random((4, n)) < 0.02
    sources[walls] = np.broadcast_to(cells, (4, n))[walls]

    def reference(a: Arrays) -> Arrays:
        f = a["f"].reshape(5, n)
        pulled = np.stack([f[0]] + [f[k + 1][sources[k]] for k in range(4)])
        rho = pulled.sum(0)
        ux, uy = (pulled[1] - pulled[3]) / rho, (pulled[2] - pulled[4]) / rho
        rest = [rho / 3] + [rho / 6 * (1 + 3 * u) for u in (ux, uy, -ux, -uy)]
        return {"out": pulled + 0.8 * (np.stack(rest) - pulled)}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "f": Random("float64", 5 * n, 0.1, 0.3),
            "out": Zeros("float64", 5 * n),
            "from": sources.reshape(-1),
            "n": np.int32(n),
            "tau_inv": np.float64(0.8),
        },
        reference,
        tolerance=1e-10,
    )


def states(rng: Rng, n: int) -> Array:
    values = rng.random((n, 4), np.float32)
    return np.asarray(values * np.array([0.5, 0.6, 0.6, 1.0]) + np.array([1.0, -0.3, -0.3, 2.5]), np.float32)


@GROUP.case(cpu={"n": 3001}, gpu={"n": 2000003})
def unstructured_flux(rng: Rng, n: int) -> Launch:
    cells = states(rng, n)
    near = np.arange(n, dtype=np.int32) + rng.integers(-300, 300, (3, n), np.int32)
    near = np.where((near < 0) | (near >= n), -1 - (near < 0), near).astype(np.int32)
    normals = rng.random((3, n, 2), np.float32) - np.float32(0.5) + np.float32(0.01)
    far = np.array([1.2, 0.2, 0.1, 2.6], np.float32)

    def pressure(s: Array) -> Array:
        return np.asarray(0.4 * (s[:, 3] - 0.5 * (s[:, 1] ** 2 + s[:, 2] ** 2) / s[:, 0]))

    def flux(s: Array, nx: Array, ny: Array) -> tuple[Array, Array]:
        p, un = pressure(s), (s[:, 1] * nx + s[:, 2] * ny) / s[:, 0]
        parts = [s[:, 0] * un, s[:, 1] * un + p * nx, s[:, 2] * un + p * ny, (s[:, 3] + p) * un]
        return np.stack(parts, 1), np.abs(un) + np.sqrt(1.4 * p / s[:, 0])

    def reference(a: Arrays) -> Arrays:
        me, total = cells.astype(np.float64), np.zeros((n, 4))
        for neighbours, d in zip(near, normals.astype(np.float64), strict=True):
            other = np.where((neighbours == -2)[:, None], far, me[neighbours])
            area = np.hypot(d[:, 0], d[:, 1])
            nx, ny = d[:, 0] / area, d[:, 1] / area
            (fa, ua), (fb, ub) = flux(me, nx, ny), flux(other, nx, ny)
            inner = 0.5 * area[:, None] * (fa + fb - np.maximum(ua, ub)[:, None] * (other - me))
            wall = np.pad(pressure(me)[:, None] * d, ((0, 0), (1, 1)))
            total += np.where((neighbours == -1)[:, None], wall, inner)
        return {"residual": total.astype(np.float32).view(STATE).reshape(-1)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "cells": cells.view(STATE).reshape(-1),
            "neighbour": near.reshape(-1),
            "normal": normals.reshape(-1),
            "residual": Zeros(STATE, n),
            "far_field": far.view(STATE)[0],
            "n": np.int32(n),
        },
        reference,
        tolerance=1e-3,
    )


@GROUP.case(cpu={"faces": 10000}, gpu={"faces": 12000007})
def shallow_water_hll(rng: Rng, faces: int) -> Launch:
    n = faces + 1
    h = np.where(rng.random(n) < 0.3, 0, 2 * rng.random(n))

    def reference(a: Arrays) -> Arrays:
        u = np.where(h < 1e-6, 0, a["hu"] / np.maximum(h, 1e-6))
        c, m = np.sqrt(9.81 * h), h * u
        p = m * u + 0.5 * 9.81 * h * h
        sl, sr = (u - c), (u + c)
        sl, sr = np.minimum(sl[:-1], sl[1:]), np.maximum(sr[:-1], sr[1:])
        dry = (h[:-1] < 1e-6) & (h[1:] < 1e-6)
        out = {}
        for name, f, q in (("fh", m, h), ("fhu", p, m)):
            middle = (sr * f[:-1] - sl * f[1:] + sl * sr * (q[1:] - q[:-1])) / np.where(dry, 1, sr - sl)
            out[name] = np.where(dry, 0, np.where(sl >= 0, f[:-1], np.where(sr <= 0, f[1:], middle)))
        return out

    return Launch(
        (up(faces, 256),),
        (256,),
        {
            "h": h,
            "hu": Random("float64", n, -4, 4),
            "fh": Zeros("float64", faces),
            "fhu": Zeros("float64", faces),
            "faces": np.int32(faces),
        },
        reference,
        tolerance=1e-9,
    )


@GROUP.case(cpu={"n": 2003}, gpu={"n": 3000001})
def riemann_star(rng: Rng, n: int) -> Launch:
    def invariant(before: Arrays, after: Arrays) -> None:
        p, total = after["star"].astype(np.float64), np.zeros(n)
        for side, sign in (("left", -1), ("right", 1)):
            rho, u, pk, _ = before[side].reshape(n, 4).astype(np.float64).T
            c = np.sqrt(1.4 * pk / rho)
            shock = (p - pk) * np.sqrt(2 / (2.4 * rho) / (p + 0.4 / 2.4 * pk))
            total += np.where(p > pk, shock, 5 * c * ((p / pk) ** (0.2 / 1.4) - 1)) + sign * u
        assert (p > 0).all(), "a pressure is not positive"
        assert np.abs(total).max() < 1e-3, f"velocities behind the waves differ by {np.abs(total).max()}"

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "left": Random("float32", 4 * n, 0.5, 1.5),
            "right": Random("float32", 4 * n, 0.5, 1.5),
            "star": Zeros("float32", n),
            "n": np.int32(n),
        },
        invariant=invariant,
    )


@GROUP.case(cpu={"w": 201, "h": 150}, gpu={"w": 4003, "h": 3000})
def advect(rng: Rng, w: int, h: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        q, v = a["q"].reshape(h, w), a["velocity"].reshape(h, w, 2).astype(np.float64)
        y, x = np.mgrid[:h, :w]
        x, y = np.clip(x - 1.5 * v[..., 0], 0, w - 1.001), np.clip(y - 1.5 * v[..., 1], 0, h - 1.001)
        i, j = x.astype(int), y.astype(int)
        s, t = x - i, y - j
        return {
            "out": (1 - t) * ((1 - s) * q[j, i] + s * q[j, i + 1]) + t * ((1 - s) * q[j + 1, i] + s * q[j + 1, i + 1])
        }

    return Launch(
        (up(w, 32), up(h, 8)),
        (32, 8),
        {
            "q": Random("float32", w * h),
            "velocity": Random("float32", 2 * w * h, -2, 2),
            "out": Zeros("float32", w * h),
            "w": np.int32(w),
            "h": np.int32(h),
            "dt": np.float32(1.5),
        },
        reference,
        tolerance=1e-3,
    )
