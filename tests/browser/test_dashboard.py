"""The dashboard in a real JupyterLab: one panel beside the notebook, whose views follow one selection."""

from __future__ import annotations

from playwright.sync_api import expect

from harness.axe import violations
from harness.dashboard import PROGRAM, docked
from harness.page import DARK, LIGHT, becomes, command, output, run_cell, set_theme, wait_idle
from harness.sight import ENLARGED, LOST

MORE = "k = globals().get('k', 3) + 1\npredict(ll.ones((k, 8)));"


ROOM = """panel => {
  const pane = panel.querySelector(".ll-dash-second").getBoundingClientRect();
  const { left, right, top, bottom } = panel.getBoundingClientRect();
  const inside = pane.left >= left - 1 && pane.right <= right + 1 && pane.top >= top - 1;
  return inside && Math.min(pane.bottom, bottom) - pane.top >= 80;
}"""


def test_one_panel_beside_the_notebook_is_rebound_and_closed(small, picture):
    page = small(PROGRAM, "%dashboard predict", "%dashboard double", "%dashboard --close", MORE)
    expect(page.locator(".ll-docked")).to_have_count(0)
    run_cell(page, 1)
    panel = docked(page)
    expect(panel.locator(".ll-graph-view .ll-title")).to_contain_text("predict")
    expect(panel.locator(".ll-cache-view tbody tr[data-entry]")).to_have_count(3)
    run_cell(page, 4)
    expect(panel.locator(".ll-cache-view tbody tr[data-entry]")).to_have_count(4)
    run_cell(page, 2)
    expect(panel.locator(".ll-graph-view .ll-title")).to_contain_text("double")
    expect(panel.locator(".ll-cache-view tbody tr[data-entry]")).to_have_count(1)
    docked(page)
    run_cell(page, 3)
    expect(page.locator(".ll-docked")).to_have_count(0)


CUT_COLUMNS = """panel => {
  const end = panel.getBoundingClientRect().right;
  const heads = [...panel.querySelectorAll(".ll-dash-second :is(th, [role=columnheader])")];
  const isCut = one => one.clientWidth > 8 && one.getBoundingClientRect().right > end + 1;
  return heads.filter(isCut).map(one => one.textContent);
}"""
"""Columns of a table that lie beyond the panel; those that are told elsewhere have no width."""


def test_one_selection_in_all_views(small, picture):
    page = small(PROGRAM, "%dashboard", "d = ll.widgets.dashboard()\nprint(d.selection.op, d.selection.line)")
    panel = docked(page)
    graph, cache = panel.locator(".ll-graph-view"), panel.locator(".ll-cache-view")
    expect(graph.locator(".ll-title")).to_contain_text("predict")  # traced last, not made last
    assert becomes(page, lambda: panel.evaluate(CUT_COLUMNS), []) == []
    cache.get_by_role("button", name="trace #1").first.click()  # of the function that was traced first
    expect(graph.locator(".ll-title")).to_contain_text("trace #1 of 2")
    cache.get_by_role("button", name="trace #1").last.click()
    expect(graph.locator(".ll-title")).to_contain_text("double trace #1 of 1")
    panel.locator(".ll-graph-view .ll-box").first.wait_for()
    is_useful_where_it_is_low(panel)
    panel.get_by_role("tab", name="Tape").click()
    tape = panel.locator(".ll-tape-view")
    assert becomes(page, lambda: panel.evaluate(CUT_COLUMNS), []) == []
    tape.locator(".ll-rows .ll-grid", has_text="tanh").click()
    expect(panel.locator(".ll-dash-chosen")).to_contain_text("tanh · In[1] line 18")
    run_cell(page, 2)
    expect(output(page, 2)).to_have_text("tanh ('In[1]', 18)")
    picture(page, "dashboard-small-light")


LOW = """panel => {
  const graph = panel.querySelector(".ll-graph-view");
  const tools = [...graph.querySelectorAll(".ll-tools > :is(button, input, select)")];
  const lines = graph.querySelector(".ll-source");
  const chosen = lines.querySelector(".ll-line.ll-chosen")?.getBoundingClientRect();
  const { top, bottom } = lines.getBoundingClientRect();
  const rows = new Set(tools.map(one => Math.round(one.getBoundingClientRect().top / 10)));
  return [rows.size, lines.clientHeight >= 60, Boolean(chosen) && chosen.top >= top && chosen.bottom <= bottom];
}"""


