"""Every rule of the verifier, each with a graph that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import limelight as ll  # noqa: F401  # registers the ops
from limelight.core.op import Op, get
from limelight.core.spec import GENERATOR, TensorSpec, VariableSpec
from limelight.errors import GraphError
from limelight.graph import Graph, Node, Value, parse, verify

F3 = TensorSpec((3,))

GOOD = """\
graph good
  input %0: f32[?,3]  x
  input %1: f32[3]  y
  capture %2: var f32[3]  w
  !0 %3: f32[3] = read_variable(%2)
  %4: f32[?,3] = multiply(%0, %3)
  !1 %5: f32[3] = assign_add(%2, %1)  after !0
  !2 %6: f32[3] = read_variable(%2)  after !1
  !3 %7: f32[3] = read_variable(%2)  after !1
  %8: f32[3] = assign(%2, %6)  after !3
  return %4
"""


def node(
    op: str, *inputs: Value, params: tuple[object, ...] = (), spec: object = F3, after: tuple[Node, ...] = ()
) -> Node:
    return Node(get(op), inputs, params, [spec], after=after)


def graph(nodes: list[Node], *inputs: Value, outputs: tuple[Value, ...] = (), **fields: object) -> Graph:
    return Graph("g", inputs, nodes, outputs, **fields)


def test_a_good_graph_passes_and_is_returned() -> None:
    good = parse(GOOD)
    assert verify(good) is good


def test_an_order_may_follow_from_data_alone() -> None:
    verify(
        parse("""\
graph chained
  capture %0: var f32[]  v
  %1: f32[] = read_variable(%0)
  %2: f32[] = tanh(%1)
  %3: f32[] = assign(%0, %2)
  return
