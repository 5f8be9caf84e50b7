"""Configuration of the documentation: sphinx-build -W --keep-going docs docs/_build."""

from importlib.metadata import version as installed_version

project = "skcontrast"
copyright = "The skcontrast developers"
author = "The skcontrast developers"
version = release = installed_version("skcontrast")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "literal"

autosummary_generate = True
autodoc_typehints = "none"
# Members are listed by _templates/autosummary/class.rst: only those that the class itself defines.
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "doc_module": ("skcontrast",),
    "reference_url": {"skcontrast": None},
    "backreferences_dir": "generated/backreferences",
    "remove_config_comments": True,
    "show_memory": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skcontrast {version}"
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_show_sourcelink = False
