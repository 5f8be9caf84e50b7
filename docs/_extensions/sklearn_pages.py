"""What the pages take from scikit-learn: its list of checks, and docstrings without its labels."""

import re

from docutils import nodes
from docutils.parsers.rst import Directive
from sklearn.utils.estimator_checks import check_estimator

from skcontrast import ContrastiveEmbedder


class EstimatorChecks(Directive):
    """Run scikit-learn's checks of an embedder, and list them with what came out."""

    def run(self):
        embedder = ContrastiveEmbedder(max_epochs=1, batch_size=32, random_state=0)
        checks = nodes.bullet_list(classes=["checks"])
        for result in check_estimator(embedder, on_skip=None, on_fail=None):
            item = nodes.paragraph("", "", nodes.literal("", result["check_name"]))
            item += nodes.Text(f": {result['status']}")
            checks += nodes.list_item("", item)
        return [checks]


def without_labels(app, what, name, obj, options, lines):
    """Replace references to scikit-learn's own pages by their text in inherited docstrings."""
    for k, line in enumerate(lines):
        line = re.sub(r":(?:ref|term|doc):`([^`<]+?)\s*<[^>]+>`", r"\1", line)
        lines[k] = re.sub(
            r":(?:ref|term|doc):`(?:sphx_glr_\w+\.py|metadata_routing)`", "its page", line
        )


def setup(app):
    """Connect with Sphinx."""
    app.add_directive("estimator-checks", EstimatorChecks)
    app.connect("autodoc-process-docstring", without_labels)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
