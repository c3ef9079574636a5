"""Builds the documentation as a site: ``make docs`` writes it to build/docs, every warning an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import perfmodel
from perfmodel.collection.collection import ALL_GENERATORS
from perfmodel.report.kernel_list import as_text
from perfmodel.vocabulary.named_features import families

HERE = Path(__file__).resolve().parent

project = "perfmodel"
author = "the perfmodel developers"
project_copyright = "2026, the perfmodel developers"
version = release = perfmodel.__version__
# The reference has the names that people write.
sys.modules["pm"] = perfmodel
sys.path.insert(0, str(HERE))
extensions = ["formulas", "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["results/**", "images/**"]
html_theme = "furo"
html_title = f"perfmodel {release}"
html_show_sphinx = False
html_copy_source = False
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
# Formulas are drawn into the pages: nothing is loaded from elsewhere.
html_math_renderer = "svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
nitpicky = False
suppress_warnings = ["misc.highlighting_failure"]


def setup(app):
    app.connect("source-read", _prepared)
    app.connect("autodoc-process-docstring", _keep_property, priority=100)
    app.connect("autodoc-process-docstring", _give_back_property, priority=900)


_properties = {}


def _keep_property(app, what, name, thing, options, lines):
    """Napoleon takes the words before a property's first colon for its type; ours are sentences."""
    if what == "property":
        _properties[name] = list(lines)


def _give_back_property(app, what, name, thing, options, lines):
    if name in _properties:
        lines[:] = _properties.pop(name)


def _prepared(app, page, source):
    """Prepares a page for the site: folders of the repository are no links, and tables follow from the code."""
    source[0] = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)#]+)\)", _without_folder, source[0])
    if page == "tables":
        source[0] += _tables()


def _without_folder(link):
    """Turns a link to what is no page into the path of it in the repository."""
    text, path = link.groups()
    target = (HERE / path).resolve()
    is_page = target.suffix == ".md" and target.parent == HERE
    is_page |= target.suffix == ".png" and target.is_relative_to(HERE / "images")
    return link[0] if is_page or not target.exists() else f"{text} (`{target.relative_to(HERE.parent)}`)"


def _tables():
    lines = ["\n## Features\n", "| family | what it counts | examples |", "|---|---|---|"]
    for family in families():
        examples = ", ".join(f"`{example}`" for example in family.examples)
        lines.append(f"| `{family.name}` | {family.summary} | {examples} |")
    lines += ["\n## Generators and their tags\n", "```text", as_text(ALL_GENERATORS), "```", ""]
    return "\n".join(lines)
