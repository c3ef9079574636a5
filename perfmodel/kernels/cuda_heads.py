"""Reads the heads of declarations of C++: templates' parameters, attributes, brackets."""

from __future__ import annotations

import re

_TEMPLATE = re.compile(r"\btemplate\s*(?=<)")
_ATTRIBUTE = re.compile(
    r"\b(?:alignas|noexcept|decltype|__(?:attribute|declspec|launch_bounds|maxnreg|cluster_dims|block_size|align)(?:__)?)\s*\("
)
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^()]*>\s*)?\(")
_BEHIND = re.compile(r"\s*([A-Za-z_]\w*)")
_QUALIFIERS = frozenset(("const", "volatile", "noexcept", "override", "final", "requires", "try", "throw"))


def parted(head: str) -> tuple[str, str]:
    """Returns the head of a declaration without its templates' parameters, attributes, and an operator's signs; and the
    parameters of its last template."""
    place, parameters = 0, ""
    while (found := _TEMPLATE.search(head, place)) is not None:
        depth = inside = 0
        for end in range(found.end(), len(head)):
            inside += (head[end] == "(") - (head[end] == ")")
            depth += 0 if inside else (head[end] == "<") - (head[end] == ">")
            if depth == 0 and not inside:
                break
        parameters, head = head[found.end() + 1 : end], head[: found.start()] + head[end + 1 :]
        place = found.start()
    head = re.sub(r"\[\[.*?\]\]|\boperator\s*[^\s\w(]+", " operator ", head)
    while (attribute := _ATTRIBUTE.search(head)) is not None:
        head = f"{head[: attribute.start()]} {head[closing(head, attribute.end() - 1) :]}"
    return head, parameters


def closing(text: str, opening: int, pair: str = "()") -> int:
    """Returns the place behind the bracket that closes one."""
    depth = 0
    for mark in re.compile(f"[{re.escape(pair)}]").finditer(text, opening):
        depth += 1 if mark[0] == pair[0] else -1
        if depth == 0:
            return mark.end()
    return len(text)


def called(bare: str) -> tuple[str, int] | None:
    """Returns the name of the function that a head without attributes declares, and where it stands; what comes before
    it in brackets of its own, as macros' calls do, is passed over.

    Args:
        bare: as `parted` returns it; of a kernel, from ``__global__`` on.
    """
    place = 0
    while (found := _CALLED.search(bare, place)) is not None:
        end = closing(bare, found.end() - 1)
        behind = _BEHIND.match(bare, end)
        if behind is None or behind[1] in _QUALIFIERS:
            return found[1], found.start()
        place = end
    return None
