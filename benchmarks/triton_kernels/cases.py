"""The launches: an exam, those that show what tensor cores and asynchronous copies cost, and a tuner's space."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cuda_kernels.cases import as_kernel
from perfmodel import Kernel
from perfmodel.device import CUDA
from perfmodel.kernels.given_arguments import NARROW
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation.child import as_launch, as_message

COMPILED = Path(__file__).parent / "kernels.jsonl.xz"
ORIGINS = EXAM, TERMS, SPACE = "exam", "terms", "space"
"""Kernels as people write them, those that prices follow from, and configurations of one product."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A launch of a kernel of Triton.

    Attributes:
        origin: `EXAM`, `TERMS` or `SPACE`.
        function: its name in `benchmarks.triton_kernels.sources` or `tests.kernels.triton.sources`.
        arguments: by name, in the words of `perfmodel.Kernel.from_triton`.
        constants: and options of the compiler; what names a function or type of Triton's is in `functions`.
        arrays: returns what arrays hold where that decides on the time; random numbers without.
    """

    name: str
    origin: str
    function: str
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    constants: Mapping[str, Any]
    functions: Mapping[str, str] = field(default_factory=dict)
    arrays: Callable[[], Arrays] | None = None

    @property
    def has_data(self) -> bool:
        return self.arrays is not None or any(type_ in NARROW for type_ in self._types().values())

    def kernel(self, runtime: str = CUDA) -> Kernel:
        """Returns the kernel, from the PTX that Triton made of it."""
        return as_kernel(self.name, compiled_launches()[self.name])

    def contents(self, kernel: Kernel) -> dict[str, NDArray[Any]]:
        """Returns what all arrays hold, those of types that numpy lacks small positive numbers."""
        given = self.arrays() if self.arrays else {}
        random = np.random.default_rng(7)
        found = {}
        for each in kernel.launch().arrays():
            type_ = self._types().get(each.name, "")
            if each.name in given:
                found[each.name] = given[each.name]
            elif type_ in NARROW:
                found[each.name] = random.integers(*NARROW[type_][1], each.size, each.dtype)
            else:
                found[each.name] = np.ones(each.size, each.dtype)
        return found

    def difference(self, outputs: Mapping[str, Arrays]) -> str:
        """Returns nothing: results are compared with numpy's in `tests.kernels.triton`, at sizes that can be."""
        return ""

    def _types(self) -> dict[str, str]:
        return {name: word.split(":")[1] for name, word in self.arguments.items() if isinstance(word, str)}


def compile_all(tell: Callable[[str], None]) -> int:
    """Compiles all cases by the Triton that is installed, and writes their launches; returns how many these are."""
    import triton

    lines = []
    for case in cases():
        launch = _triton_kernel(case).launch()
        lines.append(json.dumps({"name": case.name, "triton": triton.__version__, "launch": as_message(launch)}) + "\n")
        tell(case.name)
    COMPILED.write_bytes(lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))
    return len(lines)


def _triton_kernel(case: Case) -> Kernel:
    fn, constants = of_triton(case)
    return Kernel.from_triton(fn, case.grid, case.arguments, **constants)


def of_triton(case: Case) -> tuple[Any, dict[str, Any]]:
    """Returns the kernel of a case under ``@triton.jit``, and its constants and options."""
    import triton.language as tl

    from benchmarks.triton_kernels import sources
    from tests.kernels.triton import sources as tested

    fn = getattr(sources, case.function, None) or getattr(tested, case.function)
    known = {**vars(tl), "None": None}
    return fn, {**case.constants, **{name: known[word] for name, word in case.functions.items()}}


@cache
def compiled_launches() -> dict[str, Launch]:
    """Returns the launches of PTX by the names of their cases."""
    rows = map(json.loads, lzma.decompress(COMPILED.read_bytes()).decode().splitlines())
    return {row["name"]: as_launch(row["launch"]) for row in rows}


def cases() -> list[Case]:
    """Returns all cases, those of one origin together."""
    return [*_exam(), *_terms(), *_space()]


