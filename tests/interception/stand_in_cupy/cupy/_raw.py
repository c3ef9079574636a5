"""The classes of kernels, which know each other whatever a program finds by their names, as CuPy's compiled ones."""

from __future__ import annotations

from typing import Any

launched: list[tuple[Any, ...]] = []
"""The arguments that each kernel was called with, in order."""


class RawKernel:
    __slots__ = ("__name__", "backend", "code", "max_dynamic_shared_size_bytes", "name", "options")

    def __init__(self, code: str | None, name: str, options: tuple[str, ...] = (), backend: str = "nvrtc") -> None:
        self.code, self.name, self.options, self.backend = code, name, options, backend
        self.__name__ = name
        self.max_dynamic_shared_size_bytes = 49152

    @property
    def num_regs(self) -> int:
        if self.code is not None and "no CUDA" in self.code:
            raise ValueError("it does not compile")
        return 16

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        _ = self.num_regs
        launched.append((self.name, grid, block, args, shared_mem))


class RawModule:
    __slots__ = ("code", "file_path", "name_expressions", "options")

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        name_expressions: Any = None,
    ) -> None:
        self.code, self.file_path, self.options, self.name_expressions = code, path, options, name_expressions

    def get_function(self, name: str) -> RawKernel:
        mangled = f"_Z{len(name)}mangled" if name in (self.name_expressions or ()) else name
        return RawKernel(self.code, mangled, self.options)
