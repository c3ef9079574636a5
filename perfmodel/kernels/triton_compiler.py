"""Compiles kernels of Triton to PTX by Triton itself, which needs neither a GPU nor a driver; results are kept on
disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from perfmodel.basics.errors import KernelError, SourceError, one_line
from perfmodel.kernels.ptx_cache import kept

# Functions import Triton, which is an optional dependency.


@dataclass(frozen=True)
class TritonText:
    """A kernel as Triton compiled it.

    Attributes:
        threads: of a block.
        shared: bytes of a block's dynamic shared memory.
        scratch: bytes of global memory that Triton's runtime provides to each block.
        maps: of arguments that are tensor descriptors: numbers of the swizzling and type, and the tiles' shape; empty
            where they are passed as plain numbers.
    """

    ptx: str
    name: str
    threads: int
    shared: int
    scratch: int
    maps: list[list[Any]]


@dataclass(frozen=True)
class Decorated:
    """A kernel without its decorators, and what these say of its constants and options.

    Attributes:
        fn: under ``@triton.jit``.
        heuristics: what computes constants and options from what else is known, by name, in the order of Triton.
        configurations: those that an autotuner chooses from, as keywords of a call.
    """

    fn: Any
    heuristics: tuple[tuple[str, Callable[[dict[str, Any]], Any]], ...]
    configurations: tuple[Mapping[str, Any], ...]


def undecorated(fn: Any) -> Decorated:
    """Returns the compiled function within what decorators made of it.

    Raises:
        KernelError: for what is no kernel of Triton, or where Triton is not installed.
    """
    heuristics: list[tuple[str, Callable[[dict[str, Any]], Any]]] = []
    configurations: list[Mapping[str, Any]] = []
    while not hasattr(fn, "arg_names") or not hasattr(fn, "cache_key"):
        values = getattr(fn, "values", None)
        if isinstance(values, Mapping):
            heuristics += values.items()
        configurations += [each.all_kwargs() for each in getattr(fn, "configs", ()) if each.kwargs]
        fn = getattr(fn, "fn", None)
        if fn is None:
            raise KernelError(
                "what Kernel.from_triton is given is no kernel of Triton; give a function under @triton.jit"
            )
    return Decorated(fn, tuple(heuristics), tuple(configurations))


def backend_of(target: str) -> tuple[Any, Any]:
    """Returns Triton's target and its compiler for it, of ``sm_90`` or ``90``."""
    try:
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend
    except ImportError as error:
        raise KernelError(
            "kernels of Triton need Triton, which is not installed; add it by pip install 'perfmodel[triton]', or give "
            "compiled.asm['ptx'] to Kernel.from_ptx"
        ) from error
    found = re.fullmatch(r"(?:sm_?|compute_?)?(\d+)a?", str(target))
    if found is None or int(found[1]) < 75:
        raise KernelError(f"target {target!r} is none of NVIDIA's that Triton compiles for; give one such as 'sm_90'")
    chosen = GPUTarget("cuda", int(found[1]), 32)
    return chosen, make_backend(chosen)


def compiled(
    fn: Any,
    target: str,
    parts: Mapping[str, tuple[str, ...]],
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    divisible: tuple[str, ...],
    options: Mapping[str, Any],
) -> TritonText:
    """Returns the PTX of a kernel.

    Args:
        fn: under ``@triton.jit``.
        parts: the names of the parts of each argument that is a tuple, which the signature and all else has.
        signature: the type of each argument as Triton writes it (``*fp32``, ``i32``, ``constexpr``).
        constants: the values of those that are ``constexpr``.
        divisible: arguments that are known to be multiples of 16.
        options: of the compiler, such as ``num_warps``.

    Raises:
        SourceError: for what Triton does not compile, with its first words on it.
    """
    chosen, backend = backend_of(target)
    import triton

    def compile_() -> dict[str, Any]:
        from triton.compiler import ASTSource

        paths: dict[str, tuple[int, ...]] = {}
        types: dict[str, Any] = {}
        for place, name in enumerate(fn.arg_names):
            own = parts.get(name)
            paths |= {name: (place,)} if own is None else {part: (place, number) for number, part in enumerate(own)}
            types[name] = signature[name] if own is None else tuple(signature[part] for part in own)
        attributes = {paths[name]: [["tt.divisibility", 16]] for name in divisible}
        source = ASTSource(fn, types, {paths[name]: value for name, value in constants.items()}, attributes)
        try:
            made = triton.compile(source, target=chosen, options=dict(options))
        except Exception as error:  # Triton raises all kinds
            raise SourceError(f"Triton does not compile {fn.__name__!r}: {_said(error)}") from error
        metadata = made.metadata
        if getattr(metadata, "num_ctas", 1) != 1:
            raise KernelError(f"kernel {fn.__name__!r} has clusters of blocks (num_ctas), which are not emulated")
        text = str(made.asm["ptx"])
        threads = re.search(r"\.(?:reqntid|maxntid)\s+(\d+)", text)
        return {
            "ptx": text,
            "name": str(metadata.name),
            "threads": int(threads[1]) if threads else 32 * int(metadata.num_warps),
            "shared": int(metadata.shared),
            "maps": [
                [int(each["swizzle"]), int(each["elem_type"]), [int(axis) for axis in each["block_size"]]]
                for each in getattr(metadata, "tensordesc_meta", None) or []
            ],
            "scratch": int(getattr(metadata, "global_scratch_size", 0) or 0),
        }

    try:
        resolved = {n: v for n, v in vars(backend.parse_options(dict(options))).items() if n != "extern_libs"}
    except (AssertionError, TypeError, ValueError) as error:  # those of Triton's own checks
        chosen = ", ".join(f"{name}={value!r:.40}" for name, value in options.items())
        raise KernelError(f"Triton refuses the options {chosen} ({one_line(error)}); give others") from error
    shown = {name: getattr(value, "cache_key", None) or repr(value) for name, value in constants.items()}
    key = [
        *(
            [field.name for field in fields(TritonText)],
            triton.__version__,
            fn.cache_key,
            fn.__name__,
            str(target),
            sorted(signature.items()),
        ),
        *(sorted(shown.items()), sorted(divisible), sorted((name, repr(value)) for name, value in resolved.items())),
    ]
    return TritonText(**kept(key, compile_))


def _said(error: BaseException) -> str:
    """Returns the reason of Triton's error, without the source that it shows.

    An error in a function that the kernel calls is the cause of one that tells the call's place and no reason.
    """
    place = re.match(r"at (\d+):(\d+)", str(error))
    where = f" (line {place[1]} of it)" if place else ""
    while not _reason(error) and error.__cause__ is not None:
        error = error.__cause__
    return f"{_reason(error) or one_line(error)}{where}"


def _reason(error: BaseException) -> str:
    """Returns the line of an error's text that tells why; nothing where it only points at the source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in lines if re.match(r"(\w+Error|error:)", line)]
    return "" if not reasons and lines[-1:] == ["^"] else (reasons or lines or [""])[-1]
