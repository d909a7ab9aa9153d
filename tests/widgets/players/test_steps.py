"""The player of recorded steps, as a page."""

from __future__ import annotations

import json
import re

import limelight as ll
from limelight_widgets.players.steps import packed, player_html


def chain(x, n):
    for i in range(n):
        x = ll.tanh(x) * (1.0 + i)
    return x


def test_a_thousand_steps_take_less_than_300_kilobytes():
    recording = ll.explain.steps(chain, ll.ones((64, 64)), 300)
    assert len(recording) > 1000
    html = player_html(recording)
    assert len(html.encode()) < 300_000 * len(recording) / 1000


def test_no_name_of_the_users_becomes_markup():
    space = {"ll": ll}
    code = "def program(x):\n    evil = '</script><img src=x onerror=alert(1)>'\n    return x * 2.0\n"
    exec(compile(code, "evil.py", "exec"), space)
    player = ll.widgets.steps(space["program"], ll.ones(()))
    html = player._repr_mimebundle_()["text/html"]
    assert "</script><img" not in html
    assert "<img" not in html
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)[1])
    assert data["steps"][0][4] == [["evil", "'</script><img src=x onerror=alert(1)>'"]]


def test_numbers_that_json_cannot_write_are_counted():
    recording = ll.explain.steps(ll.log, ll.constant([-1.0, 0.0]))
    assert json.dumps(packed(recording), allow_nan=False)


def test_a_page_of_its_own(tmp_path):
    player = ll.widgets.steps(lambda x: x * 2.0, ll.ones(()))
    player.save(str(tmp_path / "steps.html"))
    page = (tmp_path / "steps.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "limelightSteps(" in page
    assert not re.search(r"(src|href)=|import\(", page), "it needs no network"


def test_the_text_is_the_recording_at_the_terminals_width():
    player = ll.widgets.steps(chain, ll.ones(()), 100)
    lines = repr(player).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 201


def test_the_page_has_how_many_steps_were_left_out():
    recording = ll.explain.steps(chain, ll.ones(()), 100, most=50)
    assert recording.is_cut
    told = packed(recording)["counts"]
    assert told
    assert all(text.startswith("the first 50") for text in told.values())
