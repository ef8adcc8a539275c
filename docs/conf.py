"""Sphinx configuration."""

import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib
from sphinx.util.inspect import stringify_signature

import skmixdp

sys.path.insert(0, str(Path(__file__).parent))

project = "skmixdp"
version = release = skmixdp.__version__
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
html_title = f"skmixdp {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_copy_source = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
# The contents at the right say "fit()", not the name of the class before each method.
toc_object_entries_show_parents = "hide"
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
    "image_scrapers": ("gallery_setup.figures",),
    "nested_sections": False,
    "subsection_order": [
        f"../examples/gallery/{group}" for group in ("tutorials", "data", "budget", "models", "evidence")
    ],
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


def is_own(member: Any) -> bool:
    """Whether the code of a member of a class is this package's. ``score`` is shown, whoever wrote it."""
    code = getattr(member, "fget", None) or getattr(member, "func", None)
    code = code or getattr(member, "__func__", member)
    written_here = str(getattr(code, "__module__", "")).startswith("skmixdp")
    return written_here or getattr(code, "__name__", "") == "score"


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out of a class what it inherits from another library, and what has no code."""
    return True if what == "class" and not is_own(obj) else None


def list_methods(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Add a table of the methods of a class, with the first sentence of each, at the end of its docstring."""
    if what not in ("class", "exception"):
        return
    methods = [
        method
        for method, member in inspect.getmembers(obj, inspect.isroutine)
        if method[0] != "_" and is_own(member) and inspect.getdoc(member)
    ]
    if methods:
        lines += ["", ".. rubric:: Methods", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   ~{obj.__name__}.{method}" for method in methods] + [""]


def own_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """Show the parameters of ``__init__`` where ``__new__`` takes any."""
    if what != "class" or not (signature or "").startswith("(*args"):
        return None
    shown = inspect.signature(obj).replace(return_annotation=inspect.Signature.empty)
    return stringify_signature(shown, show_annotation=False), returned


#: Entries of public constants in the sidebar, which lists classes and functions alone.
CONSTANTS = re.compile(
    r'<li class="toctree-l\d"><a class="reference internal" href="[^"]*">'
    r"BY_NAME</a></li>\n?"
)


def fold_navigation(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Open the branch of the present page only: the whole reference on each page takes most of a build."""
    whole = context.get("toctree")
    if whole is not None:
        context["toctree"] = lambda **options: CONSTANTS.sub("", whole(**(options | {"collapse": True})))


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", fold_navigation, priority=100)  # before the theme's own
    app.connect("autodoc-process-docstring", list_methods, priority=600)  # after numpydoc's own
    app.connect("autodoc-process-signature", own_signature)
    app.connect("autodoc-skip-member", skip_foreign)
