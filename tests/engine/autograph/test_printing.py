"""`print` in converted code: of tensors when the graph runs, with the text that it has eagerly."""

import functools
import io

import pytest

import limelight as ll

staged = functools.partial(ll.function, autograph=True)


def in_blocks(xs):
    for x in xs:
        print("x is", x, [x, (x * 2, "a")], sep="|", end=";\n")  # noqa: T201  # the call is what is tested
        if x > 1:
            print({"double": x * 2})  # noqa: T201
    return xs


def test_tensors_are_printed_in_each_call_as_eagerly(capsys):
    xs, g = ll.constant([1.0, 2.0]), staged(in_blocks)
    in_blocks(xs)
    expected = capsys.readouterr().out
    assert expected.count("x is") == 2
    for _ in range(2):
        g(xs)
        assert capsys.readouterr().out == expected
    g(ll.constant([0.5, 0.25]))
    assert "double" not in capsys.readouterr().out
    assert g.trace_count == 1


def test_batches_print_example_by_example(capsys):
    def f(x):
        print(x)  # noqa: T201
        return x

    ll.vectorize(staged(f))(ll.constant([1.0, 2.0]))
    assert [line[:12] for line in capsys.readouterr().out.splitlines()] == ["ll.Tensor(1.", "ll.Tensor(2."]


def test_files_are_written_to_and_text_is_printed_while_tracing(capsys):
    def f(x, file):
        print("traced")  # noqa: T201
        print(x, file=file)
        return x

    file = io.StringIO()
    g = staged(f)
    g(ll.constant(1.0), file)
    g(ll.constant(2.0), file)
    assert capsys.readouterr().out == "traced\n"
    assert [line[:12] for line in file.getvalue().splitlines()] == ["ll.Tensor(1.", "ll.Tensor(2."]


@pytest.mark.parametrize("mine", [lambda *x: x[0] + len(x), ll.maximum])
def test_another_function_of_that_name_is_called(mine):
    def f(x, print):
        return print(x, 2.0) if x > 0 else x

    assert staged(f)(ll.constant(1.0), mine).item() == mine(ll.constant(1.0), 2.0).item()
