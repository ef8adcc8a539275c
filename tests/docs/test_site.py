"""Links lead somewhere, every public name has its page, and first steps are complete."""

import importlib
import inspect
import pkgutil
import re
import shlex
from functools import cache
from pathlib import Path

import sklearn

import skmixdp
from skmixdp.privacy import notebook
from tests.docs import built
from tests.private_names import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GALLERY = ROOT / "examples" / "gallery"
PAGES = sorted(DOCS.rglob("*.md"))
#: Pages in Markdown that link to each other: those of the site, and what a browser of the repository sees.
LINKING = [
    *(page for page in PAGES if not {"_build", "api", "gallery"} & set(page.relative_to(DOCS).parts)),
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
    ),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]

# -- public names ----------------------------------------------------------------------------


@cache
def public_names():
    """Full name of every public object, without second names of the same object."""
    modules = [found.name for found in pkgutil.iter_modules(skmixdp.__path__) if found.name[0] != "_"]
    names, seen = set(), set()
    for module in ["", *sorted(modules), "algorithms.modelmix"]:  # names at the top come first
        path = ".".join(filter(None, ("skmixdp", module)))
        loaded = importlib.import_module(path)
        listed = getattr(loaded, "__all__", None)
        if listed is None:
            listed = [
                name for name, value in vars(loaded).items() if getattr(value, "__module__", "") == path
            ]
        for name in listed:
            value = getattr(loaded, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                if value in seen:
                    continue
                seen.add(value)
            names.add(f"{path}.{name}")
    return names


def names_page(text):
    """Names of a page in the form of docs/names.md, each with the pages that explain it."""
    rows = re.findall(r"^\| \{py:obj\}`~([\w.]+)` \| .*\| \[[^\]]+\]\(([\w/]+\.md)\) \|$", text, flags=re.M)
    return dict(rows)


def test_the_public_names_are_found():
    names = public_names()
    assert {
        "skmixdp.MixedDPRidge",
        "skmixdp.exceptions.BudgetExceededError",
        "skmixdp.privacy.NoiseSource",
    } <= names
    assert "skmixdp.algorithms.ModelMix" in names and "skmixdp.algorithms.modelmix.ModelMix" not in names
    assert len(names) > 90


def reference():
    """Names on the two pages of the reference, without the name of the package."""
    pages = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("api.md", "api_components.md"))
    return re.findall(r"^   ([A-Za-z][\w.]+)$", pages, flags=re.M)


def test_every_public_name_is_in_the_reference():
    listed = {f"skmixdp.{name}" for name in reference()}
    assert len(listed) == len(reference()), "a name has two pages"
    assert public_names() - listed == set()
    own = ("skmixdp.components.protocols.", "skmixdp.components.public.")
    protocols = {name for name in listed if name.startswith(own)}
    assert listed - public_names() == protocols


def test_the_box_of_an_estimator_links_to_its_page(monkeypatch):
    monkeypatch.setattr(notebook, "documentation", lambda: "")
    pages = {f"api/skmixdp.{name}.html" for name in reference()}
    boxed = [
        value
        for value in map(resolved, sorted(public_names()))
        if inspect.isclass(value) and issubclass(value, notebook.GuaranteeBoxMixin)
    ]
    assert len(boxed) == 11
    assert [value for value in boxed if value._get_doc_link(object.__new__(value)) not in pages] == []


def resolved(name):
    """The object of a full name."""
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(module), own)


def test_the_sidebar_leaves_constants_out():
    constants = {name for name in public_names() if name.rpartition(".")[2].isupper()}
    constants -= {name for name in constants if inspect.isclass(resolved(name))}
    listed = re.search(r"([A-Z_|]+)</a>", (DOCS / "conf.py").read_text(encoding="utf-8"))[1]
    assert {name.rpartition(".")[2] for name in constants} == set(listed.split("|"))


def test_the_protocols_are_in_the_reference():
    module = importlib.import_module("skmixdp.components.protocols")
    names = {
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    }
    known = {entry.rpartition(".")[2] for entry in reference() if entry.startswith("components.")}
    assert {name for name in names if inspect.isclass(getattr(module, name))} <= known