def is_useful_where_it_is_low(panel) -> None:
    """Tools have one row, code has three lines, the chosen one in sight; details have a tab beside it."""
    panel.locator(".ll-graph-view .ll-box", has_text="multiply").first.click()
    assert becomes(panel.page, lambda: panel.evaluate(LOW), [1, True, True]) == [1, True, True]
    details = panel.locator(".ll-graph-view .ll-details")
    expect(details).to_be_hidden()
    panel.get_by_role("button", name="Show what is known of what is chosen").click()
    expect(details).to_contain_text("multiply")
    details.get_by_role("button", name="Show In[1]").first.click()  # a link to the line leads back to the code
    expect(panel.locator(".ll-graph-view .ll-source .ll-line.ll-chosen")).to_be_visible()
    panel.locator(".ll-graph-view .ll-box.ll-lit").first.wait_for()


LINKED = """\
%load_ext limelight
import limelight as ll
w = ll.Variable(ll.ones((8, 4)), name="kernel")
def layer(x):
    h = x @ w
    return ll.tanh(h)
f = ll.function(layer, name="f")
f(ll.ones((2, 8)))
with ll.GradientTape() as tape:
    y = layer(ll.ones((2, 8)))"""


FAILS = """\
try:
    f(ll.ones((2, 9)))
except ll.errors.ShapeError:
    pass"""


def test_a_call_that_goes_well_after_a_failed_one_has_all_as_before(small):
    """The dashboard shows the error meanwhile; a view in an output keeps its graph, and says that a call failed."""
    page = small(LINKED, "%dashboard", "%graph f", FAILS, "f(ll.ones((2, 8)));")
    graph = docked(page).locator(".ll-graph-view")
    chosen, kept = page.locator(".ll-docked .ll-dash-chosen"), output(page, 2).locator(".ll-graph-view")
    optimised = [one.get_by_role("button", name="Show the optimised graph") for one in (graph, kept)]
    expect(optimised[1]).to_have_attribute("aria-pressed", "true")
    run_cell(page, 3)
    expect(graph.locator(".ll-title")).to_contain_text("a trace that failed after 1 op")
    expect(chosen).to_contain_text("matmul")
    expect(kept.locator(".ll-title")).to_have_text("f trace #1 of 1, a call since failed: ShapeError")
    run_cell(page, 4)
    expect(graph.locator(".ll-title")).to_have_text("f trace #1 of 1")
    expect(kept.locator(".ll-title")).to_have_text("f trace #1 of 1")
    expect(optimised[0]).to_have_attribute("aria-pressed", "true")
    expect(optimised[1]).to_have_attribute("aria-pressed", "true")
    expect(chosen).to_have_text("")


LONG = (
    """\
%load_ext limelight
import limelight as ll
def layer(x, n):
    with ll.name_scope(f"layer_{n}"):
        return ll.tanh(ll.exp(x) * 2.0) + ll.sqrt(ll.abs(x))
def model(x):
    for n in range(9):
        x = layer(x, n)
"""
    + 30 * "    #\n"
    + """\
    return x @ ll.ones((3, 3))
f = ll.function(model, name="f")
f(ll.ones((2, 3)))"""
)
WRONG = "try:\n    f(ll.ones((2, 4)))\nexcept ll.errors.ShapeError:\n    pass"
IN_SIGHT = """panel => {
  const inside = (part, whole) => {
    if (!part || !whole.clientHeight) return "is not there";
    const [one, all] = [part, whole].map(element => element.getBoundingClientRect());
    return one.top >= all.top - 1 && one.bottom <= all.bottom + 1;
  };
  const [source, details] = ["source", "details"].map(name => panel.querySelector(`.ll-graph-view .ll-${name}`));
  const error = inside(details.querySelector(".ll-error-text"), details);
  return [source.clientHeight ? inside(source.querySelector(".ll-chosen"), source) : true, error];
}"""