def named(names: Sequence[str]) -> list[Case]:
    """Returns the cases of these names, or all of them where no name is given."""
    return [case for case in cases() if not names or case.name in names]


def _matmul(
    name: str,
    origin: str,
    shape: tuple[int, int, int],
    blocks: tuple[int, int, int],
    types: tuple[str, str] = ("float16", "float16"),
    accumulator: str = "float32",
    precision: str = "tf32",
    is_transposed: bool = False,
    **options: Any,
) -> Case:
    """Returns a product of matrices, of which the right one may lie column by column; `types` are of what is
    multiplied and of the result."""
    (m, n, k), (bm, bn, bk) = shape, blocks
    arguments = {
        "a": f"random:{types[0]}:{m * k}",
        "b": f"random:{types[0]}:{k * n}",
        "c": f"random:{types[1]}:{m * n}",
        "M": m,
        "N": n,
        "K": k,
        "stride_am": k,
        "stride_ak": 1,
        **dict(zip(("stride_bk", "stride_bn"), (1, k) if is_transposed else (n, 1), strict=True)),
        "stride_cm": n,
        "stride_cn": 1,
    }
    constants = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "PRECISION": precision, **options}
    functions = {"ACCUMULATOR": accumulator, "ACTIVATION": "None"}
    return Case(
        name=name,
        origin=origin,
        function="matmul",
        grid=(-(-m // bm) * -(-n // bn),),
        arguments=arguments,
        constants=constants,
        functions=functions,
    )


def _exam() -> Iterable[Case]:
    yield from _exam_of_products()
    yield from _exam_of_rows()
    yield from _exam_of_elements()
    yield from _exam_with_data()


def _exam_of_products() -> Iterable[Case]:
    yield _matmul("matmul fp16 128x256", EXAM, (4096,) * 3, (128, 256, 64), num_warps=8)
    yield _matmul("matmul fp16 64x64", EXAM, (2048,) * 3, (64, 64, 32), num_warps=4, num_stages=2)
    yield _matmul("matmul fp16 narrow", EXAM, (16, 8192, 8192), (16, 64, 128), num_warps=4, num_stages=4)
    yield _matmul("matmul bf16", EXAM, (4096, 2048, 4096), (128, 128, 64), ("bfloat16", "bfloat16"), num_warps=8)
    yield _matmul("matmul tf32", EXAM, (2048,) * 3, (128, 64, 32), ("float32", "float32"))
    yield _matmul("matmul fp32", EXAM, (1024,) * 3, (64, 64, 16), ("float32", "float32"), precision="ieee")
    fp8 = ("float8_e4m3fn", "float16")
    yield _matmul("matmul fp8", EXAM, (4096,) * 3, (128, 128, 128), fp8, is_transposed=True, num_warps=8)
    yield _matmul("matmul int8", EXAM, (4096, 4096, 2048), (128, 128, 64), ("int8", "int32"), "int32", num_warps=8)
    yield Case(
        name="split_matmul", origin=EXAM, function="split_matmul", grid=(4, 4, 16),
        arguments={"a": "random:float16:4194304", "b": "random:float16:4194304", "c": "zeros:float32:65536",
         "M": 256, "N": 256, "K": 16384}, constants={"BM": 64, "BN": 64, "BK": 64, "SPLIT": 16},
    )  # fmt: skip
    yield Case(
        name="batched_matmul", origin=EXAM, function="batched_matmul", grid=(4, 4, 64),
        arguments={**dict.fromkeys("abc", "random:float16:64*512*512"), "M": 512, "N": 512, "K": 512},
        constants={"BM": 128, "BN": 128, "BK": 32},
    )  # fmt: skip
    yield Case(
        name="dequantized_matmul", origin=EXAM, function="dequantized_matmul", grid=(16, 32),
        arguments={"a": "random:float16:2048*4096", "b": "random:int8:4096*4096", "scales": "random:float32:4096",
         "c": "random:float16:2048*4096", "M": 2048, "N": 4096, "K": 4096},
        constants={"BM": 128, "BN": 128, "BK": 64, "num_warps": 8},
    )  # fmt: skip
    for width, length, heads, is_causal in ((64, 4096, 32, False), (128, 2048, 48, True)):
        yield Case(
            name=f"attention {width}{' causal' * is_causal}", origin=EXAM,
            function="attention", grid=(length // 128, heads),
            arguments={**dict.fromkeys(["q", "k", "v", "out"], f"random:float16:{heads * length * width}"),
             "length": length, "scale": 0.125},
            constants={"D": width, "BM": 128, "BN": 64, "CAUSAL": is_causal, "num_warps": width // 16},
        )  # fmt: skip


def _rows(function: str, count: int, columns: int, arrays: Mapping[str, str], more: Mapping[str, Any]) -> Case:
    """Returns a launch of which each block does a row; `arrays` says the words before the number of elements, of a row
    each unless the words end in one."""
    words = {name: f"{word}:{columns}" if name in ("weight", "bias") else word for name, word in arrays.items()}
    words = {n: word if word.count(":") > 1 else f"{word}:{count * columns}" for n, word in words.items()}
    return Case(
        name=function,
        origin=EXAM,
        function=function,
        grid=(count,),
        arguments=words,
        constants={"columns": columns, **more},
    )


def _exam_of_rows() -> Iterable[Case]:
    single, half, brain = "random:float32", "random:float16", "random:bfloat16"
    yield _rows("softmax", 4096, 4096, {"x": single, "out": single}, {"stride": 4096, "BLOCK": 4096, "num_warps": 8})
    yield _rows("long_softmax", 2048, 32768, {"x": single, "out": single}, {"BLOCK": 2048, "num_warps": 8})
    normed = {"x": single, "weight": single, "bias": single, "out": single}
    yield _rows("layer_norm", 8192, 4096, normed, {"eps": 1e-5, "BLOCK": 4096, "num_warps": 8})
    gradient = {"x": single, "gradient": single, "weight": single, "out": single}
    yield _rows("layer_norm_backward", 8192, 2000, gradient, {"eps": 1e-5, "BLOCK": 2048})
    yield _rows("rms_norm", 16384, 4096, {"x": brain, "weight": brain, "out": brain}, {"eps": 1e-5, "BLOCK": 4096})
    yield _rows("argmax", 16384, 4096, {"x": single, "out": "random:int32:16384"}, {"BLOCK": 4096})
    yield _rows("swiglu", 8192, 8192, dict.fromkeys(["gate", "up", "out"], half), {"BLOCK": 8192, "num_warps": 8})
    scaled = {"x": single, "out": "random:int8", "scales": "random:float32:16384"}
    yield _rows("quantize", 16384, 2048, scaled, {"BLOCK": 2048})
    moments = {"x": single, "mean": "random:float32:16384", "variance": "random:float32:16384"}
    yield _rows("welford", 16384, 4096, moments, {"BLOCK": 4096, "num_warps": 8})
    yield Case(
        name="cumsum", origin=EXAM, function="cumsum", grid=(16384,),
        arguments={"x": "random:float32:n", "out": "random:float32:n", "n": 16384 * 2048}, constants={"BLOCK": 2048},
    )  # fmt: skip
    yield Case(
        name="recurrence", origin=EXAM, function="recurrence", grid=(16384,),
        arguments=dict.fromkeys(["a", "b", "out"], f"random:float32:{16384 * 1024}"), constants={"LENGTH": 1024},
    )  # fmt: skip
    yield Case(
        name="sort_rows", origin=EXAM, function="sort_rows", grid=(8192,),
        arguments={"x": "random:float32:8192*1024", "out": "random:float32:8192*1024"}, constants={"LENGTH": 1024},
    )  # fmt: skip
    yield Case(
        name="top_k", origin=EXAM, function="top_k", grid=(16384,),
        arguments={"x": "random:float32:16384*1024", "out": "random:float32:16384*16"},
        constants={"LENGTH": 1024, "COUNT": 16},
    )  # fmt: skip
    yield Case(
        name="matvec", origin=EXAM, function="matvec", grid=(1024,),
        arguments={"a": "random:float32:rows*columns", "x": "random:float32:columns", "y": "random:float32:rows",
         "rows": 16384, "columns": 16384}, constants={"BM": 16, "BN": 256},
    )  # fmt: skip


def _exam_of_elements() -> Iterable[Case]:
    large = 2**26

    def elements(function: str, arrays: Iterable[str], n: int, block: int = 1024, **more: Any) -> Case:
        constants = {"BLOCK": block, **more}
        parts = (word.partition("=") for word in arrays)
        arguments = {name: words or "random:float32:n" for name, _, words in parts}
        return Case(
            name=function,
            origin=EXAM,
            function=function,
            grid=(-(-n // block),),
            arguments={**arguments, "n": n},
            constants=constants,
        )

    yield elements("vector_add", ["x", "y", "out"], large)
    yield elements("dropout", ["x", "out"], large // 2, p=0.4, seed=123)
    yield elements("total", ["x", "out=zeros:float32:1"], large, 4096)
    yield elements("gelu", ["x", "out"], large)
    yield elements("tanh_gelu", ["x=random:float16:n", "out=random:float16:n"], large)
    yield elements(
        "adam", ["weights", "gradients", "first", "second"], large // 4, rate=0.01, one=0.9, two=0.99, eps=1e-8
    )
    yield elements("to_fp8", ["x", "out=random:float8_e4m3fn:n"], large)
    yield Case(
        name="transpose", origin=EXAM, function="transpose", grid=(128, 128),
        arguments={**dict.fromkeys(["x", "out"], "random:float32:rows*columns"), "rows": 8192, "columns": 8192},
        constants={"B": 64},
    )  # fmt: skip
    yield Case(
        name="stencil", origin=EXAM, function="stencil", grid=(1024, 32),
        arguments={**dict.fromkeys(["x", "out"], "random:float32:rows*columns"), "rows": 8192, "columns": 8192},
        constants={"BM": 8, "BN": 256},
    )  # fmt: skip
    yield Case(
        name="rotary", origin=EXAM, function="rotary", grid=(8192,),
        arguments={"x": "random:float32:8192*32*128", "cos": "random:float32:8192*64", "sin": "random:float32:8192*64",
         "heads": 32}, constants={"D": 128, "num_warps": 2},
    )  # fmt: skip
    yield Case(
        name="conv1d", origin=EXAM, function="conv1d", grid=(16, 1024),
        arguments={"x": "random:float32:1024*16384", "weight": "random:float32:15", "out": "random:float32:1024*16384",
         "length": 16384}, constants={"R": 7, "BLOCK": 1024},
    )  # fmt: skip
    yield Case(
        name="depthwise", origin=EXAM, function="depthwise", grid=(256, 256),
        arguments={"x": "random:float32:256*rows*columns", "weight": "random:float32:256*9",
         "out": "random:float32:256*rows*columns", "rows": 256, "columns": 256}, constants={"R": 1, "BLOCK": 256},
    )  # fmt: skip
    yield Case(
        name="mandelbrot", origin=EXAM, function="mandelbrot", grid=(4096,),
        arguments={"out": "random:int32:width*width", "width": 1024, "limit": 200}, constants={"BLOCK": 256},
    )  # fmt: skip


def _random(low: int, high: int, count: int, dtype: str = "int32") -> NDArray[Any]:
    return np.random.default_rng(19).integers(low, high, count, dtype)


def _exam_with_data() -> Iterable[Case]:
    yield Case(
        name="gather", origin=EXAM, function="gather", grid=(2**16 * 256 // 1024,),
        arguments={"x": "random:float32:131072*256", "index": "random:int64:n", "out": "random:float32:n*width",
         "n": 2**16, "width": 256}, constants={"BLOCK": 1024},
        arrays=lambda: {"index": _random(0, 131072, 2**16, "int64")},
    )  # fmt: skip
    yield Case(
        name="scatter_add", origin=EXAM, function="scatter_add", grid=(2**22 // 1024,),
        arguments={"x": "random:float32:n", "index": "random:int32:n", "out": "zeros:float32:65536", "n": 2**22},
        constants={"BLOCK": 1024},
        arrays=lambda: {"index": _random(0, 65536, 2**22)},
    )  # fmt: skip
    yield Case(
        name="histogram", origin=EXAM, function="histogram", grid=(2**24 // 4096,),
        arguments={"x": "random:int32:n", "out": "zeros:int32:256", "n": 2**24}, constants={"BINS": 256, "BLOCK": 4096},
        arrays=lambda: {"x": _random(0, 256, 2**24)},
    )  # fmt: skip
    yield Case(
        name="embedding", origin=EXAM, function="embedding", grid=(16384,),
        arguments={"table": "random:float32:50000*width", "tokens": "random:int32:16384",
         "out": "random:float32:16384*width", "width": 1024}, constants={"BLOCK": 512},
        arrays=lambda: {"tokens": _random(0, 50000, 16384)},
    )  # fmt: skip
    yield Case(
        name="cross_entropy", origin=EXAM, function="cross_entropy", grid=(4096,),
        arguments={"logits": "random:float32:4096*16000", "labels": "random:int64:4096", "loss": "random:float32:4096",
         "columns": 16000, "ignored": -100}, constants={"BLOCK": 16384, "num_warps": 16},
        arrays=lambda: {"labels": _random(0, 16000, 4096, "int64")},
    )  # fmt: skip
    lengths = np.array([1000, 300, 777, 2048, 64, 512, 1500, 900], np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int32)
    yield Case(
        name="grouped_gemm", origin=EXAM, function="grouped_gemm", grid=(264,),
        arguments={"a": f"random:float16:{int(lengths.sum()) * 1024}", "b": "random:float16:8*1024*1024",
         "c": f"random:float16:{int(lengths.sum()) * 1024}", "rows": "random:int32:8", "starts": "random:int32:8",
         "N": 1024, "K": 1024}, constants={"GROUPS": 8, "PROGRAMS": 264, "B": 64},
        arrays=lambda: {"rows": lengths, "starts": starts},
    )  # fmt: skip


def _terms() -> Iterable[Case]:
    yield from _terms_of_dots()
    yield from _terms_of_lanes()
    for blocks, stages, extent in (
        *(((64, 64, 32), stages, (2048, 2048)) for stages in (1, 2, 3, 4)),
        *(((128, 128, 32), stages, (2048, 4096)) for stages in (1, 2, 3, 4)),
        *(((128, 128, 64), stages, (8192, 2048)) for stages in (2, 3)),
        *(((32, 64, 64), stages, (2048, 1536)) for stages in (1, 3)),
        *(((64, 256, 64), stages, (4096, 3072)) for stages in (3,)),
    ):
        (bm, bn, bk), (rows, columns) = blocks, extent
        yield Case(
            name=f"gram {bm}x{bn}x{bk} stages:{stages} {rows}x{columns}", origin=TERMS,
            function="gram", grid=(columns // bm, columns // bn),
            arguments={"x": "random:float16:rows*columns", "c": "random:float32:columns*columns", "rows": rows,
             "columns": columns}, constants={"BM": bm, "BN": bn, "BK": bk, "STAGES": stages},
        )  # fmt: skip
    for columns, programs in ((32768, 2112), (4096, 132), (4096, 1056)):
        for stages in (1, 2, 4):
            yield Case(
                name=f"staged_sum stages:{stages} {programs}x{columns}", origin=TERMS,
                function="staged_sum", grid=(programs,),
                arguments={"x": f"random:float32:{programs}*columns", "out": f"random:float32:{programs}*512",
                 "columns": columns}, constants={"BLOCK": 512, "STAGES": stages},
            )  # fmt: skip


def _terms_of_dots() -> Iterable[Case]:
    """Yields loops of products in registers and shared memory: by wgmma and mma.sync, types, shapes and occupancy."""
    shapes = [
        *(("float16", blocks, 4, 1056) for blocks in ((64, 64, 64), (64, 128, 64), (64, 256, 32), (128, 64, 16))),
        *(("float16", blocks, 4, 1056) for blocks in ((32, 64, 64), (16, 64, 64), (32, 32, 32))),
        ("float16", (16, 32, 32), 1, 4224),
        *(("float16", (128, 128, 64), 8, programs) for programs in (132, 264, 1056)),
        *(("float16", (64, 64, 64), 4, programs) for programs in (132, 33)),
        *(("bfloat16", blocks, 4, 1056) for blocks in ((64, 128, 64), (32, 64, 64))),
        *(("float32", blocks, 4, 1056) for blocks in ((64, 128, 32), (32, 64, 32))),
        *(("int8", blocks, 4, 1056) for blocks in ((64, 128, 64), (32, 64, 64))),
        *(("float8_e4m3fn", blocks, 4, 1056) for blocks in ((64, 128, 64), (32, 64, 64))),
    ]
    for function, dtype, (bm, bn, bk), warps, programs in (
        *(("repeated_dot", *each) for each in shapes),
        *(("changing_dot", *each) for each in shapes if each[0] in ("float16", "float32")),
    ):
        total = "int32" if dtype == "int8" else "float32"
        arguments = {
            "a": f"random:{dtype}:{bm * bk}",
            "b": f"random:{dtype}:{bn * bk}",
            "c": f"random:{total}:{programs * bm * bn}",
            "turns": 512,
        }
        constants = {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps}
        functions = {"ACCUMULATOR": total} if function == "repeated_dot" else {}
        name = f"{function} {dtype} {bm}x{bn}x{bk} warps:{warps} {programs}"
        yield Case(
            name=name,
            origin=TERMS,
            function=function,
            grid=(programs,),
            arguments=arguments,
            constants=constants,
            functions=functions,
        )


def _terms_of_lanes() -> Iterable[Case]:
    """Yields loops of what lanes, warps and fragments hand on to each other."""
    for bm, bn, width, warps in ((64, 64, 64, 4), (128, 64, 64, 4), (128, 128, 128, 8), (32, 64, 64, 4)):
        arguments = {
            "a": f"random:float16:{bm * width}",
            "b": f"random:float16:{bn * width}",
            "c": f"random:float32:{1056 * bm * width}",
            "turns": 256,
        }
        name = f"chained_dot {bm}x{bn}x{width} warps:{warps}"
        constants = {"BM": bm, "BN": bn, "D": width, "num_warps": warps}
        yield Case(
            name=name, origin=TERMS, function="chained_dot", grid=(1056,), arguments=arguments, constants=constants
        )
    for rows, block, warps in ((1, 1024, 4), (1, 4096, 4), (1, 4096, 8), (16, 128, 4), (64, 64, 4)):
        words = f"random:float32:{2112 * rows * block}"
        name = f"repeated_sum {rows}x{block} warps:{warps}"
        constants = {"ROWS": rows, "BLOCK": block, "num_warps": warps}
        yield Case(
            name=name,
            origin=TERMS,
            function="repeated_sum",
            grid=(2112,),
            arguments={"x": words, "out": words, "turns": 64},
            constants=constants,
        )
    for block, warps in ((1024, 4), (4096, 8)):
        words = f"random:float32:{2112 * block}"
        name = f"repeated_cumsum {block} warps:{warps}"
        constants = {"BLOCK": block, "num_warps": warps}
        yield Case(
            name=name,
            origin=TERMS,
            function="repeated_cumsum",
            grid=(2112,),
            arguments={"x": words, "out": words, "turns": 64},
            constants=constants,
        )


def _space() -> Iterable[Case]:
    """Yields the configurations of a product of 2048 × 4096 × 2048 halves."""
    tiles = [(64, 64), (64, 128), (128, 64), (128, 128), (64, 256), (128, 256), (32, 64)]
    for bm, bn in tiles:
        for bk in (32, 64, 128):
            for warps in (4, 8):
                for stages in (2, 4):
                    shared = 2 * bk * (bm + bn) * stages
                    if shared > 220 * 1024 or (bm * bn > 128 * 128 and warps == 4) or (bm == 32 and warps == 8):
                        continue
                    name = f"space {bm}x{bn}x{bk} warps:{warps} stages:{stages}"
                    yield _matmul(name, SPACE, (2048, 4096, 2048), (bm, bn, bk), num_warps=warps, num_stages=stages)
