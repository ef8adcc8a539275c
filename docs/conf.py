"""Sphinx configuration."""

import inspect
import os
import sys
from pathlib import Path
from typing import Any

import matplotlib
from sphinx.util.inspect import stringify_signature

sys.path.insert(0, str(Path(__file__).parent))

project = "skmixdp"
author = "The skmixdp developers"
copyright = author
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = "skmixdp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
# The sections of docstrings say more than annotations such as Any.
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# Inherited docstrings refer to labels of scikit-learn's own documentation.
suppress_warnings = ["ref.ref"]

# -- gallery ---------------------------------------------------------------------------------

matplotlib.use("agg")
os.environ["TQDM_DISABLE"] = "1"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "doc_module": ("skmixdp",),
    "backreferences_dir": "gallery/backreferences",
    "reference_url": {"skmixdp": None},
    "reset_modules": ("matplotlib", "gallery_setup.around_example"),
    "reset_modules_order": "both",
    "within_subsection_order": "ExampleTitleSortKey",
    "capture_repr": ("_repr_html_",),
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e6,
    "write_computation_times": False,
    "download_all_examples": False,
    "abort_on_example_error": True,
}


# -- reference -------------------------------------------------------------------------------


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out of a class what it inherits from another library, and what has no code."""
    code = getattr(obj, "fget", None) or getattr(obj, "func", None) or getattr(obj, "__func__", obj)
    if what == "class" and not str(getattr(code, "__module__", "")).startswith("skmixdp"):
        return True
    return None


def own_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """Show the parameters of ``__init__`` where ``__new__`` takes any."""
    if what != "class" or not (signature or "").startswith("(*args"):
        return None
    shown = inspect.signature(obj).replace(return_annotation=inspect.Signature.empty)
    return stringify_signature(shown, show_annotation=False), returned


def fold_navigation(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Open the branch of the present page only: the whole reference on each page takes most of a build."""
    whole = context.get("toctree")
    if whole is not None:
        context["toctree"] = lambda **options: whole(**(options | {"collapse": True}))


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", fold_navigation, priority=100)  # before the theme's own
    app.connect("autodoc-process-signature", own_signature)
    app.connect("autodoc-skip-member", skip_foreign)
