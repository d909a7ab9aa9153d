"""A container that is two after a block that a tensor decides: changed while nobody sees it through another."""

# programs, one a row

import functools
import textwrap

import pytest

import limelight as ll
from limelight.core import nest
from limelight.errors import ControlFlowError

staged = functools.partial(ll.function, autograph=True)


def values(result):
    return nest.map_structure(lambda x: x.item() if hasattr(x, "item") else x, result)


def program(tmp_path, name, statements):
    source = f"def f(x):\n{textwrap.indent(textwrap.dedent(statements).strip(), '    ')}\n"
    file = tmp_path / f"{name}.py"
    file.write_text(source)
    namespace = {"shared": [3.0]}
    exec(compile(source, str(file), "exec"), namespace)
    return namespace["f"]


CHANGES = ["{}.append(x)", "{}[0] = 7.0", "list.append({}, x)", "{} += [x]", "{}.sort()", "del {}[0]"]
DECIDED = [
    "a = [1.0]; b = a\nif x > 0: a = [2.0]",
    "a = [1.0]; b = a\nif x > 0: a = [2.0]\nelse: a = [3.0, 4.0][:1]; a = b",
    "a = [1.0]; b = a\nwhile x > 0:\n    a = [x]; x = x - 1",
    "a = [1.0]; b = a\nfor i in range(ll.astype(x, ll.int32)): a = [x]",
    "b = [1.0]; c = [2.0]\na = b if x > 0 else c",
    "a = [5.0]; b = a\nif x > 0: a = b = [x]",
    "b = shared; a = b\nif x > 0: a = [x]",
    "b = [1.0]; p = (b, 1.0)\nif x > 0: p = ([x], 2.0)\na = p[0]",
    "a = [1.0]\nwhile x > 0:\n    a = b = [x]; x = x - 1",
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_change_that_another_name_might_see_is_refused(tmp_path, name, change):
    decided = DECIDED[CHANGES.index(change) % len(DECIDED)]
    f = program(tmp_path, "aliases", f"import limelight as ll\n{decided}\n{change.format(name)}\nreturn a, b")
    with pytest.raises(ControlFlowError, match=r"other names know as well.*Give it a copy") as caught:
        staged(f)(ll.constant(2.0))
    assert "aliases.py line" in str(caught.value)


@pytest.mark.parametrize("decided", DECIDED)
def test_each_way_to_have_another_container(tmp_path, decided):
    f = program(tmp_path, "ways", f"import limelight as ll\n{decided}\na[0] = 7.0\nreturn a, b")
    with pytest.raises(ControlFlowError, match="a tensor decides whether"):
        staged(f)(ll.constant(2.0))
    reads = program(tmp_path, "reads", f"import limelight as ll\n{decided}\nreturn a[0]")
    for x in (2.0, -2.0):
        if "b = [x]; x" not in decided:  # b has no value there after no iteration
            assert values(staged(reads)(ll.constant(x))) == values(reads(ll.constant(x)))


FREE = {
    "no other name": "a = [1.0]\nif x > 0: a = [2.0]\na.append(x); a[0] = a[0] * 2\nreturn a",
    "no other name, in a loop": (
        "a = [1.0, 2.0]\nwhile x > 0:\n    a[0] = a[0] + x; a = [a[1], a[0]]; x = x - 1\na[0] = 3.0\nreturn a"
    ),
    "changed in the next block": "a = [1.0]\nif x > 0: a = [2.0]\nif x > -5: a[0] = 3.0\nreturn a",
    "swapped": "a = [1.0]; b = [2.0]\nif x > 0: a, b = b, a\na.append(3.0)\nreturn a, b",
    "a name that is gone": "a = [1.0]; b = a\nif x > 0: a = [2.0]\ndel b\na.append(x)\nreturn a",
    "a copy": "a = [1.0]; b = list(a)\nif x > 0: a = [2.0]\nb.append(x); a.append(x)\nreturn a, b",
    "an argument that nobody keeps": (
        "def g(v):\n    if x > 0: v = [x]\n    v.append(1.0)\n    return v\nreturn g([4.0]), g([5.0])"
    ),
    "changed before": "a = [1.0]; b = a\nb.append(x)\nif x > 0: a = [2.0, 3.0]\nreturn a, b",
}


@pytest.mark.parametrize("statements", FREE.values(), ids=FREE)
def test_what_nobody_else_knows_may_change(tmp_path, statements):
    f = program(tmp_path, "free", statements)
    for x in (2.0, -2.0):
        assert values(staged(f)(ll.constant(x))) == values(f(ll.constant(x)))
