"""OpenCL C is preprocessed here, parsed and typed by clang, and handed on as `perfmodel.opencl_c.syntax`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from pathlib import Path

from clang.cindex import Diagnostic, TranslationUnit, TranslationUnitLoadError

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.reading import clang_tree as ct
from perfmodel.opencl_c.reading import integer_expressions
from perfmodel.opencl_c.reading.build_options import BuildOptions
from perfmodel.opencl_c.reading.clang_tree import Item, RawCursor, Tree
from perfmodel.opencl_c.reading.expressions import Expressions
from perfmodel.opencl_c.reading.header import HEADER_NAME, STANDARDS, header, predefined
from perfmodel.opencl_c.reading.preprocessing import Expanded, preprocess
from perfmodel.opencl_c.reading.reading_context import ReadingContext
from perfmodel.opencl_c.reading.refusals import check_nesting, take_out_mistaken, without_unsupported
from perfmodel.opencl_c.reading.statements import Statements
from perfmodel.opencl_c.reading.tokens import tokens_of, without_spaces
from perfmodel.opencl_c.reading.types import Types

# Names that no file on disk has: clang finds them in memory alone.
_FOLDER = "/perfmodel.opencl_c"
_SOURCE = f"{_FOLDER}/source.cl"
_HEADER = f"{_FOLDER}/{HEADER_NAME}"

_ARGUMENTS = (
    *("-x", "cl", "-target", "spir64-unknown-unknown", "-undef", "-nostdinc", "-w", "-ferror-limit=0"),
    "-Wno-error=int-conversion",
    *("-fbracket-depth=200", f"-I{_FOLDER}"),
)
_HINT = re.compile(
    r"__attribute__\s*\(\s*\(\s*(?:__)?opencl_unroll_hint(?:__)?\s*(?:\(([^()]*)\))?\s*\)\s*\)",
)
_QUALIFIER = re.compile(r"\b(?:__)?(?:read_only|write_only|read_write)\b")
_ENDS = re.compile(r"[(),;{}]")
_NEAR = 200
"""A parameter's other words are within so many characters."""
_SUB_GROUP = re.compile(r"intel_reqd_sub_group_size\s*\((.*)\)", re.DOTALL)
_WORK_GROUP = re.compile(r"(?:__)?reqd_work_group_size(?:__)?\s*\((.*)\)", re.DOTALL)

_OF_THE_PROGRAM = "program scope variable must reside in constant"
_REMEDIES = (
    (r"use of undeclared identifier '(\w+)'\n\1\s*\(", "define it, or include the file that does"),
    (r"use of undeclared identifier '(\w+)'", "declare it, or define it by a build option such as -D{0}=1"),
    *(
        (rf"unknown type name '(u?){name}'", f"give it by the build option -D{{0}}{name}={{0}}{ours}")
        for name, ours in (("int8_t", "char"), ("int16_t", "short"), ("int32_t", "int"), ("int64_t", "long"))
    ),
    (r"unknown type name 'cl_(\w+)'", "give it by the build option -Dcl_{0}={0}"),
    (r"unknown type name '(\w*[^\W\d])(2|3|4|8|16)'", "define the type, or give it by -D{0}{1}=float{1}"),
    (r"unknown type name '(\w+)'", "define the type, or give it by a build option such as -D{0}=float"),
    (
        r"(?:parameter '\w+' was not declared|type specifier missing).*\n(\w+)",
        "give its type, or what {0} stands for by a build option (-D{0}=…)",
    ),
    (
        r"function variable cannot be declared in local",
        "declare it in the kernel, and give the function a pointer to it",
    ),
    (r"implicit declaration of function '(\w+)'", "define {0} before it is called"),
    (r"called object type .* is not a function", "see which function's name a macro takes away"),
    (r"access qualifier '__read_write' can not be used", "build with -cl-std=CL2.0"),
    (r"access qualifier can only be used", "leave it out: images and pipes alone have one"),
    (r"kernel cannot be called 'main'", "give it another name, as OpenCL C reserves this one"),
    (r"greater rank than the type of the vector", "write 1.0f for 1.0, or build with -cl-single-precision-constant"),
    (r"blocks support disabled", "use functions in the place of blocks"),
    (r"variable length arrays", "give the array a constant length, for instance by a macro"),
    (r"bit-fields are not supported", "use shifts and masks"),
    (r"variadic arguments are not allowed", "give every argument a parameter"),
    (r"pointers to functions|taking address of function", "call functions by their names"),
    (r"program scope variable must reside in", "write __constant before it"),
    (
        r"'\w+'.* cannot be used as the type of a kernel parameter",
        "give the parameter a type of one size on all devices, such as ulong for size_t",
    ),
    (r"call to '(\w+)' is ambiguous", "convert the arguments to the very types of one overload"),
)


