"""Sphinx configuration."""

project = "skmixdp"
author = "The skmixdp developers"
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
html_theme = "furo"
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
exclude_patterns = ["_build"]
# Inherited docstrings refer to labels of scikit-learn's own documentation.
suppress_warnings = ["ref.ref"]
