"""Cards as HTML: the parts of a story in order, escaped, and nothing that an untrusted notebook drops."""

from __future__ import annotations

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from limelight.explain.fix import Fix
from limelight.explain.story import FORMS, Contrast, Place, Story
from limelight.user_code.source_line import Source
from limelight_widgets.figures.explain import card_html, explain_figure
from limelight_widgets.figures.trace_diff import Differences
from limelight_widgets.folds.explain import MOST, ExplainFold

KEPT = {
    "div", "p", "br", "strong", "span", "code", "pre",
    "table", "thead", "tbody", "tr", "th", "td", "details", "summary",
}  # fmt: skip
STORY = Story(
    "retrace", "`f` traced again", ("shape", "dtype"),
    contrasts=(Contrast("argument `x`", "f32[2]", "f32[3]", "axis 0"),),
    unlisted=3, cost="38 ms", places=(Place("call", "In[7] line 3"), Place("closest", "trace #2 (In[5] line 9)")),
    hints=("The fix leaves `n`.",), fixes=(Fix("@ll.function", "", ()),), more=("It ran twice.",),
)  # fmt: skip


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_the_parts_of_a_card_in_their_order():
    assert words(card_html(STORY.to_dict())) == (
        "f traced again retrace shape dtype cost 38 ms closest trace this call argument x f32[2] f32[3] axis 0 "
        "and 3 more at In[7] line 3 closest trace #2 (In[5] line 9) The fix leaves n . Fix @ll.function "
        "more It ran twice."
    )


def test_the_line_stands_beside_its_place():
    place = Place.of("line", Source("model.py", 4, "f"))
    assert "at model.py line 4" in words(card_html(Story("NaN", "found", places=place).to_dict()))


def test_html_holds_only_what_untrusted_notebooks_keep():
    html = card_html(STORY.to_dict())
    assert set(re.findall(r"<\s*([a-zA-Z0-9]+)", html)) <= KEPT
    assert html.count("<details") == 1
    assert "<details open" not in html


HOSTILE = st.sampled_from(["<script>alert(1)</script>", '"><img onerror=x>', "`<b>`", "&lt;", "plain"]) | st.text(
    max_size=12
)


@given(st.sampled_from(sorted(FORMS)), st.lists(HOSTILE, min_size=9, max_size=9))
def test_names_and_reprs_are_data(kind, texts):
    a, b, c, d, e, f, g, h, i = texts
    story = Story(
        kind, a, (b,), (c,), (Contrast(d, e, f, g),), cost=h, places=(Place("call", i),), hints=(b,),
        fixes=(Fix(c, d, ()),), remedy=e, more=(f,),
    )  # fmt: skip
    html = card_html(story.to_dict())
    assert set(re.findall(r"<\s*([a-zA-Z0-9]+)", html)) <= KEPT
    assert not re.findall(r"<[^>]*\bon\w+\s*=", html)


def test_a_difference_names_both_traces_and_where_their_graphs_differ():
    arguments, nodes = (("x", "f32[2]", "f32[3]", "axis 0"),), (("In[4]:5", "exp", "–", "f32[2]"),)
    (story,) = Differences("f", (1, 2), arguments, nodes, (3, 4)).stories
    assert (story.before, story.after) == (("f32[2]", "–"), ("f32[3]", "f32[2]"))
    said = words(card_html(story.to_dict()))
    assert "first trace second trace argument x f32[2] f32[3] axis 0 op exp – f32[2] In[4]:5" in said
    assert str(story).splitlines()[1] == "argument `x` f32[2] -> f32[3] (axis 0)"


def test_arrows_stay_with_what_they_connect_in_cards_and_in_tables():
    found = Differences("f", (1, 2), (("x", "f32[2]", "f32[3]", "axis 0: 2 -> 3"),), (), (3, 4))
    for html in (card_html(found.stories[0].to_dict()), found._repr_html_()):
        assert "axis 0: 2\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}3" in html
    assert "axis 0: 2 -> 3" in str(found)


def test_an_answer_without_a_story_is_its_sentence():
    shown = explain_figure(ExplainFold((), "all is <well>").state())
    assert words(shown.html) == "all is <well>"
    assert set(shown.bundle()) == {"text/plain", "text/html"}


def test_beyond_some_cards_there_is_a_count():
    state = ExplainFold([STORY] * (MOST + 2), "text", ("a note",)).state()
    assert len(state["stories"]) == MOST
    assert state["notes"] == ["a note", "2 more causes, each of less cost than these."]
    assert "a note" in words(explain_figure(state).html)
