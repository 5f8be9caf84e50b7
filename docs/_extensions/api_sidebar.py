"""The left sidebar of the API pages: short names, grouped by module as api.rst groups them."""

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
    parts = ['<nav class="bd-links api-links" aria-label="API reference">']
    for module, names in modules(Path(app.srcdir) / "api.rst").items():
        pages = {name: f"generated/{module}.{name}" for name in names}
        is_open = " open" if page_name in pages.values() else ""
        parts.append(f"<details{is_open}><summary>{escape(module)}</summary><ul>")
        for name, page in pages.items():
            current = ' class="current"' if page == page_name else ""
            href = escape(link(page_name, page))
            parts.append(f'<li{current}><a href="{href}">{escape(name)}</a></li>')
        parts.append("</ul></details>")
    return Markup("".join([*parts, "</nav>"]))


def add_to_context(app, page_name, template_name, context, doctree):
    """Give the template of the sidebar its content."""
    if page_name == "api" or page_name.startswith("generated/skcontrast"):
        context["api_links"] = render(app, page_name)


def setup(app):
    """Connect with Sphinx."""
    app.connect("html-page-context", add_to_context)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
