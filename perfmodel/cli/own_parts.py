"""Makes features and generators of a user's own Python files known to a command."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext


def loaded(paths: Sequence[str] | None) -> AbstractContextManager[None]:
    """Runs files, whose classes of features and of generators count as perfmodel's own meanwhile.

    Raises:
        KernelError: for a file that cannot be run.
    """
    if not paths:
        return nullcontext()
    from perfmodel.basics import registry  # keeps start-up quick
    from perfmodel.kernels import kernel_file

    return registry.with_modules([kernel_file.loaded(path) for path in paths])
