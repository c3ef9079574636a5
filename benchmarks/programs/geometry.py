"""Holds rays, fractals, contours and meshes."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("geometry", "geometry.cl")
RAY = np.dtype({"names": ["origin", "direction"], "formats": [("f4", 3)] * 2, "offsets": [0, 16], "itemsize": 32})
TRIANGLE = np.dtype([("a", "i4"), ("b", "i4"), ("c", "i4")], align=True)
HIT = np.dtype([("t", "f4"), ("u", "f4"), ("v", "f4"), ("triangle", "i4")], align=True)
MATRIX = np.dtype([("row", "f4", (4, 4))], align=True)
PALETTE = np.array(
    [[0, 0, 40, 255], [10, 90, 200, 255], [240, 240, 180, 255], [250, 160, 0, 255], [0, 0, 0, 255]], np.uint8
)


@GROUP.case(cpu={"w": 120, "h": 77}, gpu={"w": 3840, "h": 2160})
def sphere_trace(rng: Rng, w: int, h: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        y, x = np.mgrid[:h, :w]
        ray = np.stack([(x - 0.5 * w) / w, (0.5 * h - y) / w, np.ones((h, w))])
        ray /= np.sqrt((ray**2).sum(0))
        t, steps, going = np.zeros((h, w)), np.full((h, w), 200, np.uint8), np.ones((h, w), bool)
        for k in range(200):
            p = t * ray
            ball = np.sqrt(p[0] ** 2 + p[1] ** 2 + (p[2] - 3) ** 2) - 1
            small = np.sqrt((p[0] - 1) ** 2 + (p[1] - 0.5) ** 2 + (p[2] - 2.2) ** 2) - 0.4
            d = np.minimum(np.minimum(ball, small), p[1] + 1)
            near = going & (d < 0.001)
            t = np.where(going & ~near, t + d, t)
            ended = near | (going & (t > 20))
            steps[ended], going = k, going & ~ended
        return {"depth": np.where(t > 20, np.inf, t), "steps": steps}

    return Launch(
        (up(w, 16), up(h, 8)),
        (16, 8),
        {
            "depth": Zeros("float32", w * h),
            "steps": Zeros("uint8", w * h),
            "w": np.int32(w),
            "h": np.int32(h),
            "max_steps": np.int32(200),
        },
        reference,
        tolerance=1e-3,
        outliers=0.02,
    )


@GROUP.case(cpu={"rays": 701, "triangles": 150}, gpu={"rays": 200003, "triangles": 2000})
def ray_triangles(rng: Rng, rays: int, triangles: int) -> Launch:
    vertices = np.pad(rng.uniform(-1, 1, (triangles, 3)), ((0, 0), (0, 1))).astype(np.float32)
    mesh = rng.integers(0, triangles, (triangles, 3), np.int32)
    beams = np.zeros(rays, RAY)
    beams["origin"] = rng.uniform(-0.2, 0.2, (rays, 3)) + np.array([0, 0, -3])
    beams["direction"] = rng.uniform(-0.3, 0.3, (rays, 3)) + np.array([0, 0, 1])

    def reference(a: Arrays) -> Arrays:
        corners = vertices[mesh][..., :3].astype(np.float64)
        origin, direction = (beams[name].astype(np.float64) for name in ("origin", "direction"))
        hits = np.zeros(rays, HIT)
        hits["t"], hits["triangle"] = np.inf, -1
        for k, (corner, second, third) in enumerate(corners):
            e1, e2 = second - corner, third - corner
            p = np.cross(direction, e2)
            det = p @ e1
            inverse = 1 / np.where(np.abs(det) < 1e-7, np.nan, det)
            s = origin - corner
            u = (s * p).sum(1) * inverse
            q = np.cross(s, e1)
            v, t = (direction * q).sum(1) * inverse, q @ e2 * inverse
            hit = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-4) & (t < hits["t"])
            for name, value in (("t", t), ("u", u), ("v", v), ("triangle", np.full(rays, k))):
                hits[name][hit] = value[hit]
        return {"hits": hits}

    return Launch(
        (up(rays, 64),),
        (64,),
        {
            "rays": beams,
            "vertices": vertices.reshape(-1),
            "triangles": mesh.view(TRIANGLE).reshape(-1),
            "hits": Zeros(HIT, rays),
            "nrays": np.int32(rays),
            "ntriangles": np.int32(triangles),
        },
        reference,
        tolerance=1e-3,
        outliers=0.01,
    )


@GROUP.case(cpu={"w": 120, "h": 83, "limit": 200}, gpu={"w": 2000, "h": 1501, "limit": 1000})
def mandelbrot(rng: Rng, w: int, h: int, limit: int) -> Launch:
    step = 3 / w

    def reference(a: Arrays) -> Arrays:
        c = (-2.2 + step * np.arange(w)) + 1j * (-1.1 + step * np.arange(h))[:, None]
        z, count = np.zeros_like(c), np.zeros((h, w), np.uint16)
        for _ in range(limit):
            inside = np.abs(z) <= 2
            count += inside
            z = np.where(inside, z * z + c, z)
        return {"iterations": count}

    return Launch(
        (up(w, 32), up(h, 4)),
        (32, 4),
        {
            "iterations": Zeros("uint16", w * h),
            "w": np.int32(w),
            "h": np.int32(h),
            "x0": np.float64(-2.2),
            "y0": np.float64(-1.1),
            "step": np.float64(step),
            "limit": np.int32(limit),
        },
        reference,
        outliers=0.01,
    )


@GROUP.case(cpu={"w": 90, "h": 71}, gpu={"w": 3001, "h": 2000})
def julia_quad(rng: Rng, w: int, h: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        offsets = np.array([0.25, 0.75])
        x = 3 * (np.arange(w)[:, None] + offsets) / w - 1.5
        y = 3 * (np.arange(h)[:, None] + offsets) / h - 1.5
        z = x[None, :, None, :] + 1j * y[:, None, :, None]
        count = np.zeros(z.shape, int)
        for _ in range(100):
            inside = np.abs(z) <= 2
            count += inside
            z = np.where(inside, z * z + complex(-0.5, 0.55), z)
        return {"image": PALETTE[np.digitize(count.sum((2, 3)), [30, 80, 200, 400])]}

    return Launch(
        (up(w * h, 64),),
        (64,),
        {
            "image": Zeros("uint8", 4 * w * h),
            "w": np.int32(w),
            "h": np.int32(h),
            "cx": np.float32(-0.5),
            "cy": np.float32(0.55),
        },
        reference,
        outliers=0.01,
    )


@GROUP.case(cpu={"w": 150, "h": 101}, gpu={"w": 5001, "h": 4000})
def marching_squares(rng: Rng, w: int, h: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        f = a["field"].reshape(h, w)
        over = (f > 0.5).astype(np.uint8)
        kind = over[:-1, :-1] | over[:-1, 1:] << 1 | over[1:, 1:] << 2 | over[1:, :-1] << 3
        crossed = over[:-1, :-1] != over[:-1, 1:]
        low, high = f[:-1, :-1].astype(np.float64), f[:-1, 1:]
        count = np.where((kind == 5) | (kind == 10), 2, np.where((kind == 0) | (kind == 15), 0, 1))
        cut = np.where(crossed, np.arange(w - 1) + (0.5 - low) / (high - low), -1)
        return {"kind": kind, "count": count.astype(np.uint8), "cut": cut}

    n = (w - 1) * (h - 1)
    return Launch(
        (up(w - 1, 32), up(h - 1, 8)),
        (32, 8),
        {
            "field": Random("float32", w * h),
            "kind": Zeros("uint8", n),
            "count": Zeros("uint8", n),
            "cut": Zeros("float32", n),
            "w": np.int32(w),
            "h": np.int32(h),
            "level": np.float32(0.5),
        },
        reference,
    )


@GROUP.case(cpu={"rays": 1003, "n": 30}, gpu={"rays": 1000003, "n": 256})
def voxel_walk(rng: Rng, rays: int, n: int) -> Launch:
    solid = (rng.random(n**3, np.float32) < 1.5 / n).astype(np.uint8)
    directions = rng.random((rays, 3), np.float32) - np.float32(0.5)
    directions = np.where(np.abs(directions) < 0.01, np.float32(0.01), directions)

    def reference(a: Arrays) -> Arrays:
        o, d = a["origins"].reshape(rays, 3), directions
        at = o.astype(np.int32)
        step = np.where(d > 0, 1, -1)
        delta = np.abs(np.float32(1) / d)
        following = np.where(d > 0, at + np.float32(1) - o, o - at).astype(np.float32) * delta
        cell, visited, going = np.full(rays, -1, np.int32), np.zeros(rays, np.int32), np.arange(rays)
        while len(going):
            visited[going] += 1
            here = at[going] @ np.array([1, n, n * n])
            hit = solid[here] == 1
            cell[going[hit]] = here[hit]
            going = going[~hit]
            axis = following[going].argmin(1)
            at[going, axis] += step[going, axis]
            going, axis = (each[(at[going, axis] >= 0) & (at[going, axis] < n)] for each in (going, axis))
            following[going, axis] += delta[going, axis]
        return {"cell": cell, "visited": visited}

    return Launch(
        (up(rays, 64),),
        (64,),
        {
            "solid": solid,
            "origins": Random("float32", 3 * rays, 0, n),
            "directions": directions.reshape(-1),
            "cell": Zeros("int32", rays),
            "visited": Zeros("int32", rays),
            "n": np.int32(n),
            "rays": np.int32(rays),
        },
        reference,
        outliers=0.01,
    )


@GROUP.case(cpu={"n": 2003, "m": 101}, gpu={"n": 1000003, "m": 500})
def point_in_polygon(rng: Rng, n: int, m: int) -> Launch:
    angle = 2 * np.pi * np.arange(m) / m
    radius = 0.3 + 0.7 * rng.random(m)
    corners = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype(np.float32)

    def reference(a: Arrays) -> Arrays:
        x, y = a["points"].reshape(n, 2).T.astype(np.float64)
        inside = np.zeros(n, bool)
        for u, v in zip(corners.astype(np.float64), np.roll(corners, 1, 0), strict=True):
            between = (u[1] > y) != (v[1] > y)
            inside ^= between & (x < (v[0] - u[0]) * (y - u[1]) / (v[1] - u[1]) + u[0])
        return {"inside": inside.astype(np.uint8)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "points": Random("float32", 2 * n, -1, 1),
            "corners": corners.reshape(-1),
            "inside": Zeros("uint8", n),
            "n": np.int32(n),
            "m": np.int32(m),
        },
        reference,
        outliers=1e-3,
    )


# fast_normalize may be off by 8,192 in the last place, before its result becomes a byte.
@GROUP.case(cpu={"w": 151, "h": 90}, gpu={"w": 6001, "h": 5000}, any_rounding=("normal",))
def terrain_normals(rng: Rng, w: int, h: int) -> Launch:
    def invariant(before: Arrays, after: Arrays) -> None:
        height = np.pad(before["height"].reshape(h, w).astype(np.float64), 1, "edge")

        def span(size: int) -> Array:
            return np.where((np.arange(size) == 0) | (np.arange(size) == size - 1), 1, 2)

        dx = 0.01 * (height[1:-1, 2:] - height[1:-1, :-2]) / span(w)
        dy = 0.01 * (height[2:, 1:-1] - height[:-2, 1:-1]) / span(h)[:, None]
        normal = np.stack([-dx, -dy, np.ones((h, w))], -1) / np.sqrt(dx**2 + dy**2 + 1)[..., None]
        found = after["normal"].reshape(h, w, 4)
        assert np.abs(found[..., :3] - 127 * normal).max() < 0.6, "a normal is off by more than rounding"
        assert not found[..., 3].any(), "a fourth byte is not 0"

    return Launch(
        (up(w, 16), up(h, 16)),
        (16, 16),
        {
            "height": Random("int16", w * h, 0, 300),
            "normal": Zeros("int8", 4 * w * h),
            "w": np.int32(w),
            "h": np.int32(h),
            "scale": np.float32(0.01),
        },
        invariant=invariant,
    )


@GROUP.case(cpu={"n": 2003, "objects": 20}, gpu={"n": 8000009, "objects": 5000})
def transform_vertices(rng: Rng, n: int, objects: int) -> Launch:
    matrices = rng.uniform(-0.5, 0.5, (objects, 4, 4)).astype(np.float32)
    matrices[:, 3] = [0.01, 0.01, 0.02, 1]

    def reference(a: Arrays) -> Arrays:
        v = a["vertices"].reshape(n, 4).astype(np.float64)
        v[:, 3] = 1
        p = np.einsum("nij,nj->ni", matrices[a["object"]], v)
        clipped = (np.abs(p[:, :3]) > p[:, 3:]).any(1)
        screen = np.concatenate([p[:, :3] / p[:, 3:], 1 / p[:, 3:]], 1)
        return {"screen": np.where(clipped[:, None], 0, screen), "clipped": clipped.astype(np.uint8)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "vertices": Random("float32", 4 * n, -1.2, 1.2),
            "object": Random("uint16", n, 0, objects),
            "matrices": matrices.reshape(-1).view(MATRIX),
            "screen": Zeros("float32", 4 * n),
            "clipped": Zeros("uint8", n),
            "n": np.int32(n),
        },
        reference,
        outliers=1e-3,
    )
