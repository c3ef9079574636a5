"""Lists families of kernels with their tags, and the kernels that a filter selects: as text, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from perfmodel.basics.json_values import plain
from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import COMMON, LSIZES, WORK_GROUP_SETS, Tag
from perfmodel.kernels.kernel import Kernel


def as_json(generators: Iterable[KernelGenerator], kernels: Sequence[Kernel] | None = None) -> dict[str, Any]:
    """Returns all that can be listed, as values that JSON can hold.

    Args:
        kernels: those that a filter selected; None leaves them out.
    """
    listed = [
        {
            "name": g.name,
            "summary": g.summary,
            "source": g.source,
            "limits": g.limits,
            "tags": [plain(asdict(tag)) for tag in g.tags],
        }
        for g in generators
    ]
    data: dict[str, Any] = {
        "generators": listed,
        "common_tags": [plain(asdict(tag)) for tag in COMMON],
        "work_group_sets": {name: ["x".join(map(str, g)) for g in groups] for name, groups in WORK_GROUP_SETS.items()},
    }
    if kernels is not None:
        variants = [{tag: value for tag, value in k.tags.items() if tag != "generator"} for k in kernels]
        data["kernels"] = [
            {"generator": k.name, "variant": v, "sizes": k.sizes} for k, v in zip(kernels, variants, strict=True)
        ]
    return data


def as_text(generators: Iterable[KernelGenerator]) -> str:
    lines = []
    for generator in generators:
        lines.append(f"{generator.name}: {generator.summary}" + (f" ({generator.source})" if generator.source else ""))
        lines += [f"    {_described(tag)}" for tag in generator.tags]
        lines += [f"    none with {generator.limits}"] if generator.limits else []
    lines.append("every family:")
    lines += [f"    {_described(tag)}" for tag in COMMON]
    lines.append(f"    {LSIZES}: instead of lsize_0 …, whole work-groups: 256, 16x12, {', '.join(WORK_GROUP_SETS)}")
    lines.append(
        "    a size: numbers, 2^10, 2^(7+t) for 2^7 … 2^10, 2^(7+2t):3 for 2^7, 2^9, 2^11, auto for the device"
    )
    return "\n".join(lines)


def _described(tag: Tag) -> str:
    others = f", and {tag.others}" if tag.is_open else ""
    return f"{tag.name}: {tag.summary}: {', '.join(tag.values)}{others}; default {','.join(tag.default)}"


def as_markdown(generators: Iterable[KernelGenerator], checked: Mapping[str, int]) -> str:
    """Returns a Markdown table with a row for each family.

    Args:
        checked: how many kernels of each family were compared with its reference.
    """
    lines = ["| generator | kernels | tags | source | checked |", "|---|---|---|---|---|"]
    for generator in generators:
        tags = ", ".join(f"`{tag.name}`" for tag in generator.tags)
        lines.append(
            f"| `{generator.name}` | {generator.summary} | {tags} | {generator.source or '–'} | "
            f"{checked[generator.name]} |"
        )
    return "\n".join(lines)