def test_the_line_of_an_error_and_what_is_said_of_it_are_in_sight(small, picture):
    page = small(LONG, "%dashboard", WRONG)
    panel = docked(page)
    expect(panel.locator(".ll-graph-view .ll-title")).to_contain_text("a trace that failed after")
    assert becomes(page, lambda: panel.evaluate(IN_SIGHT), [True, True]) == [True, True]
    picture(page, "dashboard-failed-light")
    for height in (1300, 900):  # where there is room for the code, too; and where that becomes less
        page.set_viewport_size({"width": 1600, "height": height})
        expect(panel.locator(".ll-graph-view .ll-source")).to_be_visible()
        assert becomes(page, lambda: panel.evaluate(IN_SIGHT), [True, True]) == [True, True]


def test_a_box_of_the_graph_and_a_row_of_the_tape_find_one_another(small):
    page = small(LINKED, "%dashboard f")
    panel = docked(page)
    panel.get_by_role("tab", name="Tape").click()
    rows = panel.locator(".ll-tape-view .ll-rows .ll-grid")
    panel.locator(".ll-graph-view .ll-box", has_text="tanh").first.click()
    expect(panel.locator(".ll-tape-view .ll-linked")).to_contain_text(["tanh"])
    rows.filter(has_text="matmul").click()
    expect(panel.locator(".ll-graph-view .ll-box.ll-chosen")).to_contain_text("matmul")
    expect(panel.locator(".ll-dash-chosen")).to_contain_text("matmul")


def test_what_if_and_rows_by_keyboard(again, picture):
    page = again(PROGRAM, "%dashboard predict")
    panel = docked(page)
    box = panel.get_by_role("textbox", name="What if")
    box.fill("predict(ll.ones((2, 8)))")
    box.press("Enter")
    answer = panel.locator(".ll-what-if-answer")
    expect(answer).to_contain_text("✓ hit")
    box.fill("predict(ll.ones((7, 8))[:5])")
    box.press("Enter")
    expect(answer).to_contain_text("✗ miss")
    expect(answer).to_contain_text("f32[5,8]")
    picture(panel, "dashboard-what-if-light")
    box.fill("predict(nowhere)")
    box.press("Enter")
    expect(answer).to_contain_text("NameError: name 'nowhere' is not defined")
    rows = panel.locator(".ll-cache-view [data-trace]")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(panel.locator(".ll-graph-view .ll-title")).to_contain_text("trace #1 of 2")
    expect(rows.first).to_have_attribute("aria-selected", "true")
    expect(rows.first).to_be_focused()


def test_one_tab_stop_and_no_violation_in_both_themes(again, picture):
    page = again(PROGRAM, "%dashboard predict")
    panel = docked(page)
    panel.locator(".ll-box").first.wait_for()
    scrollers = ".ll-dash-second, .ll-window, .ll-tape, .ll-source, .ll-scroll, .ll-details, .ll-listing"
    controls = f".ll-dashboard [tabindex='0']:not({scrollers})"
    reachable = f'() => document.querySelectorAll("{controls}").length'
    plain = "() => [...document.querySelectorAll('.ll-dashboard :is(button, input, summary):not([tabindex])')].length"
    for name in ("Traces", "Tape", "Devices"):
        panel.get_by_role("tab", name=name).click()
        assert becomes(page, lambda: (page.evaluate(reachable), page.evaluate(plain)), (1, 0)) == (1, 0), name
        for theme in (LIGHT, DARK):
            set_theme(page, theme)
            assert not violations(page, ".ll-dashboard"), (name, theme)
    picture(page, "dashboard-dark")
    panel.get_by_role("tab", name="Devices").focus()
    page.keyboard.press("ArrowRight")
    expect(panel.get_by_role("tab", name="Traces")).to_be_focused()
    page.keyboard.press("F6")
    expect(panel.locator(".ll-dash-second :focus")).to_have_count(1)
    in_the_first = panel.locator(".ll-dash-first :focus")
    presses = 0
    while not in_the_first.count() and presses < 10:  # the panes of the second one come before
        page.keyboard.press("F6")
        presses += 1
    expect(in_the_first).to_have_count(1)


