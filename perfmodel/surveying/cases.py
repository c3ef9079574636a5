"""A survey's cases: kernels of ``.cl`` files with their launches and data, as a folder's ``survey.json`` says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics.documents import DocumentKind
from perfmodel.basics.errors import KernelError, SurveyError, nearest
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_file import opencl_program, options_of_includes, read_source
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.types import Image as ImageType
from perfmodel.opencl_c.types import Pointer
from perfmodel.surveying.contents import contents, pixels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfmodel.opencl_c.lowered import LoweredKernel

NAME = "survey.json"
FILE = DocumentKind(
    name="survey",
    refusal="no survey",
    writer='somebody who followed docs/surveys.md ("format": "perfmodel-survey")',
    mend="mend it",
    again="write it anew",
    format="perfmodel-survey",
    version=1,
    error=SurveyError,
)
REQUIRED = {"name": str, "source": str, "kernel": str, "launches": dict}
OPTIONAL = {"group": str, "options": list, "folders": list, "any_order": list, "any_rounding": list}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One kernel of a survey with one launch.

    Attributes:
        folder: the survey's, in which sources and data lie.
        launch: which of the case's launches this is, such as ``cpu`` or ``gpu``.
        source: the ``.cl`` file; `options`: those of the build; `includes`: folders of included files.
        any_order: arrays whose contents depend on the order in which work-items run.
        any_rounding: arrays of whole numbers made of floats that OpenCL lets every device round in its own way.
        arguments: what is said of each, by name.
    """

    folder: Path
    name: str
    group: str
    launch: str
    source: str
    kernel: str
    options: tuple[str, ...]
    includes: tuple[str, ...]
    any_order: tuple[str, ...]
    any_rounding: tuple[str, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The source, with its includes in place.

        Raises:
            KernelError: for a file that cannot be read.
        """
        return read_source(self.folder / self.source, self._include_folders)[0]

    def lowered(self) -> LoweredKernel:
        """Reads the source and lowers the kernel.

        Raises:
            SourceError: for what is no OpenCL C, or not supported, with line and column.
        """
        text, path = self.text, self.folder / self.source
        options = [*self.options, *options_of_includes(path, text, self._include_folders)]
        return lowered_kernel(text, self.kernel, options)

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The contents of the array arguments, by name, as elements of their types: bytes are bytes."""
        types = {parameter.name: parameter.type for parameter in self.lowered().parameters}
        return {
            name: array.view("uint8") if isinstance(type_ := types[name], Pointer) and type_.target.size == 1 else array
            for name, array in self.contents.items()
        }

    @cached_property
    def contents(self) -> dict[str, NDArray[Any]]:
        """The contents of the array arguments, by name; of bytes, the numbers that they are said to be.

        Raises:
            KernelError: for data that are not there, or do not fit the kernel.
        """
        found: dict[str, NDArray[Any]] = {}
        for position, parameter in enumerate(self.lowered().parameters):
            name, type_ = parameter.name, parameter.type
            if isinstance(type_, ImageType):
                found[name] = pixels(name, self._said(name), type_, position)
            elif isinstance(type_, Pointer) and type_.space != "local":
                found[name] = contents(name, self._said(name), type_.target, self.folder, position)
        return found

    def as_kernel(self) -> Kernel:
        """Returns the case as a kernel, all its arguments bound.

        Raises:
            SourceError, KernelError: for what can't be read, or does not fit.
        """
        extents: dict[str, int | str] = {}
        scalars: dict[str, Any] = {}
        parameters = self.lowered().parameters
        for name in self.arguments:
            if name not in (names := [each.name for each in parameters]):
                raise KernelError(f"kernel {self.kernel!r} has no argument {name!r}{nearest(name, names)}")
        for parameter in parameters:
            name, said = parameter.name, self._said(parameter.name)
            if isinstance(parameter.type, ImageType):
                extents[name] = said
            elif not isinstance(parameter.type, Pointer):
                scalars[name] = said
            elif parameter.type.space == "local":
                extents[name] = _local_bytes(name, said)
            else:
                extents[name] = self.arrays[name].nbytes // parameter.type.target.size
        path, sizes = self.folder / self.source, (self.global_size, self.local_size)
        program = opencl_program(path, self.kernel, *sizes, extents, self.options, self._include_folders)
        return Kernel(program, {"generator": self.name}, None, **scalars)

    def host_arrays(self, kernel: Kernel) -> dict[str, np.ndarray]:
        """Returns the contents of the arrays with the types that a launch of the kernel declares."""
        return {each.name: self.arrays[each.name].reshape(-1).view(each.dtype) for each in kernel.launch().arrays()}

    @property
    def _include_folders(self) -> list[Path]:
        return [self.folder / each for each in self.includes]

    def _said(self, name: str) -> Any:
        if name not in self.arguments:
            raise KernelError(f"case {self.name!r} says nothing of the argument {name!r}; give it among its arguments")
        return self.arguments[name]


def load_cases(folder: str | Path, launch: str | None = None) -> list[Case]:
    """Returns the cases of a folder, each with one launch.

    Args:
        launch: which, such as ``cpu``; without it each case needs to have one only.

    Raises:
        SurveyError: for a folder without ``survey.json``, or one that says something that is not understood.
    """
    path = Path(folder)
    if not path.is_dir():
        raise SurveyError(f"{path} is no folder; give one with a file {NAME}")
    if not (path / NAME).exists():
        raise SurveyError(f"folder {path} has no file {NAME}; write one as docs/surveys.md says")
    document = FILE.load(path / NAME)
    entries = document.get("cases")
    if not isinstance(entries, list) or not entries:
        raise SurveyError(f"survey {path / NAME} has no cases; give a list of them")
    found = [_case(path, entry, number, launch) for number, entry in enumerate(entries, 1)]
    cases = [case for case in found if case is not None]
    names = [case.name for case in cases]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SurveyError(f"survey {path / NAME} has two cases {twice!r}; name them differently")
    if not cases:
        raise SurveyError(f"no case of survey {path / NAME} has a launch {launch!r}; give another --launch")
    return cases


def _case(folder: Path, entry: Any, number: int, launch: str | None) -> Case | None:
    what = f"case {number} of survey {folder / NAME}"
    if not isinstance(entry, dict):
        raise SurveyError(f"{what} is no object; give its name, source, kernel and launches")
    for key, kind in REQUIRED.items():
        if not isinstance(entry.get(key), kind) or not entry[key]:
            raise SurveyError(f"{what} has no {key}; give it")
    what = f"case {entry['name']!r} of survey {folder / NAME}"
    for key, value in entry.items():
        known = REQUIRED | OPTIONAL
        if key not in known:
            raise SurveyError(f"{what} has a {key!r}, which is not known{nearest(key, known)}; leave it out")
        if not isinstance(value, known[key]):
            raise SurveyError(f"{what} has {key} {value!r:.40}, which is no {_PLAIN[known[key]]}; give one")
    for key in ("options", "folders", "any_order", "any_rounding"):
        if not all(isinstance(each, str) for each in entry.get(key, [])):
            raise SurveyError(f"{what} has {key} that are no strings; give strings")
    launches = entry["launches"]
    if launch is None and len(launches) > 1:
        raise SurveyError(f"{what} has the launches {', '.join(launches)}; choose one by --launch")
    chosen = launch if launch is not None else next(iter(launches))
    if chosen not in launches:
        return None
    given = launches[chosen]
    if not isinstance(given, dict) or not isinstance(given.get("arguments"), dict):
        raise SurveyError(f"launch {chosen!r} of {what} has no arguments; give an object of them by name")
    if unknown := next((key for key in given if key not in ("global", "local", "arguments")), None):
        raise SurveyError(f"launch {chosen!r} of {what} has a {unknown!r}, which is not known; leave it out")
    return Case(
        folder=folder,
        name=entry["name"],
        group=entry.get("group", ""),
        launch=chosen,
        source=entry["source"],
        kernel=entry["kernel"],
        options=tuple(entry.get("options", ())),
        includes=tuple(entry.get("folders", ())),
        any_order=tuple(entry.get("any_order", ())),
        any_rounding=tuple(entry.get("any_rounding", ())),
        global_size=_axes(given, "global", what),
        local_size=_axes(given, "local", what),
        arguments=given["arguments"],
    )


_PLAIN = {str: "text", list: "list", dict: "object"}


def _axes(given: Mapping[str, Any], key: str, what: str) -> tuple[int, ...]:
    axes = given.get(key)
    if (
        not isinstance(axes, list)
        or not 1 <= len(axes) <= 3
        or not all(type(axis) is int and axis > 0 for axis in axes)
    ):
        raise SurveyError(f"{what} has no {key} size of 1 to 3 whole numbers; give work-items by axis, such as [1024]")
    return tuple(axes)


def _local_bytes(name: str, said: Any) -> int:
    if isinstance(said, dict) and set(said) == {"local_bytes"} and type(said["local_bytes"]) is int:
        return int(said["local_bytes"])
    raise KernelError(f'argument {name!r} is local memory, said to be {said!r:.40}; write {{"local_bytes": 1024}}')
