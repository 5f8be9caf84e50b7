"""RESULTS.md from the figures in results/*.json and the prose in results/page.md.

    python benchmarks/render.py          # writes benchmarks/RESULTS.md

A line ``{{NAME TABLE}}`` of the prose stands for the table TABLE of ``results/NAME.json``.
"""

from __future__ import annotations

import re

from _results import FOLDER, load, made_with, table_lines

PAGE = FOLDER.parent / "RESULTS.md"


def render(folder=FOLDER):
    """Return the page."""

    def table(match):
        content = load(folder / f"{match[1]}.json")[match[2]]
        note = [content["note"], ""] if "note" in content else []
        return "\n".join([*table_lines(content), "", *note, f"*{made_with(content)}*"])

    prose = (folder / "page.md").read_text(encoding="utf-8")
    return re.sub(r"^\{\{(\S+) (.+)\}\}$", table, prose, flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
