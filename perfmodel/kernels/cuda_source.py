"""Finds what a CUDA C++ source says of its kernels: their names, and the names and types of their arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_KERNEL = re.compile(r"\b__global__\b")
_WORDS = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|restrict|struct|typename|unsigned|signed|__grid_constant__)\b"
)
_BETWEEN = r"static\s+|inline\s+|extern\s+|__\w+__\s*\((?:[^()]|\([^()]*\))*\)\s*"
_NUMBERS = {
    "float": ("float32", 1),
    "double": ("float64", 1),
    "half": ("float16", 1),
    "__half": ("float16", 1),
    "char": ("int8", 1),
    "bool": ("uint8", 1),
    "short": ("int16", 1),
    "int": ("int32", 1),
    "long": ("int64", 1),
    "long long": ("int64", 1),
    "size_t": ("uint64", 1),
    "uint": ("uint32", 1),
    "uchar": ("uint8", 1),
    "ushort": ("uint16", 1),
    "half2": ("float16", 2),
    "__half2": ("float16", 2),
    "ptrdiff_t": ("int64", 1),
    "__nv_bfloat16": ("uint16", 1),
    "nv_bfloat16": ("uint16", 1),
    "__nv_bfloat162": ("uint16", 2),
    "nv_bfloat162": ("uint16", 2),
    "__nv_fp8_e4m3": ("uint8", 1),
    "__nv_fp8_e5m2": ("uint8", 1),
    **{f"{sign}int{bits}_t": (f"{sign}int{bits}", 1) for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_VECTORS = {"char": "int8", "short": "int16", "int": "int32", "long": "int64", "longlong": "int64", "float": "float32"}
_VECTOR = re.compile(r"(u?)(char|short|int|longlong|long|float|double)([1-4])$")


@dataclass(frozen=True)
class Declared:
    """An argument as the source declares it.

    Attributes:
        type: without what says nothing of its size, such as ``float4 *``.
    """

    name: str
    type: str

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")

    def numbers(self) -> tuple[str, int] | None:
        """Returns numpy's type of the numbers that a value, or what it points to, consists of, and how many they are;
        None for other types."""
        plain = self.type.rstrip("* ").strip()
        if not plain.startswith("unsigned") and plain not in _NUMBERS:
            plain = plain.rpartition(" ")[2]  # behind what macros stand for
        if plain in _NUMBERS:
            return _NUMBERS[plain]
        if plain.startswith("unsigned"):
            dtype, times = _NUMBERS.get(plain.removeprefix("unsigned").strip() or "int", ("", 0))
            return (f"u{dtype.removeprefix('u')}", times) if dtype else None
        found = _VECTOR.match(plain)
        if found:
            base = {"double": "float64"}.get(found[2]) or _VECTORS[found[2]]
            return (f"u{base}" if found[1] else base), int(found[3])
        return None


def kernels_in(source: str) -> dict[str, tuple[Declared, ...]]:
    """Returns the kernels of a source by name, each with its arguments; of a template, types as it has them."""
    return {name: arguments for name, arguments, _ in _found(source)}


def arguments_of(source: str, name: str) -> tuple[Declared, ...] | None:
    """Returns the arguments of a kernel, those of a template with its arguments in place; None where it isn't seen.

    Args:
        name: as in ``space::scale<float, 4>``.
    """
    base, _, rest = name.partition("<")
    plain = base.strip().rpartition("::")[2]
    for found, arguments, parameters in _found(source):
        if found == plain:
            given = _split(rest.rpartition(">")[0]) if rest else []
            known = dict(zip(parameters, given, strict=False))
            return tuple(Declared(each.name, _with(each.type, known)) for each in arguments)
    return _defined(source, plain)


def template_parameters(source: str, name: str) -> list[str]:
    """Returns the parameters of a kernel that is a template, as declared; none for any other."""
    text = _COMMENT.sub(" ", source)
    for match in _KERNEL.finditer(text):
        head = text[match.end() : _opening(text, match.end())].rstrip()
        if re.search(rf"\b{re.escape(name)}$", head):
            return [" ".join(each.split()) for each in _template_text(text, match.start())]
    return []


def _defined(source: str, name: str) -> tuple[Declared, ...] | None:
    """Returns the arguments of a function that a macro makes a kernel."""
    text = _COMMENT.sub(" ", source)
    for match in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        closing = _closing(text, match.end() - 1)
        if closing >= 0 and text[closing + 1 :].lstrip().startswith("{"):
            inside = _split(text[match.end() : closing])
            return tuple(_declared(each, place) for place, each in enumerate(inside))
    return None


def _with(type_: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda match: known.get(match[0], match[0]).strip(), type_) if known else type_


def _found(source: str) -> list[tuple[str, tuple[Declared, ...], list[str]]]:
    text = _COMMENT.sub(" ", source)
    found = []
    for match in _KERNEL.finditer(text):
        opening = _opening(text, match.end())
        closing = _closing(text, opening)
        if opening < 0 or closing < 0:
            continue
        head = text[match.end() : opening].rstrip()
        name = re.search(r"(\w+)$", head)
        if name is None:
            continue
        arguments = [_declared(each, place) for place, each in enumerate(_split(text[opening + 1 : closing]))]
        found.append((name[1], tuple(arguments), _template(text, match.start())))
    return found


def _opening(text: str, place: int) -> int:
    """Returns where the arguments begin, beyond ``__launch_bounds__(…)`` and attributes."""
    while True:
        opening = text.find("(", place)
        if opening < 0 or not re.search(
            r"(__launch_bounds__|__attribute__|__cluster_dims__|__maxnreg__)\s*$", text[place:opening]
        ):
            return opening
        place = _closing(text, opening) + 1


def _closing(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)) if opening >= 0 else ():
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return -1


def _template_text(text: str, before: int) -> list[str]:
    """Returns a template's parameters, of a kernel that begins there."""
    match = re.search(rf"template\s*<([^;{{}}]*)>\s*(?:{_BETWEEN})*$", text[:before])
    return [] if match is None else [each.strip() for each in _split(match[1])]


def _template(text: str, before: int) -> list[str]:
    """Returns the names of a template's parameters, of a kernel that begins there."""
    names = (re.search(r"(\w+)\s*(?:=.*)?$", each) for each in _template_text(text, before))
    return [name[1] for name in names if name]


def _declared(text: str, place: int) -> Declared:
    text = text.partition("=")[0].strip()
    is_array = bool(re.search(r"\[[^\]]*\]\s*$", text))
    text = re.sub(r"(\[[^\]]*\]\s*)+$", "", text).strip()
    match = re.search(r"(\w+)$", text)
    is_unsigned = re.search(r"\bunsigned\b", text) is not None
    name = match[1] if match and text != match[1] else f"argument_{place}"
    type_ = text[: match.start()] if match and text != match[1] else text
    stars = "*" if "*" in type_ or is_array else ""
    plain = " ".join(_WORDS.sub(" ", type_.replace("*", " ").replace("&", " ")).split())
    plain = re.sub(r"\b(long|short) int$", r"\1", plain)
    if is_unsigned:
        plain = f"unsigned {plain}".strip()
    return Declared(name, f"{plain} {stars}".strip())


def _split(text: str) -> list[str]:
    """Splits at commas that stand in no brackets."""
    found, depth, start = [], 0, 0
    for place, mark in enumerate(text):
        depth += (mark in "([{<") - (mark in ")]}>")
        if mark == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    rest = text[start:]
    return [*found, rest] if rest.strip() and rest.strip() != "void" else found
