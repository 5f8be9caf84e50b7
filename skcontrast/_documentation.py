"""Links from the HTML representation of an object to its page in the documentation."""

from __future__ import annotations

import functools
import os
import sys
from importlib.metadata import PackageNotFoundError, metadata


@functools.cache
def _published_url() -> str:
    try:
        urls = metadata("skcontrast").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(url.split(", ", 1) for url in urls)
    return named.get("Documentation", "")


class DocumentationLink:
    """Mixin of all that scikit-learn draws as HTML.

    The environment variable ``SKCONTRAST_DOCS_URL`` says where the documentation is. Without it,
    this is the URL "Documentation" of the installed package; without that, there are no links.
    """

    _doc_link_module = "skcontrast"
    _doc_link_template = "{url}/generated/{module}.{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        url = os.environ.get("SKCONTRAST_DOCS_URL") or _published_url()
        name, module = type(self).__name__, ".".join(type(self).__module__.split(".")[:2])
        is_at_the_top = name in sys.modules["skcontrast"].__all__
        return {
            "url": url.rstrip("/"),
            "module": "skcontrast" if is_at_the_top else module,
            "name": name,
        }

    def _get_doc_link(self) -> str:
        if not (os.environ.get("SKCONTRAST_DOCS_URL") or _published_url()):
            return ""
        return super()._get_doc_link()  # type: ignore[misc]
