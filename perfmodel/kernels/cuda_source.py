"""Finds what a CUDA C++ source says of its kernels: their names, and the names and types of their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfmodel.kernels.cuda_declarations import outline_of
from perfmodel.kernels.cuda_heads import called, closing, parted

_WORDS = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|restrict|struct|typename|unsigned|signed|__grid_constant__)\b"
)
_TYPED = re.compile(r"(.*[\w>]\s*)\(([^()]*)\)\s*", re.DOTALL)
_LAST_WORDS = frozenset(("int", "char", "short", "long", "float", "double", "bool", "const"))
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
    "u_char": ("uint8", 1),
    "u_short": ("uint16", 1),
    "u_int": ("uint32", 1),
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
class DeclaredArgument:
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


def kernels_in(source: str) -> dict[str, tuple[DeclaredArgument, ...]]:
    """Returns the kernels of a source by name, each with its arguments; of a template, types as it has them."""
    found: dict[str, tuple[DeclaredArgument, ...]] = {}
    for name, head, _ in _kernels(source):
        found.setdefault(name, _arguments(head))
    return found


def without_types(name: str) -> tuple[str, str | None]:
    """Returns a kernel's name without the types of its arguments, which tell it from others, and these types:
    of ``scale<4>(float *, int)``."""
    found = _TYPED.fullmatch(name)
    return (found[1].strip(), found[2]) if found else (name, None)


def types_of(source: str, name: str) -> list[str]:
    """Returns the types of the arguments of each kernel of a name, as they tell one from another."""
    return [", ".join(_type(each) for each in _inside(head)) for found, head, _ in _kernels(source) if found == name]


def arguments_of(source: str, name: str) -> tuple[DeclaredArgument, ...] | None:
    """Returns the arguments of a kernel, those of a template with its arguments in place; None where it isn't seen.

    Args:
        name: as in ``space::scale<float, 4>``, or ``scale(float *, int)`` of several.
    """
    name, types = without_types(name)
    wanted = None if types is None else [_declared(f"{each} x", 0).type for each in _split(types)]
    base, _, rest = name.partition("<")
    plain = base.strip().rpartition("::")[2]
    for found, head, parameters in _kernels(source):
        if found == plain and wanted in (None, [each.type for each in _arguments(head)]):
            names = (re.search(r"(\w+)\s*(?:=.*)?$", each) for each in parameters)
            known = dict(zip((each[1] for each in names if each), _split(rest.rpartition(">")[0]), strict=False))
            return tuple(DeclaredArgument(each.name, _with(each.type, known)) for each in _arguments(head))
    for each in outline_of(source).declarations:  # or a macro makes it a kernel
        if each.is_function and (called := re.search(rf"\b{re.escape(plain)}\s*\(", each.head)):
            return _arguments(each.head[called.start() :])
    return None


def template_parameters(source: str, name: str) -> list[list[str]]:
    """Returns the parameters of the first kernel of a name that is a template, and none for the first that is no
    template, in their order: a source may have one for when a condition holds, and another for when it does not."""
    found = [parameters for declared, _, parameters in _kernels(source) if declared == name]
    return [each for place, each in enumerate(found) if all(bool(each) != bool(other) for other in found[:place])]


def _kernels(source: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yields each kernel's name, its declaration from there on, and the parameters of a template, as declared; those
    with a body first, as prototypes may have other names for their arguments, or none."""
    for each in sorted(outline_of(source).declarations, key=lambda each: source[each.end - 1 : each.end] != "}"):
        head, parameters = parted(each.head)
        start = head.find("__global__")
        if start >= 0 and (found := called(head[start:])):
            name, place = found
            if head[start + place + len(name) :].lstrip().startswith("<"):
                continue  # a template for some of its arguments
            yield name, head[start + place + len(name) :], [" ".join(word.split()) for word in _split(parameters)]


def _arguments(head: str) -> tuple[DeclaredArgument, ...]:
    """Returns the arguments that stand in the first brackets of a declaration."""
    return tuple(_declared(each, place) for place, each in enumerate(_inside(head)))


def _inside(head: str) -> list[str]:
    """Returns what stands in the first brackets of a declaration, part by part."""
    opening = head.index("(")
    return _split(head[opening + 1 : closing(head, opening) - 1])


def _type(argument: str) -> str:
    """Returns the type in a declaration of an argument, without its name."""
    text = argument.partition("=")[0].strip()
    is_array = text.endswith("]")
    text = re.sub(r"\[[^\]]*\]|\b__\w*restrict\w*\b", "", text).strip()
    named = re.fullmatch(r"(.*[\s*&>])(\w+)", text, re.DOTALL)
    if named and named[2] not in _LAST_WORDS and re.sub(r"\b(?:const|volatile|struct)\b", "", named[1]).strip():
        text = named[1]
    return " ".join(text.split()) + " *" * is_array


def _with(type_: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda match: known.get(match[0], match[0]).strip(), type_) if known else type_


def _declared(text: str, place: int) -> DeclaredArgument:
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
    return DeclaredArgument(name, f"{plain} {stars}".strip())


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
