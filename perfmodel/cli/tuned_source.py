"""Makes kernels of a file of source at the configurations of a tuner, as the command line describes them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import Any

from perfmodel.basics.errors import KernelError, nearest
from perfmodel.cli.opencl_command import countable, source_kernels
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.kernel_file import is_kernel_file


def tuned_kernel(path: str, parsed: argparse.Namespace) -> Callable[[Mapping[str, Any]], Kernel]:
    """Returns a function from configurations to kernels: values are macros, and stand for their ``{name}`` in options.

    Raises:
        KernelError: for a Python file; when called, for a name that is not in the configuration, or as `source_kernel`.
    """
    if is_kernel_file(path):
        raise KernelError(
            f"{path} is no FILE.cl or FILE.cu; give import_kernel_tuner or perfmodel.tune, in Python, a function that "
            "makes kernels"
        )

    def kernel(configuration: Mapping[str, Any]) -> Kernel:
        def filled(text: str) -> str:
            return re.sub(r"\{(\w*)\}", lambda found: _value(found[1], text, configuration), text)

        given = argparse.Namespace(**vars(parsed))
        for name in ("global_size", "local_size", "grid", "block_size", "assume"):
            setattr(given, name, filled(getattr(parsed, name) or ""))
        for name in ("arg", "option", "statistic"):
            setattr(given, name, [filled(text) for text in getattr(parsed, name)])
        given.option += [f"-D{name}={_word(name, value)}" for name, value in configuration.items()]
        (found,) = source_kernels([path], given)
        return countable(found, given)

    return kernel


def _value(name: str, text: str, configuration: Mapping[str, Any]) -> str:
    if name not in configuration:
        raise KernelError(
            f"{{{name}}} in {text!r} is no parameter of the tuning{nearest(name, configuration)} (it has "
            f"{', '.join(configuration)})"
        )
    return _word(name, configuration[name])


def _word(name: str, value: Any) -> str:
    """Returns the value as a word of a compiler's option, which must not become several."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or not re.fullmatch(r"[\w.+-]+", str(value), re.ASCII):
        raise KernelError(f"parameter {name!r} of the tuning is {str(value)[:40]!r}, which no macro can be; rename it")
    return str(value)
