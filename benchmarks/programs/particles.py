"""Holds particles that pull each other, lists of neighbours, and particles with fields on grids."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("particles", "particles.cl")
BODY = np.dtype([(name, "f4") for name in ("x", "y", "z", "mass", "vx", "vy", "vz")], align=True)
CELLS = np.dtype([("nx", "i4"), ("ny", "i4"), ("nz", "i4"), ("size", "f4")], align=True)
VEC3 = np.dtype([(name, "f4") for name in "xyz"], align=True)
ATOM = np.dtype([("position", VEC3), ("velocity", VEC3), ("kind", "u1"), ("frozen", "u1")], align=True)
SETUP = np.dtype([("inverse_mass", "f4", 3), ("gravity", VEC3), ("dt", "f4"), ("lowest", "f4")], align=True)
POINT = np.dtype([("x", "f4"), ("y", "f4")], align=True)
QUAD_NODE = np.dtype([("centre", POINT), ("mass", "f4"), ("size", "f4"), ("child", "i4")], align=True)
CHARGED = np.dtype([(name, "f4") for name in ("x", "y", "vx", "vy")], align=True)


@GROUP.case(cpu={"n": 501}, gpu={"n": 20011})
def nbody_structs(rng: Rng, n: int) -> Launch:
    bodies = rng.random((n, 7), np.float32)

    def reference(a: Arrays) -> Arrays:
        position, mass = bodies[:, :3].astype(np.float64), bodies[:, 3]
        d = position[None] - position[:, None]
        pull = ((mass[None] / ((d**2).sum(2) + 0.01) ** 1.5)[:, :, None] * d).sum(1)
        out = bodies.astype(np.float64)
        out[:, 4:] += 0.01 * pull
        out[:, :3] += 0.01 * out[:, 4:]
        return {"out": out.astype(np.float32).view(BODY).reshape(-1)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "in": bodies.view(BODY).reshape(-1),
            "out": Zeros(BODY, n),
            "n": np.int32(n),
            "dt": np.float32(0.01),
            "soft2": np.float32(0.01),
        },
        reference,
    )


@GROUP.case(cpu={"n": 501}, gpu={"n": 15013})
def nbody_cutoff(rng: Rng, n: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        p = a["pos"].reshape(n, 4).astype(np.float64)
        d = p[:, None, :3] - p[None, :, :3]
        d -= 2 * np.rint(d / 2)
        r2 = (d**2).sum(2)
        s = np.where((r2 < 0.25) & (r2 > 0), p[:, 3, None] * p[:, 3] / np.maximum(r2, 1e-30) ** 1.5, 0)
        return {"force": np.concatenate([(s[:, :, None] * d).sum(1), (s * r2).sum(1)[:, None]], 1)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "pos": Random("float32", 4 * n, 0, 2),
            "force": Zeros("float32", 4 * n),
            "n": np.uint32(n),
            "box": np.float32(2),
            "cutoff": np.float32(0.5),
        },
        reference,
        tolerance=1e-3,
        outliers=0.01,
    )


@GROUP.case(cpu={"n": 2001, "side": 6}, gpu={"n": 1000003, "side": 60})
def cell_list_forces(rng: Rng, n: int, side: int) -> Launch:
    position = rng.random((n, 4), np.float32)
    size = np.float32(1 / side)
    cells = np.minimum((position[:, :3] / size).astype(np.int64), side - 1) @ np.array([1, side, side * side])
    order = np.argsort(cells, kind="stable")
    position = position[order]
    start = np.searchsorted(cells[order], np.arange(side**3 + 1)).astype(np.int32)

    def reference(a: Arrays) -> Arrays:
        d = position[:, None, :3].astype(np.float64) - position[None, :, :3]
        r = np.sqrt((d**2).sum(2))
        push = np.where(r < size, (size - r) / np.maximum(r, 1e-6), 0)
        return {"force": np.pad((push[:, :, None] * d).sum(1), ((0, 0), (0, 1)))}

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "pos": position.reshape(-1),
            "cell_start": start,
            "force": Zeros("float32", 4 * n),
            "g": np.array((side, side, side, size), CELLS)[()],
            "n": np.int32(n),
        },
        reference,
        outliers=0.01,
    )


@GROUP.case(cpu={"n": 1001, "most": 20}, gpu={"n": 300007, "most": 60})
def lj_neighbours(rng: Rng, n: int, most: int) -> Launch:
    count = rng.integers(most // 2, most + 1, n, np.int32)
    offsets = rng.integers(1, 200, (most, n), np.int32)
    neighbours = (np.arange(n, dtype=np.int32) + offsets) % n
    x = np.stack([0.3 * np.arange(n) % 9, 1.1 * (np.arange(n) % 17), np.arange(n) / 40], 1) + 0.1 * rng.random((n, 3))

    def reference(a: Arrays) -> Arrays:
        d = x[None] - x[neighbours]
        r2 = (d**2).sum(2)
        near = (np.arange(most)[:, None] < count) & (r2 < 9)
        r6 = 0.9 / r2**3
        w = np.where(near, 48 * 0.7 * r6 * (r6 - 0.5) / r2, 0)
        energy = np.where(near, 2 * 0.7 * r6 * (r6 - 1), 0).sum(0)
        return {"f": (w[:, :, None] * d).sum(0), "energy": energy}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "x": x.reshape(-1),
            "neighbours": neighbours.reshape(-1),
            "count": count,
            "f": Zeros("float64", 3 * n),
            "energy": Zeros("float64", n),
            "n": np.int32(n),
            "most": np.int32(most),
            "cut2": np.float64(9),
            "eps": np.float64(0.7),
            "sigma6": np.float64(0.9),
        },
        reference,
        tolerance=1e-9,
    )


def cells_of(position: Array, cells: int) -> tuple[Array, Array, Array]:
    """Returns the particles that fit into cells of at most 8 particles, with the cells' counts and items."""
    where = (position * np.float32(cells)).astype(np.int64) @ np.array([1, cells])
    order = np.argsort(where, kind="stable")
    where = where[order]
    rank = np.arange(len(where)) - np.searchsorted(where, where)
    kept = rank < 8
    position, where, rank = position[order][kept], where[kept], rank[kept]
    items = np.zeros(cells * cells * 8, np.int32)
    items[where * 8 + rank] = np.arange(len(where))
    return position, np.bincount(where, minlength=cells * cells).astype(np.uint8), items


