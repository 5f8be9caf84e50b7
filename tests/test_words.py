"""Pages, docstrings, comments and messages use the words of the field, not home-made ones."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTEAD = {
    r"beside|side by side": "next to, together with, concatenated with",
    r"guess(es|ed)?": "pseudo-labels; detected",
    r"own work|of ones own": "custom",
    r"(can(not)?|could|nothing) be told": "no significant difference",
    r"what (is|are) not trained|nothing learned": "frozen features",
    r"classmates?": "samples of the same class",
    r"mirrors and turns": "flips and rotations",
    r"labels? a class": "labels per class",
    r"hardly|seldom|so few|so many": "rarely, at most n",
    r"whatever": "any",
    r"taken for|in the place of": "treated as, instead of",
    r"a quarter of a minute": "15 s",
    r"cannot be told from": "no significant difference from",
    r"costs? nothing|needs? no training|rivals?": "training-free baselines",
    r"from nothing": "from scratch",
    r"in neighbours": "k-NN accuracy",
    r"own pieces|pieces? of (your|their) own": "custom components",
    r"made (numbers|graphs|molecules)": "synthetic data",
}


def texts():
    """Yield file names and texts, in which a line break is a space."""
    texts = ["*.md", "docs/*.rst", "docs/guide/*.rst", "benchmarks/**/*.md"]
    code = [f"{folder}/**/*.py" for folder in ("skcontrast", "examples", "benchmarks")]
    for path in sorted(path for pattern in texts + code for path in ROOT.glob(pattern)):
        text = re.sub(r"\s*\n\s*(# )?", " ", path.read_text(encoding="utf-8"))
        yield path.relative_to(ROOT).as_posix(), text


def test_no_text_has_a_word_for_which_the_field_has_another():
    found = [
        f"{name}: …{text[max(0, match.start() - 40) : match.end() + 40]}… Write: {instead}."
        for name, text in texts()
        for word, instead in INSTEAD.items()
        for match in re.finditer(rf"\b({word})\b", text, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)