""")
    )


def unknown_operand() -> Graph:
    return graph([node("tanh", Value(F3))])


def used_before_it_is_made() -> Graph:
    x = Value(F3)
    first = node("tanh", x)
    second = node("tanh", *first.outputs)
    return graph([second, first], x)


def made_twice() -> Graph:
    x = Value(F3)
    first = node("tanh", x)
    return graph([first, first], x)


def made_by_another() -> Graph:
    x = Value(F3)
    first = node("tanh", x)
    second = node("exp", x)
    second.outputs = (Value(F3, first),)
    return graph([first, second], x)


def too_many_operands() -> Graph:
    x = Value(F3)
    return graph([node("tanh", x, x)], x)


def missing_parameters() -> Graph:
    x = Value(F3)
    return graph([node("sum", x, spec=TensorSpec(()))], x)


def wrong_shape() -> Graph:
    x = Value(F3)
    return graph([node("tanh", x, spec=TensorSpec((4,)))], x)


def wrong_dtype() -> Graph:
    x = Value(F3)
    return graph([node("tanh", x, spec=TensorSpec((3,), "float64"))], x)


def refused_shapes() -> Graph:
    x, y = Value(F3), Value(TensorSpec((4,)))
    return graph([node("add", x, y)], x, y)


def meaningless_parameter() -> Graph:
    x = Value(F3)
    return graph([node("transpose", x, params=(5,))], x)


def parameter_that_cannot_be_printed() -> Graph:
    x = Value(F3)
    return graph([node("astype", x, params=(6,))], x)


def rule_that_asserts() -> Graph:
    scan = "scan(%0, %1)  {body=@step, n_carry=1, n_xs=1, length=None, reverse=False}"
    step = "graph step\n  input %0: f32[]  carry\n  input %1: f32[]  row\n  return %0\n"
    inputs = "  input %0: f32[]  x\n  input %1: generator  rows\n"
    return parse(f"graph g\n{inputs}  %2: f32[] = {scan}\n  return\n\n{step}")


def parameter_too_many() -> Graph:
    x = Value(F3)
    return graph([node("tanh", x, params=(1,))], x)


def wrong_number_of_outputs() -> Graph:
    x = Value(F3)
    return graph([Node(get("tanh"), (x,), (), [F3, F3])], x)


def variable_as_a_value() -> Graph:
    v = Value(VariableSpec((3,), F3.dtype))
    return graph([node("tanh", v)], v)


def value_as_a_variable() -> Graph:
    x = Value(F3)
    return graph([node("read_variable", x)], x)


def read_overtakes_write() -> Graph:
    v, x = Value(VariableSpec((3,), F3.dtype)), Value(F3)
    return graph([node("assign", v, x), node("read_variable", v)], v, x)


def write_overtakes_read() -> Graph:
    v, x = Value(VariableSpec((3,), F3.dtype)), Value(F3)
    return graph([node("read_variable", v), node("assign", v, x)], v, x)


def write_overtakes_write() -> Graph:
    v, x = Value(VariableSpec((3,), F3.dtype)), Value(F3)
    return graph([node("assign", v, x), node("assign", v, x)], v, x)


def follows_a_stranger() -> Graph:
    x = Value(F3)
    return graph([node("tanh", x, after=(node("exp", x),))], x)


def follows_a_later_node() -> Graph:
    x = Value(F3)
    later = node("exp", x)
    return graph([node("tanh", x, after=(later,)), later], x)


def returns_a_stranger() -> Graph:
    return graph([], outputs=(Value(F3),))


def same_input_twice() -> Graph:
    x = Value(F3)
    return graph([], x, x)


def unnamed_input() -> Graph:
    x, y = Value(F3), Value(F3)
    return graph([], x, y, input_names=("x",))


def too_many_captures() -> Graph:
    x = Value(F3)
    return graph([], x, n_captures=2)


def input_made_by_a_node() -> Graph:
    first = node("tanh", Value(F3))
    return graph([first], *first.outputs)


def call(inner: str, *given: Value) -> Graph:
    called = parse(
        f"graph outer\n  input %0: f32[4]  x\n  %1: f32[3] = call(%0)  {{function=@inner}}\n  return\n\n{inner}"
    )
    function = called.nodes[0].functions[0]
    return graph([node("call", *given, params=(function,))], *given)


INNER = "graph inner\n  input %0: f32[3]  x\n  %1: f32[3] = tanh(%0)\n  return %1\n"


def function_gets_too_little() -> Graph:
    return call(INNER)


def function_gets_something_else() -> Graph:
    return call(INNER, Value(TensorSpec((4,))))


def function_is_broken() -> Graph:
    return call(INNER.replace("tanh(%0)", "sum(%0)  {axis=None, keepdims=False}"), Value(F3))


def function_calls_itself() -> Graph:
    return parse("graph f\n  input %0: f32[3]  x\n  %1: f32[3] = call(%0)  {function=@f}\n  return %1\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (unknown_operand, r"graph g: node 0 \(tanh\): defined: operand 0 \(f32\[3\]\) is not an input or the output"),
        (used_before_it_is_made, r"%1: f32\[3\] = tanh\(%2\): defined: operand 0"),
        (made_twice, r"once: %\d is made twice"),
        (made_by_another, "once: %2 says that another node makes it"),
        (too_many_operands, r"tanh\(%0, %0\): arity: tanh takes 1 operands, this node has 2"),
        (missing_parameters, r"arity: sum has the parameters \['axis', 'keepdims'\], this node has 0"),
        (wrong_shape, r"types: output 0 is f32\[4\], the rule of tanh says f32\[3\]"),
        (wrong_dtype, r"types: output 0 is f64\[3\], the rule of tanh says f32\[3\]"),
        (refused_shapes, "types: add: .* do not broadcast"),
        (meaningless_parameter, "types: the rule of transpose fails: TypeError"),
        (parameter_that_cannot_be_printed, "types: the rule of astype fails: AttributeError"),
        (rule_that_asserts, "types: the rule of scan fails: AssertionError"),
        (parameter_too_many, r"node 0 \(tanh\): arity: tanh has the parameters \[\], this node has 1"),
        (wrong_number_of_outputs, "types: tanh has 1 outputs, this node 2"),
        (variable_as_a_value, r"variables: operand 0 is var f32\[3\], tanh takes values there"),
        (value_as_a_variable, r"variables: operand 0 is f32\[3\], read_variable takes a variable there"),
        (read_overtakes_write, r"order: no edge makes it follow assign \(the write of %0\)"),
        (write_overtakes_read, r"order: no edge makes it follow read_variable \(a read of %0\)"),
        (write_overtakes_write, r"order: no edge makes it follow assign \(the write of %0\)"),
        (follows_a_stranger, "after: it must follow exp, which does not come before it"),
        (follows_a_later_node, "after: it must follow exp, which does not come before it"),
        (returns_a_stranger, r"graph g: outputs: output 0 \(f32\[3\]\) is not a value of this graph"),
        (same_input_twice, "inputs: the same value stands twice"),
        (unnamed_input, "inputs: 2 inputs have 1 names"),
        (too_many_captures, "inputs: 2 captures among 1 inputs"),
        (input_made_by_a_node, "inputs: arg0 is made by a node"),
        (function_gets_too_little, "functions: inner takes 1 inputs, call has 0"),
        (function_gets_something_else, r"functions: inner takes f32\[3\] as x, it is given f32\[4\]"),
        (function_is_broken, "graph inner: .*types: output 0 is f32"),
        (function_calls_itself, "graph f: functions: it calls f, which is calling it"),
    ],
)
def test_broken_graphs(make: Callable[[], Graph], message: str) -> None:
    broken = make()
    with pytest.raises(GraphError, match=message):
        verify(broken)


def test_what_a_rule_raised_is_the_cause() -> None:
    with pytest.raises(GraphError) as caught:
        verify(meaningless_parameter())
    assert type(caught.value.__cause__) is TypeError


def test_callees_are_verified_before_their_callers_rely_on_them() -> None:
    """What a function reads and writes is asked of its inputs: these must be variables by then."""
    inner = "graph inner\n  input %0: f32[3]  x\n  %1: f32[3] = read_variable(%0)\n  return %1\n"
    with pytest.raises(GraphError, match=r"graph inner: .*variables: operand 0 is f32\[3\], read_variable takes"):
        verify(call(inner, Value(F3)))


@pytest.mark.parametrize("line", [5, 6, 7, 8])
def test_each_edge_is_needed(line: int) -> None:
    """The last write follows the first read by data, the second by its edge, the write before by way of either."""
    lines = GOOD.split("\n")
    (place,) = [i for i, text in enumerate(lines) if text.lstrip(" !0123").startswith(f"%{line}:")]
    lines[place] = lines[place].partition("  after")[0]
    with pytest.raises(GraphError, match="order: no edge makes it follow"):
        verify(parse("\n".join(lines)))


def test_chains_of_called_functions_are_ordered() -> None:
    caller = """\
