"""The API pages: their left sidebar, and the parameters of the embedder.

The sidebar has short names, grouped by module as api.rst groups them. A long signature is
cut, and parameters stand under the groups that the text of a docstring lists.
"""

import inspect
import re
from pathlib import Path

from markupsafe import Markup, escape


def modules(path):
    """Return the names that a page like api.rst lists, by module, in its order."""
    names, module = {}, None
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if directive := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = names.setdefault(directive[1], [])
        elif re.fullmatch(r"   \w+", line):
            module.append(line.strip())
    return names


def render(app, page_name):
    """Return the sidebar of a page as HTML; the module of the page is unfolded."""
    link = app.builder.get_relative_uri
    html = ['<nav class="bd-links api-links" aria-label="API reference">']
    for module, names in modules(Path(app.srcdir) / "api.rst").items():
        pages = {name: f"generated/{module}.{name}" for name in names}
        is_open = " open" if page_name in pages.values() else ""
        html.append(f"<details{is_open}><summary>{escape(module)}</summary><ul>")
        for name, page in pages.items():
            current = ' class="current"' if page == page_name else ""
            href = escape(link(page_name, page))
            html.append(f'<li{current}><a href="{href}">{escape(name)}</a></li>')
        html.append("</ul></details>")
    return Markup("".join([*html, "</nav>"]))


def add_to_context(app, page_name, template_name, context, doctree):
    """Give the template of the sidebar its content."""
    if page_name == "api" or page_name.startswith("generated/skcontrast"):
        context["api_links"] = render(app, page_name)


def fold(app, what, name, obj, options, signature, return_annotation):
    """Cut the signature of a class with many parameters after the fifth."""
    if what == "class" and signature and len(inspect.signature(obj).parameters) > 12:
        return re.match(r"\((?:[^,]+, ){5}", signature)[0] + "...)", return_annotation
    return None


def grouped(text):
    """Return numpydoc's text with the parameters under the groups that it lists."""
    listed = re.search(r"[^\n.]*\bform \w+ groups:\n\n((?:[- ] .*\n)+)\n", text)
    if not listed:
        return text
    section = re.search(r"(?<=^:Parameters:\n\n)(?:(?: .*)?\n)+", text, re.MULTILINE)
    blocks = re.split(r"^(?=    \*\*(\w+)\*\* :)", section[0], flags=re.MULTILINE)[1:]
    blocks = dict(zip(blocks[::2], blocks[1::2], strict=True))
    groups = []
    for group in listed[1].split("\n- "):
        title, _, names = group.removeprefix("- ").partition(":")
        groups.append(f"    .. rubric:: {title.capitalize()}\n\n")
        groups += [blocks.pop(name) for name in re.findall(r"`(\w+)`", names)]
    if blocks:
        raise ValueError(f"The groups of parameters lack {sorted(blocks)}.")
    text = text.replace(section[0], "".join(groups))
    return text.replace(listed[0], "\n\n")  # what precedes it may be of the same paragraph


def group_parameters(app, what, name, obj, options, lines):
    """Put the parameters of a class under its groups, after numpydoc has listed them."""
    if what == "class":
        lines[:] = grouped("\n".join(lines)).split("\n")


def setup(app):
    """Connect with Sphinx."""
    app.connect("html-page-context", add_to_context)
    app.connect("autodoc-process-signature", fold)
    app.connect("autodoc-process-docstring", group_parameters, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