@GROUP.case(cpu={"n": 1500, "cells": 20}, gpu={"n": 2000000, "cells": 800})
def sph_density(rng: Rng, n: int, cells: int) -> Launch:
    position, count, items = cells_of(rng.random((n, 2), np.float32), cells)
    h = np.float32(1 / cells)
    n = len(position)

    def reference(a: Arrays) -> Arrays:
        d = position[:, None].astype(np.float64) - position[None]
        depth = np.maximum(float(h) ** 2 - (d**2).sum(2), 0)
        return {"density": 1e-3 * 1.5666815 * (depth**3).sum(1) / float(h) ** 9}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "pos": position.reshape(-1),
            "cell_count": count,
            "cell_items": items,
            "density": Zeros("float32", n),
            "n": np.int32(n),
            "cells": np.int32(cells),
            "h": h,
            "mass": np.float32(1e-3),
        },
        reference,
        tolerance=1e-3,
    )


@GROUP.case(cpu={"nx": 201, "ny": 150}, gpu={"nx": 5003, "ny": 4000})
def fdtd_electric(rng: Rng, nx: int, ny: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        ez, hx, hy = (a[name].reshape(ny, nx) for name in ("ez", "hx", "hy"))
        out = ez.copy()
        factor = a["coefficient"][a["material"]].reshape(ny, nx)[1:, 1:]
        out[1:, 1:] += factor * (hy[1:, 1:] - hy[1:, :-1] - hx[1:, 1:] + hx[:-1, 1:])
        return {"ez": out}

    n = nx * ny
    return Launch(
        (up(nx, 32), up(ny, 4)),
        (32, 4),
        {
            "ez": Random("float32", n, -1, 1),
            "hx": Random("float32", n, -1, 1),
            "hy": Random("float32", n, -1, 1),
            "material": Random("uint8", n, 0, 5),
            "coefficient": Random("float32", 5, 0.1, 0.7),
            "nx": np.int32(nx),
            "ny": np.int32(ny),
        },
        reference,
    )


@GROUP.case(cpu={"nx": 40, "ny": 21, "nz": 19}, gpu={"nx": 250, "ny": 257, "nz": 190})
def fdtd_magnetic_3d(rng: Rng, nx: int, ny: int, nz: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        h, e = a["h"].reshape(nz, ny, nx, 4).copy(), a["e"].reshape(nz, ny, nx, 4)
        here = e[:-1, :-1, :-1]
        dx, dy, dz = e[:-1, :-1, 1:] - here, e[:-1, 1:, :-1] - here, e[1:, :-1, :-1] - here
        curl = np.stack([dy[..., 2] - dz[..., 1], dz[..., 0] - dx[..., 2], dx[..., 1] - dy[..., 0], 0 * dx[..., 0]], -1)
        h[:-1, :-1, :-1] -= np.float32(0.4) * curl
        return {"h": h}

    n = 4 * nx * ny * nz
    return Launch(
        (up(nx, 32), up(ny, 4), up(nz, 2)),
        (32, 4, 2),
        {
            "h": Random("float32", n, -1, 1),
            "e": Random("float32", n, -1, 1),
            "nx": np.int32(nx),
            "ny": np.int32(ny),
            "nz": np.int32(nz),
            "s": np.float32(0.4),
        },
        reference,
    )


@GROUP.case(
    cpu={"n": 9001, "nx": 50, "ny": 31, "items": 1024}, gpu={"n": 8000009, "nx": 1000, "ny": 801, "items": 270336}
)
def pic_deposit(rng: Rng, n: int, nx: int, ny: int, items: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        ix, iy = a["px"].astype(np.int32), a["py"].astype(np.int32)
        kept = (ix < nx - 1) & (iy < ny - 1)
        ix, iy = ix[kept], iy[kept]
        wx, wy = (((a[name][kept] - at) * 256).astype(np.int32) for name, at in (("px", ix), ("py", iy)))
        charge = np.zeros((ny, nx), np.int32)
        for i in (0, 1):
            for j in (0, 1):
                np.add.at(charge, (iy + j, ix + i), (wx if i else 256 - wx) * (wy if j else 256 - wy))
        return {"charge": charge}

    return Launch(
        (items,),
        (256,),
        {
            "px": Random("float32", n, 0, nx),
            "py": Random("float32", n, 0, ny),
            "charge": Zeros("int32", nx * ny),
            "n": np.int32(n),
            "nx": np.int32(nx),
            "ny": np.int32(ny),
        },
        reference,
    )


@GROUP.case(cpu={"n": 9001, "nx": 50, "ny": 31}, gpu={"n": 6000001, "nx": 1000, "ny": 801})
def pic_push(rng: Rng, n: int, nx: int, ny: int) -> Launch:
    state = rng.random((n, 4), np.float32) * np.array([nx - 1, ny - 1, 4, 4], np.float32)
    state[:, 2:] -= 2

    def reference(a: Arrays) -> Arrays:
        x, y, vx, vy = state.astype(np.float64).T
        field = a["field"].reshape(ny, nx, 2)
        ix, iy = np.minimum(x.astype(int), nx - 2), np.minimum(y.astype(int), ny - 2)
        fx, fy = (x - ix)[:, None], (y - iy)[:, None]
        low = field[iy, ix] * (1 - fx) + field[iy, ix + 1] * fx
        high = field[iy + 1, ix] * (1 - fx) + field[iy + 1, ix + 1] * fx
        e = low * (1 - fy) + high * fy
        moved = []
        for at, v, size, force in ((x, vx, nx - 1, e[:, 0]), (y, vy, ny - 1, e[:, 1])):
            v = v + 0.5 * force
            at = at + 0.5 * v
            at, v = np.where(at < 0, -at, at), np.where(at < 0, -v, v)
            moved.append((np.where(at > size, 2 * size - at, at), np.where(at > size, -v, v)))
        (x, vx), (y, vy) = moved
        return {"p": np.stack([x, y, vx, vy], 1).astype(np.float32).view(CHARGED).reshape(-1)}

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "p": state.view(CHARGED).reshape(-1),
            "field": Random("float32", 2 * nx * ny, -1, 1),
            "n": np.int32(n),
            "nx": np.int32(nx),
            "ny": np.int32(ny),
            "dt": np.float32(0.5),
        },
        reference,
        outliers=0.001,
    )


@GROUP.case(cpu={"n": 300, "waves": 201}, gpu={"n": 20000, "waves": 8191})
def ewald_structure(rng: Rng, n: int, waves: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        charges = a["charges"].reshape(n, 4).astype(np.float64)
        phases = 0.6 * a["waves"].reshape(waves, 4)[:, :3] @ charges[:, :3].T
        return {"factor": np.stack([np.cos(phases) @ charges[:, 3], np.sin(phases) @ charges[:, 3]], 1)}

    return Launch(
        (up(waves, 32),),
        (32,),
        {
            "charges": Random("float32", 4 * n),
            "waves": Random("int32", 4 * waves, -6, 7),
            "factor": Zeros("float32", 2 * waves),
            "n": np.int32(n),
            "nwaves": np.int32(waves),
            "two_pi_over_box": np.float32(0.6),
        },
        reference,
        tolerance=1e-3,
    )


@GROUP.case(cpu={"n": 3001}, gpu={"n": 4000037})
def leapfrog_atoms(rng: Rng, n: int) -> Launch:
    atoms = np.zeros(n, ATOM)
    moving = rng.random((n, 6), np.float32)
    for place, name in enumerate(("position", "velocity")):
        for axis in range(3):
            atoms[name]["xyz"[axis]] = moving[:, 3 * place + axis]
    atoms["velocity"]["z"] -= 1
    atoms["kind"], atoms["frozen"] = rng.integers(0, 3, n), rng.random(n, np.float32) < 0.1
    setup = np.array([((1.0, 0.5, 0.1), (0.0, 0.0, -9.81), 0.02, 0.1)], SETUP)

    def reference(a: Arrays) -> Arrays:
        out = atoms.copy()
        inverse = np.array([1.0, 0.5, 0.1])[atoms["kind"]]
        force = a["force"].reshape(n, 3)
        for axis, gravity in zip("xyz", (0, 0, -9.81), strict=True):
            out["velocity"][axis] += 0.02 * (gravity + inverse * force[:, "xyz".index(axis)])
            out["position"][axis] += np.float32(0.02) * out["velocity"][axis]
        below = out["position"]["z"] < np.float32(0.1)
        out["position"]["z"][below] = 0.2 - out["position"]["z"][below]
        out["velocity"]["z"][below] *= -0.5
        out[atoms["frozen"] == 1] = atoms[atoms["frozen"] == 1]
        return {"atoms": out}

    return Launch(
        (up(n, 128),),
        (128,),
        {"atoms": atoms, "force": Random("float32", 3 * n, -3, 3), "setup": setup, "n": np.int32(n)},
        reference,
        outliers=1e-3,
    )


def quadtree(bodies: Array, levels: int) -> Array:
    """Returns a full tree over the unit square, level by level, in which four children follow one another."""
    cell = np.minimum((bodies * 2**levels).astype(np.int64), 2**levels - 1)
    code = np.zeros(len(bodies), np.int64)
    for bit in range(levels):
        code |= (cell[:, 0] >> bit & 1) << (2 * bit) | (cell[:, 1] >> bit & 1) << (2 * bit + 1)
    parts = []
    for level in range(levels + 1):
        nodes = np.zeros(4**level, QUAD_NODE)
        mass, *moments = (
            np.bincount(code >> 2 * (levels - level), weights, 4**level) for weights in (None, *bodies.T.astype("f8"))
        )
        nodes["mass"], nodes["size"] = mass, 0.5**level
        for axis, moment in zip("xy", moments, strict=True):
            nodes["centre"][axis] = moment / np.maximum(mass, 1)
        below = (4 ** (level + 1) - 1) // 3
        nodes["child"] = -1 if level == levels else below + 4 * np.arange(4**level)
        parts.append(nodes)
    return np.concatenate(parts)


@GROUP.case(cpu={"n": 301, "levels": 4}, gpu={"n": 300007, "levels": 8})
def barnes_hut_walk(rng: Rng, n: int, levels: int) -> Launch:
    bodies = rng.random((n, 2), np.float32)
    nodes = quadtree(bodies, levels)

    def reference(a: Arrays) -> Arrays:
        seen, total = np.zeros((n, len(nodes)), bool), np.zeros((n, 2))
        seen[:, 0] = True
        for index, node in enumerate(nodes):
            if node["mass"] == 0:
                continue
            d = np.array(node["centre"].item()) - bodies.astype(np.float64)
            r2 = (d**2).sum(1)
            opened = seen[:, index] & (node["child"] >= 0) & (node["size"] ** 2 >= np.float32(0.25) * r2)
            if node["child"] >= 0:
                seen[:, node["child"] : node["child"] + 4] = opened[:, None]
            near = (seen[:, index] & ~opened)[:, None]
            total += np.where(near, node["mass"] / (r2 + 1e-4)[:, None] * d, 0)
        return {"acceleration": total.astype(np.float32).view(POINT).reshape(-1)}

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "nodes": nodes,
            "bodies": bodies.view(POINT).reshape(-1),
            "acceleration": Zeros(POINT, n),
            "n": np.int32(n),
            "theta2": np.float32(0.25),
            "soft2": np.float32(1e-4),
        },
        reference,
        tolerance=1e-3,
        outliers=0.02,
    )
