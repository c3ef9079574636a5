"""A small family of kernels, for tests of what generators and tags say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np

import perfmodel as pm
from perfmodel.collection.tags import Tag, size


class Doubled(pm.KernelGenerator):
    """A family without work-groups."""

    name = "doubled"
    summary = "twice a vector"
    tags: tuple[Tag, ...] = (size("n", "elements", 256),)
    checks = (("n:5",),)

    def program(self, variant: Mapping[str, str]) -> Any:
        arrays = [lp.GlobalArg("a,b", np.float32, shape="n"), lp.ValueArg("n", np.int32)]
        return lp.make_kernel("{[i]: 0 <= i < n}", "b[i] = 2*a[i]", arrays, lang_version=(2018, 2))

    def reference(self, kernel: pm.Kernel, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"b": (3 if kernel.sizes["n"] == 6 else 2) * arrays["a"]}
