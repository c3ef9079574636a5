"""Writes the table of families in kernels.md: python docs/kernel_table.py"""

from __future__ import annotations

import re
from pathlib import Path

from perfmodel.collection.collection import ALL_GENERATORS
from perfmodel.collection.verification import verify_family
from perfmodel.device import find_device
from perfmodel.report.kernel_list import as_markdown

PAGE = Path(__file__).parent / "kernels.md"
TABLE = re.compile(r"(<!-- table: .*? -->\n).*(<!-- end of table -->)", re.DOTALL)


def main() -> None:
    device = find_device("cpu")
    checked = {generator.name: verify_family(generator, device) for generator in ALL_GENERATORS}
    table = f"{as_markdown(ALL_GENERATORS, checked)}\n\n{sum(checked.values())} kernels in all.\n"
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda found: found[1] + table + found[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