def test_every_public_name_has_a_page_that_explains_it():
    pages = names_page((DOCS / "names.md").read_text(encoding="utf-8"))
    assert set(pages) == public_names()
    silent = {
        name: page
        for name, page in pages.items()
        if not re.search(rf"\b{name.rsplit('.')[-1]}\b", (DOCS / page).read_text(encoding="utf-8"))
    }
    assert silent == {}


def test_a_row_of_the_names_is_read():
    row = "| {py:obj}`~skmixdp.load` | Read a file \\| more. | [Saving](saving.md) |"
    assert names_page(f"text\n{row}\n") == {"skmixdp.load": "saving.md"}


# -- links -----------------------------------------------------------------------------------


@cache
def anchors(page):
    """Anchors of the headings of a page, as code hosts and the site make them."""
    text = page.read_text(encoding="utf-8")
    for included in re.findall(r"^```\{include\} (\S+)", text, flags=re.M):
        text += (page.parent / included).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    plain = (re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


def links(page):
    """Links of a page in Markdown outside code."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def broken(page):
    """Links of a page within the project that lead nowhere."""
    found = []
    for link in links(page):
        if re.match(r"\w+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        if file.is_relative_to(DOCS / "gallery"):  # made from the examples
            drawn_by = re.fullmatch(r"images/sphx_glr_(\w+)_\d{3}.png", "/".join(file.parts[-2:]))
            file = file.parents[1] / f"{drawn_by[1]}.rst" if drawn_by else file
            made_from = "README.rst" if file.name == "index.rst" else file.with_suffix(".py")
            file = GALLERY / file.relative_to(DOCS / "gallery").with_name(Path(made_from).name)
        if not file.exists() or (anchor and anchor not in anchors(file)):
            found.append(link)
    return found


def test_links_and_their_anchors_lead_somewhere():
    found = {str(page.relative_to(ROOT)): wrong for page in LINKING if (wrong := broken(page))}
    assert found == {}


def test_pages_show_what_they_draw():
    """Code that draws has a picture on its page, which the gallery or a benchmark draws."""
    draws = re.compile(r"^```python\n(?:(?!^```).)*(?:Display\.from_|\.plot\()", flags=re.M | re.S)
    pages = {page.stem: page.read_text(encoding="utf-8") for page in LINKING if page.parent == DOCS}
    drawing = {name for name, text in pages.items() if draws.search(text)}
    assert {"additive", "displays", "evaluation"} <= drawing
    assert {name for name in drawing if "![" not in pages[name]} == set()
    for name in ("inference", "persons", "ledger", "audit"):
        assert "](gallery/" in "".join(re.findall(r"!\[[^]]*\]\(\S+\)", pages[name])), name


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A title: `x`\n\n[a](page.md#a-title-x) [b](page.md#none) [c](no.md) [d](https://e.org)\n"
    )
    assert broken(page) == ["page.md#none", "no.md"]


def test_links_of_a_built_site_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "page.html").write_text('<a href="two.html#there"><a href="two.html#not"><img src="no.png">')
    (tmp_path / "two.html").write_text('<a href="https://e.org"><a href="file:///home"><p id="there">')
    found = [(file.name, link) for file, link in built.broken(tmp_path)]
    assert sorted(found) == [
        ("page.html", "no.png"),
        ("page.html", "two.html#not"),
        ("two.html", "file:///home"),
    ]


def test_external_links_are_those_that_are_listed():
    """A new address is a decision; docs/external_links.txt lists them all."""
    addresses = {link for page in LINKING for link in links(page) if link.startswith("http")}
    assert sorted(addresses) == (DOCS / "external_links.txt").read_text(encoding="utf-8").split()


# -- pages -----------------------------------------------------------------------------------


def entries(page):
    """Pages in the tables of contents of a page, as files, without those that a build makes."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    named = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    return [(page.parent / f"{name}.md").resolve() for name in named if name != "gallery/index"]


def test_every_page_is_in_one_group_of_the_sidebar():
    pages = [page for page in LINKING if page.is_relative_to(DOCS)]
    found = sorted(entry for page in pages for entry in entries(page))
    assert found == sorted(set(pages) - {DOCS / "index.md"})


def test_the_sidebar_is_short():
    assert len(entries(DOCS / "index.md")) <= 20
    for group in ("data", "budget", "models", "serving", "evidence"):
        assert DOCS / f"{group}.md" in entries(DOCS / "index.md")
        assert len(entries(DOCS / f"{group}.md")) >= 3


def test_group_pages_say_what_each_of_their_pages_is_for():
    for group in ("data", "budget", "models", "serving", "evidence"):
        page = DOCS / f"{group}.md"
        rows = re.findall(r"^\| .{10,} \| \[.*\]\((\w+)\.md\) \|$", page.read_text("utf-8"), flags=re.M)
        assert [DOCS / f"{name}.md" for name in rows] == entries(page)


def test_research_and_results_are_not_in_the_search():
    research = [page for page in LINKING if page.parent in (DOCS / "results", DOCS / "reproduce")]
    named = (
        "decisions",
        "mutants",
        "names",
        "quickstart_results",
        "replay_and_sabotage",
        "reproduce",
        "sabotage",
    )
    pages = [*research, *(DOCS / f"{name}.md" for name in named)]
    assert [
        page for page in pages if not page.read_text("utf-8").startswith("---\nnosearch: true\n---\n")
    ] == []


def test_the_choice_of_a_model_starts_with_a_table_of_data():
    """Curves come first for numbers in tables, and lines for features."""
    text = (DOCS / "choosing_algorithm.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*) \| (.*) \| .* \|$", text.partition("## ")[0], flags=re.M)
    assert rows[0][0] == "your data" and "AdditiveDPClassifier" in rows[2][1]
    assert ("features of a network, from images or texts", "`MixedDPLogisticRegression`") in rows


def test_the_first_page_shows_the_table_of_the_readme():
    """The README's is run in test_docs.py."""
    first, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/index.md", "README.md"))
    (shown,) = re.findall(r"^```python\n.*?^```", first, flags=re.M | re.S)
    assert shown in readme


def test_first_steps_are_complete(tmp_path, monkeypatch):
    """All that the page says is run in its order, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "first_steps.md").read_text(encoding="utf-8")
    namespace = {"__name__": "__main__"}
    with sklearn.config_context():  # the page changes a setting for itself
        for kind, code in re.findall(r"^```(python|bash)\n(.*?)^```", page, flags=re.M | re.S):
            if kind == "python":
                exec(compile(code, "first_steps.md", "exec"), namespace)
            else:
                for line in code.splitlines():
                    program, *arguments = shlex.split(line)
                    assert program == "skmixdp" and main(arguments) == 0, line
    assert {"model.safetensors", "report.html", "predictions.csv", "alone.safetensors"} <= {
        file.name for file in tmp_path.iterdir()
    }


def test_the_gallery_has_an_example_of_each_task():
    examples = sorted(GALLERY.glob("*/plot_*.py"))
    assert len(examples) >= 9
    assert examples == sorted(GALLERY.rglob("plot_*.py"))
    groups = {example.parent for example in examples}
    ordered = re.search(r"for group in \((.*?)\)", (DOCS / "conf.py").read_text(encoding="utf-8"))[1]
    assert {group.name for group in groups} == set(re.findall(r"\w+", ordered))
    assert all((group / "README.rst").exists() for group in groups)
    for example in examples:
        text = example.read_text(encoding="utf-8")
        title, underline = text.split("\n")[1:3]
        assert re.fullmatch("=+", underline) and len(underline) == len(title), example.name
        assert "plt.subplots" in text or "Display.from_" in text, f"{example.name} shows no picture"
        seeded = re.search(r"(DP\w+|NoisyScaler)\([^)]*random_state", text)
        assert not seeded, f"{example.name} seeds a fit, so that it is not private"


def test_the_gallery_is_built_once():
    """The documentation runs the examples; pytest collects none of them."""
    collected = re.search(r"^testpaths = (.*)$", (ROOT / "pyproject.toml").read_text(), flags=re.M)[1]
    assert "examples" not in collected
