"""A survey's cases: kernels of source files with their launches and data, as a folder's ``survey.json`` says them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfmodel.basics.documents import DocumentKind
from perfmodel.basics.errors import SurveyError, nearest
from perfmodel.surveying.case import Case
from perfmodel.surveying.cuda_case import CudaCase
from perfmodel.surveying.opencl_case import OpenclCase

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


LANGUAGES: Mapping[str, type[Case]] = {".cl": OpenclCase, **dict.fromkeys((".cu", ".cuh"), CudaCase)}
"""Classes of cases by the endings of their sources."""
AXES: Mapping[type[Case], Mapping[str, str]] = {
    OpenclCase: {"global": "global_size", "local": "local_size"},
    CudaCase: {"grid": "grid", "block": "block"},
}
"""Sizes of a launch in ``survey.json``, and the attributes of a case that have them."""


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
    language = LANGUAGES.get(Path(entry["source"]).suffix)
    if language is None:
        raise SurveyError(f"{what} has the source {entry['source']!r}; give a file that ends in {', '.join(LANGUAGES)}")
    axes, others = AXES[language], ("shared",) if language is CudaCase else ()
    if unknown := next((key for key in given if key not in (*axes, *others, "arguments")), None):
        remedy = "write it beside the launches" if unknown in REQUIRED | OPTIONAL else "leave it out"
        raise SurveyError(f"launch {chosen!r} of {what} has a {unknown!r}, which is not known there; {remedy}")
    for key in others:
        if type(given.get(key, 0)) is not int or given.get(key, 0) < 0:
            raise SurveyError(f"launch {chosen!r} of {what} has {key} {given[key]!r:.40}; give a number of bytes")
    return language(
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
        arguments=given["arguments"],
        **{attribute: _axes(given, key, what) for key, attribute in axes.items()},
        **{key: given.get(key, 0) for key in others},
    )


_PLAIN = {str: "text", list: "list", dict: "object"}


def _axes(given: Mapping[str, Any], key: str, what: str) -> tuple[int, ...]:
    axes = given.get(key)
    if (
        not isinstance(axes, list)
        or not 1 <= len(axes) <= 3
        or not all(type(axis) is int and axis > 0 for axis in axes)
    ):
        raise SurveyError(f"{what} has no {key} size of 1 to 3 whole numbers; give them by axis, such as [1024]")
    return tuple(axes)
