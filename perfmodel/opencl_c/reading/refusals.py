"""Some is refused before clang sees it: features by their names, and nesting that could exhaust clang's stack."""

from __future__ import annotations

import re

from perfmodel.opencl_c.reading.preprocessing import Expanded

_FEATURES = (
    (
        r"(?:read_|write_)?image(?:1d|2d|3d)\w*_t|(?:read|write)_image(?:f|i|ui|h)|get_image_\w+",
        "images",
        "use a buffer",
    ),
    (r"sampler_t", "samplers", "read from a buffer"),
    (r"printf", "output", "remove the call"),
    (r"event_t|async_work_group_(?:strided_)?copy|wait_group_events", "asynchronous copies", "copy in a loop"),
    (r"prefetch", "prefetching", "remove the call"),
    (r"queue_t|ndrange_t|clk_event_t|enqueue_\w+", "enqueueing from the device", "launch kernels from the host"),
    (r"reserve_id_t|(?:read|write)_pipe|(?:work_group_)?reserve_(?:read|write)_pipe", "pipes", "use a buffer"),
    (r"(?:work|sub)_group_(?:reduce|scan_\w+|all|any|broadcast)\w*", "collective functions", "use local memory"),
    (
        r"get_(?:max_|num_|enqueued_num_)?sub_groups?\w*|sub_group_\w+|intel_sub_group_\w+",
        "sub-groups",
        "use local memory",
    ),
    (
        r"atomic_(?:fetch_\w+|load\w*|store\w*|init|exchange\w*|compare_exchange\w*|flag\w*|work_item_fence)"
        r"|atomic_(?:int|uint|long|ulong|float|double|size_t|intptr_t|uintptr_t|ptrdiff_t)",
        "atomics of OpenCL C 2.0",
        "use those of OpenCL C 1.2 such as atomic_add",
    ),
    (r"goto", "jumps", "use loops and branches"),
    (r"asm|__asm|__asm__", "assembly", "use built-in functions"),
)
_NAMES = re.compile(
    r"\b(?:" + "|".join(f"(?P<_{number}>{names})" for number, (names, _, _) in enumerate(_FEATURES)) + r")\b"
)

BRACKETS = 120
RUN = 1500
ELSES = 400
DECLARATIONS = 2000
_MARKS = re.compile(r"""[(\[{]|[)\]}]|[;,]|\belse\b|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\w.]+|[^\s\w]""")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def refuse_unsupported(text: Expanded) -> None:
    found = _NAMES.search(text.text)
    if found and found.lastgroup:
        _, feature, remedy = _FEATURES[int(found.lastgroup[1:])]
        reason = f"the kernel uses {feature} ({found.group()}), which perfmodel does not support; {remedy}"
        raise text.fault(reason, found.start())


def check_nesting(text: Expanded) -> None:
    """Refuses what clang could not stand: it parses by recursion, and a process whose stack overflows is gone.

    Brackets that do not match and declarations by the thousand take it time beyond measure.
    """
    opened: list[tuple[str, int]] = []
    run = elses = declarations = 0
    for match in _MARKS.finditer(text.text):
        mark = match.group()
        run += 4 if mark == "sizeof" else 1
        if mark in _CLOSING:
            opened.append((mark, match.start()))
            if len(opened) > BRACKETS:
                reason = f"brackets are nested more than {BRACKETS} deep: use variables or functions"
                raise text.fault(reason, match.start())
        elif mark in (")", "]", "}"):
            _close(text, opened, mark, match.start())
            elses = elses if opened else 0
        elif mark == "else":
            elses += 1
            if elses > ELSES:
                raise text.fault(f"one function has more than {ELSES} branches of else: use a switch", match.start())
        elif mark == ";" and not opened:
            declarations += 1
            if declarations > DECLARATIONS:
                raise text.fault(f"the source has more than {DECLARATIONS} declarations: part it", match.start())
        if mark in ("{", "}", ";", ","):
            run = 0
        elif run > RUN:
            raise text.fault(f"one expression has more than {RUN} tokens: use variables for its parts", match.start())
    if opened:
        sign, offset = opened[-1]
        raise text.fault(f"the {sign} is never closed: end it with {_CLOSING[sign]}", offset)


def _close(text: Expanded, opened: list[tuple[str, int]], mark: str, offset: int) -> None:
    if not opened:
        raise text.fault(f"the {mark} closes nothing", offset)
    sign, start = opened.pop()
    if _CLOSING[sign] != mark:
        line = text.place(start).line
        raise text.fault(f"the {mark} stands where a {_CLOSING[sign]} should close the {sign} of line {line}", offset)