graph outer
  capture %0: var f32[3]  v
  !0 %1: f32[3] = call(%0)  {{function=@bump}}
  %2: f32[3] = call(%0)  {{function=@bump}}{}
  return %2

graph bump
  input %0: var f32[3]  v
  !0 %1: f32[3] = read_variable(%0)
  %2: f32[3] = assign_add(%0, %1)  after !0
  return %2
"""
    verify(parse(caller.format("  after !0")))
    with pytest.raises(GraphError, match=r"order: no edge makes it follow call \(the write of %0\)"):
        verify(parse(caller.format("")))


DRAW = "random_normal(%0)  {location=0.0, scale=1.0, dtype=f32, shape=(3,)}"


def test_draws_from_one_generator_are_in_order() -> None:
    text = """\
graph g
  input %0: generator  one
  input %1: generator  other
  !0 %2: f32[3] = DRAW
  !1 %3: f32[3] = DRAW  after !0
  %4: f32[3] = random_normal(%1)  {location=0.0, scale=1.0, dtype=f32, shape=(3,)}
  %5: f32[3] = DRAWTHIRD
  return
""".replace("DRAW", DRAW)
    verify(parse(text.replace("THIRD", "  after !1")))
    for wrong in ("", "  after !0"):
        with pytest.raises(GraphError, match=r"order: no edge makes it follow random_normal \(the write of %0\)"):
            verify(parse(text.replace("THIRD", wrong)))


def test_draws_of_called_functions_are_in_order() -> None:
    text = """\
graph g
  input %0: generator  one
  !0 %1: f32[3] = DRAW
  !1 %2: f32[3] = call(%0)  {function=@inner}FIRST
  %3: f32[3] = DRAWSECOND
  return

graph inner
  input %0: generator  one
  %1: f32[3] = DRAW
  return %1
""".replace("DRAW", DRAW)
    verify(parse(text.replace("FIRST", "  after !0").replace("SECOND", "  after !1")))
    for first, second in (("", "  after !1"), ("  after !0", "  after !0")):
        with pytest.raises(GraphError, match="the write of %0"):
            verify(parse(text.replace("FIRST", first).replace("SECOND", second)))


def test_input_and_output_form_a_chain_of_their_own() -> None:
    say = Op("say", inputs="x", infer=lambda x: x, kernel=print, effect="io", why_no_gradient="a test")
    x = Value(F3)
    first = Node(say, (x,), (), [F3])
    generator = Value(GENERATOR)
    draw = node("random_normal", generator, params=(0.0, 1.0, F3.dtype, (3,)))
    verify(graph([first, draw, Node(say, (x,), (), [F3], after=(first,))], x, generator))
    with pytest.raises(GraphError, match=r"order: no edge makes it follow say \(the io chain\)"):
        verify(graph([first, draw, Node(say, (x,), (), [F3], after=(draw,))], x, generator))


def test_unknown_sizes_agree_with_known_ones() -> None:
    x = Value(TensorSpec((None, 3)))
    verify(graph([node("tanh", x, spec=TensorSpec((5, 3)))], x))
    verify(graph([node("tanh", x, spec=TensorSpec((None, None)))], x))
    with pytest.raises(GraphError, match="types"):
        verify(graph([node("tanh", x, spec=TensorSpec((5, 4)))], x))