def read(
    source: str,
    options: Sequence[str] = (),
    folders: Sequence[str | Path] = (),
    file: str = "kernel.cl",
    kernels: Collection[str] | None = None,
) -> sx.Unit:
    """Returns the functions and tables of an OpenCL C source, typed.

    Args:
        options: as for ``clBuildProgram``: ``-D``, ``-U``, ``-I``, ``-cl-std=``; others of ``-cl-`` and ``-w``
            change nothing here.
        folders: where includes are searched, before those of ``-I``; nothing else is ever read.
        file: what the source is called in errors and places.
        kernels: whose functions and tables alone are read, where others need not be; None reads all.

    Raises:
        SourceError: it is not OpenCL C, or uses what perfmodel does not support; says where.
    """
    text, unrolls, tree, refused = _prepared(source, tuple(options), tuple(map(str, folders)), file)
    if fault := next((why for name, why in refused.items() if kernels is None or name in kernels), None):
        raise fault
    return _Program(ReadingContext(tree, text, Types(tree, text), refused), unrolls).read(kernels)


@lru_cache(maxsize=2)
def _prepared(
    source: str, options: tuple[str, ...], folders: tuple[str, ...], file: str
) -> tuple[Expanded, dict[int, int], Tree, dict[str, SourceError]]:
    """Returns what all kernels of a source share: its expanded text, its factors of loops, clang's tree, and why
    functions are refused."""
    build = BuildOptions.of(options)
    searched = [*map(Path, folders), *build.folders]
    text = preprocess(source, file, build.macros(predefined(build.standard)), searched)
    text.text = _QUALIFIER.sub(partial(_without_idle, text.text), text.text)
    unrolls = _unrolls(text)
    check_nesting(text)
    refused = without_unsupported(text)
    return text, unrolls, _parsed(text, build, refused), refused


def _without_idle(text: str, qualifier: re.Match[str]) -> str:
    """Returns spaces in the place of an access qualifier that stands at a pointer, where drivers pass over it."""
    before = _ENDS.split(text[max(qualifier.start() - _NEAR, 0) : qualifier.start()])[-1]
    behind = _ENDS.split(text[qualifier.end() : qualifier.end() + _NEAR])[0]
    return " " * len(qualifier[0]) if {"*", "["} & {*before, *behind} else qualifier[0]


def _unrolls(text: Expanded) -> dict[int, int]:
    """Returns the factors of loops by their offsets; spaces take the place of their attributes in the text."""
    found = list(text.unrolls)
    for match in _HINT.finditer(text.text):
        tokens = without_spaces(list(tokens_of(match.group(1) or "0", "")))
        place = tokens[0]._replace(**text.place(match.start())._asdict())
        found.append((match.end(), integer_expressions.evaluate(tokens, place)))
    text.text = _HINT.sub(lambda match: " " * len(match.group()), text.text)
    return {_next(text.text, offset): factor for offset, factor in found}


def _next(text: str, offset: int) -> int:
    while offset < len(text) and text[offset].isspace():
        offset += 1
    return offset


