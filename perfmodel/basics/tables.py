"""Writes tables and numbers as text: aligned columns, times with units, shares, sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from perfmodel.basics import terminal

Line = Sequence[str]


def grid(header: Line, lines: Sequence[Line]) -> str:
    """Returns columns aligned: the first to the left, the others to the right; see `perfmodel.basics.terminal`."""
    if terminal.is_fitted():
        return terminal.fitted(header, lines)
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]

    def shown(line: Line) -> str:
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([shown(header), "  ".join("-" * width for width in widths), *map(shown, lines)])


def wrapped(text: str) -> str:
    """Returns text whose lines are no longer than those of tables; what a line goes on with is indented."""
    return "\n".join(terminal.folded(line) for line in text.splitlines())


def seconds(value: float | None) -> str:
    """Returns three to four significant digits with a unit that people read: 12.3 us, 1.234 ms."""
    if value is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


def memory(n_bytes: int) -> str:
    """Returns bytes as people say them: ``192 KiB``, ``1.5 GiB``."""
    unit = max(0, min(4, (n_bytes.bit_length() - 1) // 10))
    return f"{n_bytes / 1024**unit:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


def percent(error: float) -> str:
    return f"{error:.1%}" if math.isfinite(error) else "-"


def sizes_text(sizes: Mapping[str, float]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def kernel_text(kernel: str, variant: str, sizes: Mapping[str, float]) -> str:
    """Returns what tells a kernel from others: its name, variant and sizes."""
    return " ".join(filter(None, [kernel, variant, sizes_text(sizes)]))


def told_apart(labels: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Returns the words that all of several labels have in common, and each label without them."""
    short = short_labels(labels)
    if len(short) < 2:
        return "", {label: label for label in labels}
    left = set.intersection(*(set(label.split()) for label in labels))
    left -= {word for name in short.values() for word in name.split()}
    return " ".join(word for word in labels[0].split() if word in left), short


def short_labels(labels: Iterable[str]) -> dict[str, str]:
    """Shortens labels that are a name and tags to what differs: the tags, and names where there are several; others as
    is."""
    split = {label: label.split() for label in labels}
    if not all("=" in word for words in split.values() for word in words[1:]):
        return {label: label for label in split}
    common = set.intersection(*map(set, split.values())) if split else set()
    return {label: " ".join(w for w in words if w not in common) or words[0] for label, words in split.items()}
