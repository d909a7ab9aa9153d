"""The reference: every public name has one place in it, pages are linked, and what it says of ops is up to date."""

from __future__ import annotations

import doctest
import re
from collections import Counter
from pathlib import Path

import limelight as ll
import ops_of_example
import reference
from limelight.core.op import all_ops, home_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = (DOCS / "index.md").read_text(encoding="utf-8")
WITHOUT_EXAMPLE = {  # and why; `%load_ext limelight` calls both, and tests/kernel_ext runs them in shells
    "ll.load_ipython_extension": "takes an IPython shell, and to make one would replace the `__main__` of the reader",
    "ll.unload_ipython_extension": "the same",
}


def test_every_public_name_is_on_one_page():
    listed = Counter(name for text in reference.pages().values() for name in reference.names_on(text))
    assert set(reference.public_names()) - set(listed) == set(), "list it in a page of docs/reference"
    assert [name for name, times in listed.items() if times > 1] == []
    for name in set(listed) - set(reference.public_names()):
        assert callable(reference.resolved(name)), f"{name} is listed and is not there"
    assert len(listed) > 550, "the walk has missed the pages"


def has_example(text: str) -> bool:
    """Whether a docstring has an example, no line of which is skipped. `test_docstrings` runs them."""
    examples = doctest.DocTestParser().get_examples(text)
    return bool(examples) and not any(example.options.get(doctest.SKIP) for example in examples)


def test_every_public_callable_has_an_example_that_is_run():
    public = {name: value for name, value in reference.public_names().items() if callable(value)}
    lacking = {name for name, value in public.items() if not has_example(value.__doc__ or "")}
    assert lacking == set(WITHOUT_EXAMPLE), "write one in its docstring"
    assert len(public) > 500, "the walk has missed the names"
    assert not has_example(">>> import limelight as ll\n>>> f()  # doctest: +SKIP\n")


def test_pages_in_the_source_tree_say_how_each_name_is_called_and_what_it_is():
    pages = reference.pages()
    stale = [name for name, text in pages.items() if text != reference.listed(text)]
    assert not stale, "run `python scripts/reference.py`"
    lines = re.findall(r"^- `(?:ll|limelight)\..*$", "\n".join(pages.values()), re.MULTILINE)
    assert [line for line in lines if not re.search(r"`: .+\.$", line)] == []
    told = [line.partition("`: ")[2] for line in lines]
    assert [line for line in told if line.count("(") > line.count(")") or line.endswith(" al.")] == [], "cut short"
    assert "- `ll.take(x, /, indices, axis=0)`: The slices of `x` at `indices` along `axis`" in pages["shapes.md"]


def test_every_page_of_the_documentation_is_in_the_navigation():
    linked = set(re.findall(r"^[\w/]+$", SITE, flags=re.MULTILINE))
    written = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")}
    assert written - {"index", "package_index"} == linked


def test_every_page_of_the_reference_is_listed_on_its_first():
    first = reference.pages()["README.md"]
    assert {name for name in reference.pages() if f"({name})" not in first} == {"README.md"}


def test_every_op_has_its_place_in_the_table_of_executors():
    page = (DOCS / "executors.md").read_text(encoding="utf-8")
    ours = {name for name in all_ops() if home_of(name).startswith("limelight.")}
    assert ours - set(re.findall(r"`(\w+)`", page)) == set(), "run `python scripts/executors_table.py`"


def test_signatures_read_as_they_are_written():
    assert reference.signatures("ll.multiply", ll.multiply) == [
        "ll.multiply(x: TensorLike, y: TensorLike, /) -> Tensor"
    ]
    assert reference.signatures("ll.nn.Flatten", ll.nn.Flatten) == ["ll.nn.Flatten()"]
    assert "self" not in "".join(reference.signatures("gradient", ll.GradientTape.gradient))
    assert not [name for name, value in reference.public_names().items() if "<" in str(reference.signatures("", value))]


def test_each_way_to_call_has_a_heading_of_its_own():
    entry = reference._directive("function", "\n".join(reference.signatures("ll.function", ll.function)), "Text.", 5)
    headings = re.findall(r"^`{5}\{py:function\} ll\.function\(.*\)", entry, re.MULTILINE)
    assert len(headings) == entry.count("ll.function(") == 2


def test_facts_are_those_of_the_ops_that_the_example_runs():
    assert dict(ops_of_example.facts(ll.nn.Dense))["Ops"] == "`matmul`, `add`, `relu` in the example"
    facts = dict(ops_of_example.facts(ll.multiply))
    assert facts["Gradient"].startswith("`x̄ = z̄ y*`")
    assert facts["Runs on"].startswith("tried on CPU:0 and XLA:0, not tried on GPU:0")
    assert facts["Runs on"].endswith("; executors `plan`, `step`, `loops` and `xla`")
    assert facts["Batched"] == "by `vectorize` all examples at once"
    assert facts["Forward mode"] == "by the transpose of the gradient's rule"
    assert facts["Exports"] == "ONNX yes; StableHLO yes"
    drawn = dict(ops_of_example.facts(ll.random.normal))
    assert drawn["Exports"].startswith("ONNX no: `random_normal` (")
    assert "`loops` has the plan run `random_normal` (it has an effect)" in drawn["Runs on"]
    assert "; numbers are drawn on the host" in drawn["Runs on"]
    assert dict(ops_of_example.facts(ll.optim.SGD))["Runs on"]
    assert "one node, `while_loop`" in dict(ops_of_example.facts(ll.fori_loop))["Staged"]
    assert "`xla` has the plan run it: `py_func` (does " in dict(ops_of_example.facts(ll.py_func))["Runs on"]
    assert dict(ops_of_example.facts(ll.nonzero))["Batched"] == "example by example: `nonzero`"
    assert dict(ops_of_example.facts(ll.function)) == {}, "nothing is known of what runs code of the user's"


def test_what_facts_are_read_from_is_found():
    assert ops_of_example.stablehlo_refusals()["random_normal"] == "draws from a generator on the host"
    assert ops_of_example.tried()["random_normal"]["stablehlo"] == "draws from a generator on the host"
    assert ops_of_example.tried()["add"]["loops"] == "yes"