def _parsed(text: Expanded, build: BuildOptions, refused: dict[str, SourceError]) -> Tree:
    """Returns clang's tree of a text, out of which functions with mistakes are taken, as others may be right."""
    standards = [build.standard] + ["CL2.0"] * (STANDARDS[build.standard] < STANDARDS["CL2.0"])
    while True:
        for standard in standards:
            unit = _unit(text, standard, build.has_single_constants)
            wrong = [each for each in unit.diagnostics if each.severity >= Diagnostic.Error]
            # Drivers of older standards take variables of the program in global memory all the same.
            if not any(_OF_THE_PROGRAM in each.spelling for each in wrong):
                break
        if not wrong:
            return Tree(unit, _SOURCE, len(text.text))
        take_out_mistaken(text, [_mistake(each, text) for each in wrong], refused)


def _mistake(wrong: Diagnostic, text: Expanded) -> tuple[int, str]:
    """Returns where clang finds a mistake, and what it says of it, with a way out."""
    location = wrong.location
    is_ours = location.file is not None and location.file.name == _SOURCE
    offset = location.offset if is_ours else 0
    return offset, _reason(wrong.spelling, text.text[offset : offset + _NEAR])


def _unit(text: Expanded, standard: str, has_single_constants: bool) -> TranslationUnit:
    arguments = [*_ARGUMENTS, f"-cl-std={standard}"]
    if has_single_constants:
        arguments.append("-cl-single-precision-constant")
    files = [(_SOURCE, text.text), (_HEADER, header(text.text))]
    try:
        return ct.index().parse(_SOURCE, arguments, files)
    except TranslationUnitLoadError:
        raise SourceError("clang cannot parse the source at all", *text.place(0)) from None


def _reason(message: str, at: str) -> str:
    """Returns clang's message about the text that begins with `at`, with a way out."""
    message = message.replace("'__private ", "'")  # which nobody wrote
    for pattern, remedy in _REMEDIES:
        found = re.search(pattern, f"{message}\n{at}")
        if found:
            return f"{message}; {remedy.format(*found.groups())}"
    return message


