"""Arguments of the magics."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

from limelight_kernel.line import arguments


@magic_arguments()
@argument("name", nargs="?")
@argument("--which", choices=("traced", "optimised"))
@argument("--trace", type=int)
@argument("-s", "--spec", action="append", default=[])
@arguments.keep_argument
@arguments.form_arguments
def magic_sample(line):
    """A sample."""


@magic_arguments()
@argument("name", nargs="*")
@argument("--find")
@arguments.form_arguments
def magic_of_calls(line):
    """Another."""


def refused(line, magic=magic_sample):
    with pytest.raises(UsageError) as caught:
        arguments.parse(magic, line)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_values_and_groups():
    given = arguments.parse(magic_sample, "f --which traced -s 'a b' -o kept --text ;")
    assert (given.name, given.which, given.output, given.text, given.static) == ("f", "traced", "kept", True, False)
    assert arguments.unquoted(given.spec[0]) == "a b"


def test_an_unknown_flag_comes_with_the_closest_one():
    assert "did you mean '--static'?" in refused("--statik")
    assert "its flags are" in refused("--qqqq")
    for asked in ("--help", "-h"):
        assert refused(asked).endswith(f"unrecognized arguments: {asked}; see %magic_sample?")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--which forward", ["'traced', 'optimised'", "forward"]),
        ("--trace one", ["--trace", "one"]),
        ("'open", ["closing quotation", "'open"]),
        ("a b", ["unrecognized arguments: b"]),
        ("-o 1x", ["'1x'", "cannot bind", "can bind"][:1]),
        ("-o for", ["'for'"]),
    ],
)
def test_one_line_says_what_is_wrong(line, words):
    message = refused(line)
    assert all(word in message for word in words)
    assert "%magic_sample" in message


def test_lists_of_names():
    assert arguments.names("'a, b,c'", "-i") == ("a", "b", "c")
    assert arguments.names(None, "-i") is None
    with pytest.raises(UsageError, match="'2b'"):
        arguments.names("a,2b", "-i")


def test_flags_choices_and_values():
    assert set(arguments.flags(magic_sample)) == {
        "--which", "--trace", "-s", "--spec", "-o", "--output", "--static", "--text", "--json", "--save",
        "-q", "--quiet",
    }  # fmt: skip
    assert arguments.choices(magic_sample, "--which") == ("traced", "optimised")
    assert arguments.choices(magic_sample, "--trace") == ()
    assert arguments.takes_value(magic_sample, "-o")
    assert not arguments.takes_value(magic_sample, "--text")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("f(x, -1) --text", ["f(x, -1)"]),
        ("--save a(1).svg f(x, k=-1)", ["f(x, k=-1)"]),
        ("""f('a \\' (b', -1)""", ["""f('a \\' (b', -1)"""]),
        ("f(x) g(y)", ["f(x)", "g(y)"]),
        ("f ;", ["f"]),
    ],
)
def test_a_call_is_one_word_as_it_was_typed(line, name):
    given = arguments.parse(magic_of_calls, line)
    assert given.name == name
    assert given.save == ("a(1).svg" if "save" in line else None)


@pytest.mark.parametrize("line", ["f(x, -1) --find 'open", "f(x, -1) --qqqq", "f --text g(x,-1)"])
def test_what_is_wrong_beside_a_call_is_said_of_the_line_as_it_was_typed(line):
    said = refused(line, magic_of_calls)
    assert "\ufffc" not in said
    assert line.split()[-1] in said
