"""Graphs as text and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll  # noqa: F401  # registers the ops
from limelight.core import devices, dtypes
from limelight.core.op import get
from limelight.core.spec import ObjectSpec, TensorSpec, VariableSpec
from limelight.errors import GraphError
from limelight.graph import Graph, Literal, Node, Value, parse, show
from limelight.graph.lexer import Lexer
from limelight.graph.tokens import write, write_spec
from limelight.user_code.source_line import Source

LAYER = """\
graph layer
  input %0: f32[?,784]  x
  input %1: f32[?,10]  "batch[\\"y\\"]"
  capture %2: var f32[784,10]  w
  %3: f32[] = constant()  {value=f32[] 0.5}
  !0 %4: f32[784,10] = read_variable(%2)  # In[3]:4
  %5: f32[?,10] = matmul(%0, %4)  @CPU:0  # In[3]:5  in dense/
  %6: f32[?] = sum(%5)  {axis=(1,), keepdims=False}  # in dense/
  %7: f32[784,10] = multiply(%4, %3)
  %8: f32[784,10] = assign(%2, %7)  after !0  # model.py:12
  return %6, %1, %6
"""

NESTED = """\
graph outer
  input %0: f32[3]  x
  %1: f32[3] = call(%0)  {function=@inner}
  %2: f32[3] = call(%1)  {function=@inner}
  %3: f32[3] = call(%2)  {function=@"odd name"}
  return %3

graph inner
  input %0: f32[3]  x
  %1: f32[3] = call(%0)  {function=@innermost}
  return %1

graph "odd name"
  input %0: f32[3]  x
  return %0

graph innermost
  input %0: f32[3]  x
  %1: f32[3] = tanh(%0)
  return %1
"""


@pytest.mark.parametrize("text", [LAYER, NESTED])
def test_what_is_read_is_shown_again(text: str) -> None:
    assert parse(text).text() == text
    assert str(parse(text)) == text


def test_parts_of_a_parsed_graph() -> None:
    graph = parse(LAYER)
    assert graph.name == "layer"
    assert graph.input_names == ("x", 'batch["y"]', "w")
    assert [value.spec for value in graph.captures] == [VariableSpec((784, 10), dtypes.float32)]
    assert [node.op.name for node in graph.nodes] == [
        "constant",
        "read_variable",
        "matmul",
        "sum",
        "multiply",
        "assign",
    ]
    product, total, written = graph.nodes[2], graph.nodes[3], graph.nodes[5]
    assert product.device is devices.CPU0
    assert product.scope == total.scope == "dense/"
    assert product.source == ("In[3]", 5)
    assert total.source is None
    assert total.attrs == {"axis": (1,), "keepdims": False}
    assert written.after == (graph.nodes[1],)
    assert graph.outputs == (total.outputs[0], graph.inputs[1], total.outputs[0])


def test_a_called_function_is_shown_once_after_its_caller() -> None:
    graph = parse(NESTED)
    first, second, third = graph.nodes
    assert first.functions == second.functions
    assert [function.name for function in graph.functions()] == ["inner", "odd name"]
    assert third.functions[0].graph.nodes == ()


def test_functions_of_one_name_are_told_apart() -> None:
    def function(op: str) -> object:
        return parse(f"graph f\n  input %0: f32[]  x\n  %1: f32[] = {op}(%0)\n  return %1\n")

    class Named:
        name = "f"

        def __init__(self, graph: Graph) -> None:
            self.graph = graph

        def run(self, *payloads: object) -> tuple[object, ...]:
            raise AssertionError("printing must not run anything")

    x = Value(TensorSpec(()))
    a = Node(get("call"), (x,), (Named(function("tanh")),), (x.spec,))
    b = Node(get("call"), a.outputs, (Named(function("exp")),), (x.spec,))
    text = Graph("f", [x], [a, b], b.outputs).text()
    assert "{function=@f.1}" in text
    assert "{function=@f.2}" in text
    again = parse(text)
    assert [node.functions[0].graph.nodes[0].op.name for node in again.nodes] == ["tanh", "exp"]
    assert again.text() == text


def test_several_outputs_and_none() -> None:
    text = """\
