"""Kernels that do the same in another way: Loopy programs transformed, OpenCL C in other work-groups and with other
numbers."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.kernels.kernel import Kernel

MOST_ITEMS = 1024
"""Work-items of the largest work-group that is proposed."""


@dataclass(frozen=True)
class Changed:
    """Holds a changed kernel.

    Attributes:
        kernel: at the same sizes as the kernel that it was made of.
        what: the part that is changed; of changes of the same part, one is enough.
        words: how it is changed, as the subject of a sentence.
        code: the lines that make it of the Loopy program ``program``, with ``lp`` for loopy; empty for other kernels.
    """

    kernel: Kernel
    what: str
    words: str
    code: tuple[str, ...] = ()