CUT_TABS = """panel => {
  const end = panel.getBoundingClientRect().right;
  const isCut = (tab) => tab.scrollWidth > tab.clientWidth || tab.getBoundingClientRect().right > end;
  return [...panel.querySelectorAll("[role=tab]")].filter(isCut).map(tab => tab.textContent);
}"""
"""Tabs whose words do not fit into them, so that they lie on one another, or that lie beyond the panel."""


def test_a_narrow_one_has_tabs_and_loses_nothing(again, picture):
    page = again(PROGRAM, "%dashboard predict")
    panel = docked(page)
    panel.evaluate("panel => { panel.style.inlineSize = '360px'; }")
    tabs = panel.get_by_role("tab")
    expect(tabs).to_have_count(4)
    for name in ("Graph", "Traces", "Tape", "Devices"):
        panel.get_by_role("tab", name=name).click()
        expect(panel.locator(".ll-dash-second .ll")).to_have_count(1)
        assert becomes(page, lambda: panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth"), True), name
        assert panel.evaluate(
            "panel => ['auto', 'scroll'].includes(getComputedStyle(panel.querySelector('.ll-dash-second')).overflowY)"
        )
    picture(panel, "dashboard-narrow-light")
    panel.evaluate("panel => { panel.style.inlineSize = '150px'; }")
    assert becomes(page, lambda: panel.evaluate(CUT_TABS), []) == []
    panel.evaluate("panel => { panel.style.inlineSize = '360px'; }")
    panel.get_by_role("tab", name="Graph").click()
    expect(panel.locator(".ll-box").first).to_be_visible()


ROOMY = "panel => panel.querySelector('.ll-canvas').clientHeight / panel.clientHeight >= 0.4"


def test_at_200_percent_nothing_is_lost(again, picture):
    page = again(PROGRAM, "%dashboard predict")
    panel = docked(page)
    page.set_viewport_size(ENLARGED)
    command(page, "application:toggle-left-area")
    panel.evaluate("panel => panel.scrollIntoView()")
    for name in ("Graph", "Traces", "Tape", "Devices"):
        tab = panel.get_by_role("tab", name=name)
        if name == "Graph" and not tab.count():  # it has room of its own
            continue
        tab.click()
        assert becomes(page, lambda: panel.evaluate(LOST), []) == [], name
        assert becomes(page, lambda: panel.evaluate(ROOM), True), name
        picture(page, f"dashboard-200-{name.lower()}")
        if name == "Graph":
            assert becomes(page, lambda: panel.evaluate(ROOMY), True)
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


RESTART = "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"


def test_before_anything_ran_it_says_what_to_run(small, picture):
    page = small(
        "%load_ext limelight\nimport limelight as ll",
        "%dashboard",
        "f = ll.function(lambda x: x * 2.0, name='f')\nf(ll.ones((2,)))\n"
        "with ll.GradientTape() as tape:\n    ll.Variable(2.0) * 3.0",
    )
    page.locator(".ll-docked").wait_for()
    page.evaluate(RESTART)
    wait_idle(page)
    run_cell(page, 0)
    run_cell(page, 1)
    panel = docked(page)
    expect(panel.locator(".ll-graph-view")).to_contain_text("No function has been traced yet")
    expect(panel.locator(".ll-graph-view .ll-tools")).to_be_hidden()  # which would do nothing
    picture(panel, "dashboard-empty-light")
    run_cell(page, 2)
    expect(panel.locator(".ll-graph-view .ll-title")).to_contain_text("f trace #1 of 1")
    panel.get_by_role("tab", name="Tape").click()  # which nobody saw while that was recorded
    expect(panel.locator(".ll-tape-view")).to_contain_text("multiply")


def test_after_a_restart_what_is_shown_says_that_it_has_ended(small):
    page = small(LINKED, "%graph f", "%dashboard")
    views = [output(page, 1).locator(".ll-graph-view"), docked(page)]
    said = "view => getComputedStyle(view, '::after').content"
    assert [view.evaluate(said) for view in views] == ["none", "none"]
    page.evaluate(RESTART)
    for view in views:
        assert "Ended" in becomes(page, lambda view=view: view.evaluate(said)[1:6], "Ended")