graph parts
  input %0: f32[5]  x
  %1: f32[2], %2: f32[3] = split(%0)  {sizes=(2, 3), axis=0}
  return
"""
    graph = parse(text)
    assert graph.text() == text
    assert graph.outputs == ()
    assert [value.index for value in graph.nodes[0].outputs] == [0, 1]


def words(value: object) -> str:
    return write(value, {}, full=True)


def read(text: str) -> object:
    lexer = Lexer(text, lambda name: f"function {name}")
    value = lexer.value()
    assert lexer.done(), lexer.rest()
    return value


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.binary()
    | st.just(Ellipsis)
    | st.sampled_from(dtypes.ALL)
    | st.builds(slice, st.none() | st.integers(), st.none() | st.integers(), st.none() | st.integers()),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple),
    max_leaves=8,
)


@given(plain_values)
def test_parameters_survive(value: object) -> None:
    again = read(words(value))
    assert again == value
    assert repr(again) == repr(value), "1, 1.0 and True are equal but not the same"


def test_numbers_that_are_not_equal_to_themselves() -> None:
    assert math.isnan(read("nan"))
    assert read(words((math.inf, -math.inf, 0.0, -0.0))).__repr__() == "(inf, -inf, 0.0, -0.0)"


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@given(data=st.data())
def test_literals_survive_bit_by_bit(dtype: np.dtype, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 3), max_size=3))
    size = math.prod(shape)
    numbers = {
        "bool": st.booleans(),
        "integer": st.integers(*((np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (0, 1))),
        "floating": st.floats(width=16 if dtype.itemsize == 2 else 8 * dtype.itemsize, allow_nan=False),
        "complex": st.complex_numbers(width=8 * dtype.itemsize, allow_nan=False),
    }[dtypes.kind(dtype)]
    with np.errstate(all="ignore"):
        array = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)), dtype=dtype).reshape(shape)
    again = read(words(Literal(array)))
    assert isinstance(again, Literal)
    assert again.array.dtype == dtype
    assert again.array.shape == array.shape
    assert again.array.tobytes() == array.tobytes()


def test_literals_that_are_not_finite() -> None:
    literal = read("f32[3] [nan, inf, -inf]")
    assert str(literal.array) == "[ nan  inf -inf]"


@pytest.mark.parametrize(
    "spec",
    [
        TensorSpec(()),
        TensorSpec((None, 3, 0), "bfloat16"),
        VariableSpec((2, None), dtypes.int8),
        VariableSpec((), dtypes.complex64, trainable=False),
        ObjectSpec("tape"),
        ObjectSpec("a tape, of sorts"),
    ],
    ids=str,
)
def test_specs_survive(spec: object) -> None:
    assert Lexer(write_spec(spec), str).spec() == spec
    assert read(words(spec)) == spec


def test_other_words() -> None:
    assert read('device("CPU:0")') is devices.CPU0
    assert words(devices.CPU0) == 'device("CPU:0")'
    number = read(words(np.int64(-7)))
    assert number == -7
    assert type(number) is np.int64
    assert read("@f") == read('@"f"') == "function f"


def test_large_literals_are_left_out_unless_asked_for() -> None:
    big = Literal(np.arange(100, dtype=np.float32))
    node = Node(get("constant"), (), (big,), (TensorSpec((100,)),))
    graph = Graph("g", [], [node], node.outputs)
    assert "{value=f32[100] <100 elements>}" in graph.text()
    with pytest.raises(GraphError, match=r"line 2: the literal f32\[100\] was left out.*literals='full'"):
        parse(graph.text())
    again = parse(show(graph, literals="full"))
    assert np.array_equal(again.nodes[0].params[0].array, big.array)


def test_python_objects_are_named_and_refused() -> None:
    assert words(parse) == "<function parse>"
    with pytest.raises(GraphError, match=r"'<function parse>' stands for a Python object that text cannot hold"):
        read("<function parse>")


def body(line: str, *more: str) -> str:
    return "\n".join(["graph g", "  input %0: f32[3]  x", f"  {line}", *more, "  return %0"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no graph in this text"),
        ("  return %0", "line 1: text of a graph begins with 'graph NAME'"),
        ("graph g\n  input %0: f32[3]  x", "graph g has no 'return' line"),
        (body("return %0"), "line 4: nothing may follow 'return'"),
        (body("%1: f32[3] = tnah(%0)"), "line 3: there is no op called 'tnah'"),
        (body("%1: f32[3] = tanh(%7)"), "line 3: '%7' is used before it is defined"),
        (body("%0: f32[3] = tanh(%0)"), "line 3: %0 is defined twice"),
        (body("%1: f32[3] = tanh(%0"), r"line 3: expected '\)'"),
        (body("%1: f33[3] = tanh(%0)"), "line 3: 'f33' is not a dtype"),
        (body("%1: f32[x] = tanh(%0)"), "line 3: expected a size or '\\?'"),
        (
            body("%1: f32[3] = tanh(%0)  {axis=1}"),
            r"line 3: op tanh has the parameters \[\], the text gives \['axis'\]",
        ),
        (body("%1: f32[] = sum(%0)  {axis=0}"), r"line 3: op sum has the parameters \['axis', 'keepdims'\]"),
        (body("%1: f32[3] = tanh(%0)  after !3"), "line 3: no earlier node has the label !3"),
        (body("%1: f32[3] = tanh(%0)  @CPU:99"), "line 3: .*CPU:99.* does not exist here"),
        (body("%1: f32[3] = tanh(%0)  and more"), "line 3: unexpected 'and more'"),
        (body("%1: f32[3] = tanh(%0)", "  input %2: f32[]  y"), "line 4: inputs stand before the nodes"),
        (body("%1: f32[3] = call(%0)  {function=@g2}"), 'line 3: no graph called "g2" in this text'),
        (body("%1: f32[2] = constant()  {value=f32[2] [1.0]}"), "line 3: the elements do not make a literal"),
        (body("%1: bool[] = constant()  {value=bool[] 1}"), "line 3: .*'1' is neither True nor False"),
        (body("%1: a[3] = tanh(%0)"), "line 3: 'a' is not a dtype; write one of bool, i8"),
        (body("%1: f32[3] = cast(%0)  {dtype=,, 1}").replace("cast", "astype"), "line 3: ',, 1}' is not a dtype"),
        (body("%1: i8[] = constant()  {value=i8[] 300}"), "line 3: the elements do not make a literal"),
        (body("%1: i8[] = constant()  {value=i8(300)}"), "line 3: .*300 out of bounds for int8"),
        (body("%1: i32[] = constant()  {value=i32[] 9" + 40 * "9" + "}"), "line 3: the elements do not make a literal"),
        (body("%1: f32[3] = tanh(%0)  {a=complex(9" + 400 * "9" + ", 0)}"), "line 3: int too large"),
        (body("%1: f32[3] = tanh(%0)  {a=" + 2000 * "[" + "}"), "line 3: .* nested more than 100 levels deep"),
        (body("%1: " + 2000 * "var " + "f32[3] = tanh(%0)"), "line 3: 'var' is not a dtype"),
        ('graph "\\x"\n  return', "line 1: Invalid"),
        ("graph g\n  return\ngraph g\n  return", "two graphs have the same name"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        parse(text)


def test_a_parsed_function_says_what_it_needs_to_run() -> None:
    function = parse(NESTED).nodes[0].functions[0]
    with pytest.raises(GraphError, match="inner was read from text: give parse"):
        function.run(1.0)


def test_values_have_the_names_of_the_text() -> None:
    graph = parse(LAYER)
    assert graph.name_of(graph.inputs[2]) == "%2"
    assert graph.name_of(graph.nodes[-1].outputs[0]) == "%8"
    with pytest.raises(GraphError, match="not a value of graph layer"):
        graph.name_of(Value(TensorSpec(())))


def test_only_the_innermost_line_is_part_of_the_text() -> None:
    x = Value(TensorSpec(()))
    stack = (Source("/home/me/model.py", 3, "layer"), Source("/home/me/train.py", 9, "step"))
    node = Node(get("tanh"), (x,), (), (x.spec,), stack=stack)
    assert "# model.py:3\n" in Graph("g", [x], [node], node.outputs).text()