class _Program:
    """Reads the functions of a source: their heads when somebody names them, and their bodies after that."""

    def __init__(self, context: ReadingContext, unrolls: dict[int, int]) -> None:
        self.context = context
        self.expressions = Expressions(context)
        self.statements = Statements(context, self.expressions, unrolls)
        self.waiting: list[tuple[sx.Function, Item]] = []
        self.functions: dict[str, sx.Function] = {}
        self.declared: dict[int, Item] = {}
        context.declared = self.declaration

    def read(self, kernels: Collection[str] | None) -> sx.Unit:
        context = self.context
        names: dict[str, bool] = {}
        takes_constants = False
        for cursor in context.tree.top():
            if cursor.kind == ct.KIND.VAR_DECL:
                self.declared[ct.key_of(cursor)] = context.tree.shallow(cursor)
            elif cursor.kind == ct.KIND.FUNCTION_DECL:
                item = context.tree.shallow(cursor)
                if item.children and item.children[-1].kind == ct.KIND.COMPOUND_STMT:
                    self.declared[ct.key_of(cursor)] = item
                    is_kernel = names[context.tree.spelling(cursor)] = self.is_kernel(item)
                    takes_constants |= is_kernel and "__constant" in self.type_of(cursor)
                elif (name := context.tree.spelling(cursor)) in context.refused:
                    names[name] = self.is_kernel(item)
        for key, item in list(self.declared.items()):
            if kernels is None or (
                item.kind == ct.KIND.FUNCTION_DECL and context.tree.spelling(item.cursor) in kernels
            ):
                self.declaration(key)
        while self.waiting:
            function, item = self.waiting.pop(0)
            context.function = function.name
            function.body = self.statements.compound(context.tree.item(item.cursor).children[-1])
        self.refuse_recursion()
        names_of_kernels = tuple(name for name, is_kernel in names.items() if is_kernel)
        return sx.Unit(
            functions=self.functions,
            kernels=names_of_kernels,
            tables=tuple(context.tables),
            records=context.types.records,
            length=len(context.text.text),
            takes_constants=takes_constants,
        )

    def type_of(self, cursor: RawCursor) -> str:
        tree = self.context.tree
        return tree.type_spelling(tree.library.clang_getCursorType(cursor))

    def declaration(self, key: int) -> None:
        """Reads what is declared for the whole program, if nobody has done so yet."""
        item = self.declared.pop(key, None)
        if item is None:
            return
        if item.kind == ct.KIND.FUNCTION_DECL:
            self.head(item)
            return
        context = self.context
        depth, context.depth = context.depth, 0
        context.tables.append(self.statements.variable(context.tree.item(item.cursor)))
        context.depth = depth

    def is_kernel(self, item: Item) -> bool:
        attributes = (self.context.slice(child) for child in item.children if child.kind in ct.ATTRIBUTES)
        return any(attribute in ("kernel", "__kernel") for attribute in attributes)

    def head(self, item: Item) -> None:
        context = self.context
        name = context.tree.spelling(item.cursor)
        attributes = [context.slice(child) for child in item.children if child.kind in ct.ATTRIBUTES]
        raw = context.tree.library.clang_getCursorType(item.cursor)
        result = context.types.of(context.tree.library.clang_getResultType(raw), item.start)
        parameters = tuple(self.parameter(child) for child in item.children if child.kind == ct.KIND.PARM_DECL)
        place = context.text.place(item.start + self.name_offset(item, name))
        overloads = 1
        own = name
        while own in self.functions:
            overloads += 1
            own = f"{name}__{overloads}"
        function = sx.Function(
            name=own, result=result, parameters=parameters, is_kernel=self.is_kernel(item), place=place
        )
        function.work_group = next(filter(None, (self.work_group(one, item) for one in attributes)), None)
        function.subgroup_size = next(filter(None, (self.subgroup_size(one, item) for one in attributes)), None)
        self.functions[own] = function
        context.functions[ct.key_of(item.cursor)] = function
        self.waiting.append((function, item))

    def name_offset(self, item: Item, name: str) -> int:
        found = re.search(rf"\b{re.escape(name)}\s*\(", self.context.slice(item))
        return found.start() if found else 0

    def parameter(self, item: Item) -> sx.Variable:
        context, library = self.context, self.context.tree.library
        raw = library.clang_getCursorType(item.cursor)
        type_ = context.types.of(raw, item.start)
        if isinstance(type_, ts.Array):
            # libclang shows the array that was written; what is passed is its address.
            type_ = ts.Pointer(type_.element, context.types.space_of(raw))
        name = context.tree.spelling(item.cursor)
        is_restrict = bool(library.clang_isRestrictQualifiedType(raw))
        variable = sx.Variable(name, type_, "private", context.place(item), is_restrict=is_restrict)
        context.variables[ct.key_of(item.cursor)] = variable
        return variable

    def work_group(self, attribute: str, item: Item) -> tuple[int, int, int] | None:
        found = _WORK_GROUP.fullmatch(attribute)
        if not found:
            return None
        x, y, z = (self.number(part, item) for part in found.group(1).split(","))
        return x, y, z

    def subgroup_size(self, attribute: str, item: Item) -> int | None:
        found = _SUB_GROUP.fullmatch(attribute)
        return self.number(found.group(1), item) if found else None

    def number(self, text: str, item: Item) -> int:
        tokens = without_spaces(list(tokens_of(text, "")))
        return integer_expressions.evaluate(tokens, tokens[0]._replace(**self.context.place(item)._asdict()))

    def refuse_recursion(self) -> None:
        """Refuses a function that calls itself, be it through others, as OpenCL C does: its stack has no bound."""
        calls = self.context.calls
        finished: set[str] = set()
        for start in calls:
            path = [start]
            waiting = [iter(calls.get(start, {}))]
            while path:
                callee = next(waiting[-1], None)
                if callee is None:
                    waiting.pop()
                    finished.add(path.pop())
                elif callee in path:
                    cycle = " -> ".join([*path[path.index(callee) :], callee])
                    reason = f"functions call themselves, which OpenCL C forbids ({cycle}); use a loop"
                    raise self.context.fault(reason, calls[path[-1]][callee])
                elif callee not in finished:
                    path.append(callee)
                    waiting.append(iter(calls.get(callee, {})))
