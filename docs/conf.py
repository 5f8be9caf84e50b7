"""Configuration of the documentation: sphinx-build -W --keep-going docs docs/_build.

Two environment variables change the build: SKCONTRAST_DOCS_INTERSPHINX=1 links the names of other
libraries to their documentation, which needs the internet, and SKCONTRAST_DOCS_BASEURL says where
the pages will be.
"""

import os
import sys
from importlib.metadata import distribution
from pathlib import Path

import skcontrast

# Examples import what benchmarks draw scores from.
sys.path[:0] = [str(Path(__file__).parent / "_extensions"), str(Path(__file__).parents[1])]

project = "skcontrast"
copyright = "The skcontrast developers"
author = "The skcontrast developers"
version = release = skcontrast.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "myst_parser",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "sklearn_pages",
]
exclude_patterns = ["_build", "auto_examples/**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "literal"

autosummary_generate = True
autodoc_typehints = "none"
# "On this page" lists methods without the name of their class.
toc_object_entries_show_parents = "hide"
# Members are listed by _templates/autosummary/class.rst.
numpydoc_show_class_members = False

# A reference that leads nowhere is an error, except to the names of other libraries.
nitpicky = True
others = "matplotlib|numpy|scipy|sklearn|skorch|socket|torch|torch_geometric"
nitpick_ignore_regex = [("py:.*", rf"({others})\..*")]
intersphinx_mapping = {
    "matplotlib": ("https://matplotlib.org/stable", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "python": ("https://docs.python.org/3", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "skorch": ("https://skorch.readthedocs.io/en/stable", None),
    "torch": ("https://docs.pytorch.org/docs/stable", None),
}
if os.environ.get("SKCONTRAST_DOCS_INTERSPHINX") != "1":
    intersphinx_mapping = {}

# The landing page includes sections of README, whose headings are of the second level.
suppress_warnings = ["myst.header"]

# Prompts and output are not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Formulas work offline: MathJax is one file that is copied from an installed package.
mathjax_file = "tex-svg-full.js"
mathjax_path = mathjax_file
mathjax3_config = {"svg": {"fontCache": "global"}, "options": {"enableMenu": False}}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "subsection_order": [
        f"../examples/{folder}" for folder in ("data", "judging", "losses", "papers")
    ],
    "within_subsection_order": "gallery.ExampleOrder",
    "thumbnail_size": (640, 560),
    "doc_module": ("skcontrast",),
    "reference_url": {"skcontrast": None},
    "backreferences_dir": "generated/backreferences",
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
}

# Plots of stored figures, from scripts in figures/.
plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False

html_theme = "pydata_sphinx_theme"
html_title = f"skcontrast {version}"
html_baseurl = os.environ.get("SKCONTRAST_DOCS_BASEURL", "")
html_static_path = [
    "_static",
    str(
        distribution("sphinx-mathjax-offline").locate_file(
            f"sphinx-mathjax-offline/static/mathjax/{mathjax_file}"
        )
    ),
]
html_css_files = ["skcontrast.css"]
html_extra_path = ["_extra"]
html_js_files = ["skcontrast.js"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navbar_end": ["version-switcher", "theme-switcher"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "switcher": {"json_url": "_static/switcher.json", "version_match": version},
}
# Pages that stand alone have no left sidebar; the others list their neighbours in it.
html_sidebars = {
    "index": [],
    "getting_started": [],
    "losses": [],
    "mathematics": [],
    "papers": [],
    "measured": [],
    "comparison": [],
    "questions": [],
    "changelog": [],
    "contributing": [],
    "genindex": [],
    "py-modindex": [],
    "search": [],
    "api": ["api-links"],
    "generated/*": ["api-links"],
}
html_show_sourcelink = False
