"""Global loads with a chosen amount of work on the chip for each (2018 slides, "Modeling local-global overlap")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, choice, number, size, work_group
from perfmodel.kernels.kernel import Kernel

# Multiply-adds of a round, each into a sum of its own, so that none waits for another.
WIDTH = 4
# From one multiply-add's element of local memory to the next; with every loaded one they all move on by one. Those
# that came again after a few elements, a compiler would keep in registers.
GAP = 9
MOST_LOADS = 64

ROUNDS = {
    "madd": "work[j] = work[j] * 0.25 + x",
    "local": f"work[j] = work[j] + x * shared[l + k + {GAP * WIDTH}*r + {GAP}*j]",
}


class Overlap(KernelGenerator):
    """Every work-item loads and sums m elements, and does some rounds of other work for each of them.

    A round is four multiply-adds: of registers and the element, or of the element and local memory.
    """

    name = "overlap"
    summary = "global loads with work on the chip for each"
    source = "2018 slides, Modeling local-global overlap"
    limits = "an m of more than 64"
    tags = (
        DTYPE,
        choice("onchip", "work on the chip: multiply-adds alone, or with a load from local memory each", *ROUNDS),
        number("ratio", f"rounds of {WIDTH} multiply-adds for one loaded element", 0, 1, 2, 4, 8, 16, 32, default=4),
        *work_group(256),
        size("n", "work-items", 2**20, 2**21),
        size("m", f"elements that a work-item loads, at most {MOST_LOADS}", 16, 64),
    )
    checks = (
        ("ratio:0,1,5", "lsize_0:64", "n:64,192", "m:1,7"),
        ("dtype:float32", "ratio:2,4,8,16,32", "lsize_0:64", "n:64", "m:3"),
        ("dtype:float32", "lsize_0:128,256,512", "n:1024", "m:3"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        lsize, ratio = int(variant["lsize_0"]), int(variant["ratio"])
        # Elements of local memory that are read, in whole rows of a work-group's.
        rows = -(-(lsize + MOST_LOADS + GAP * WIDTH * ratio) // lsize)
        instructions = [
            "total = 0 {id=start, inames=g:l}",
            "work[j0] = j0 {id=begin, inames=g:l:j0}",
            f"<> x = a[k, {lsize}*g + l] {{id=load, inames=g:l:k}}",
            "total = total + x {id=add, inames=g:l:k, dep=start:load}",
        ]
        before, last = "begin:load:add", "begin"
        arrays = [lp.GlobalArg("a", dtype, shape="m, n"), lp.GlobalArg("out", dtype, shape="n", is_input=False)]
        if variant["onchip"] == "local":
            instructions.append(f"shared[{lsize}*f + l] = b[l] {{id=fill, inames=g:l:f}}")
            before += ":fill"
            arrays += [
                lp.GlobalArg("b", dtype, shape=(lsize,)),
                lp.TemporaryVariable("shared", dtype, shape=(lsize * rows,), address_space=lp.AddressSpace.LOCAL),
            ]
        if ratio:
            instructions.append(f"{ROUNDS[variant['onchip']]} {{id=round, inames=g:l:k:r:j, dep={before}}}")
            last = "round"
        instructions.append(f"out[{lsize}*g + l] = total + sum(j1, work[j1]) {{inames=g:l, dep=add:{last}}}")
        program = lp.make_kernel(
            [
                f"{{[g, l, k]: 0 <= g < n/{lsize} and 0 <= l < {lsize} and 0 <= k < m}}",
                f"{{[j, j0, j1]: 0 <= j, j0, j1 < {WIDTH}}}",
                f"{{[r]: 0 <= r < {ratio}}}",
                f"{{[f]: 0 <= f < {rows}}}",
            ],
            instructions,
            [
                *arrays,
                lp.TemporaryVariable("total", dtype, shape=()),
                lp.TemporaryVariable("work", dtype, shape=(WIDTH,)),
                lp.ValueArg("n, m", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and n mod {lsize} = 0 and 1 <= m <= {MOST_LOADS}",
            lang_version=(2018, 2),
        )
        program = lp.tag_inames(program, {"g": "g.0", "l": "l.0", **dict.fromkeys(("j", "j0", "j1"), "unr")})
        return lp.prioritize_loops(program, "k,r,j") if ratio else program

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        return sizes["m"] <= MOST_LOADS

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        lsize, ratio, m = int(kernel.tags["lsize_0"]), int(kernel.tags["ratio"]), kernel.sizes["m"]
        a = arrays["a"].reshape(m, -1)
        work = np.repeat(np.arange(WIDTH, dtype=a.dtype)[:, None], a.shape[1], axis=1)
        for k, r, j in np.ndindex(m, ratio, WIDTH):
            if kernel.tags["onchip"] == "madd":
                work[j] = work[j] * a.dtype.type(0.25) + a[k]
            else:
                place = np.arange(a.shape[1]) % lsize + k + GAP * (WIDTH * r + j)
                work[j] += a[k] * arrays["b"][place % lsize]
        return {"out": a.sum(axis=0) + work.sum(axis=0)}
