"""The harness itself: a widget is clicked, Python sees it, the screen shows it; and what goes wrong is noticed."""

import pytest
from playwright.sync_api import expect

from harness.page import DARK, LATE_MODEL, CellError, becomes, cell, output, run_all, run_cell, set_theme, wait_idle


def test_a_counter_counts_in_python_and_on_the_screen(open_notebook, picture):
    page = open_notebook("counter.ipynb")
    run_all(page)
    button = output(page, 1).get_by_role("button")
    expect(button).to_have_text("count is 0")
    button.click()
    button.click()
    output(page, 1).get_by_text("count is 2").wait_for()
    run_cell(page, 2)
    expect(output(page, 2)).to_contain_text("Python saw 2")
    picture(page, "harness-light")
    set_theme(page, DARK)
    picture(page, "harness-dark")


def test_a_theme_does_not_leak_into_the_next_test(open_cells):
    page = open_cells("1 + 1")
    assert page.evaluate("() => document.body.dataset.jpThemeName") == "JupyterLab Light"


def test_wait_idle_waits_for_running_and_queued_cells(open_cells, tmp_path):
    looked = tmp_path / "looked"
    first = (
        f"import time, pathlib\nwhile not pathlib.Path({str(looked)!r}).exists():\n    time.sleep(0.1)\ntime.sleep(1.5)"
    )
    page = open_cells(first, "print('se' + 'cond')")
    run_all(page, wait=False)
    expect(cell(page, 1).locator(".jp-InputPrompt")).to_have_text("[*]:")
    assert output(page, 1).text_content() == ""
    looked.touch()
    wait_idle(page)
    assert "second" in (output(page, 1).text_content() or "")


def test_a_cell_that_raises_fails_the_run_with_its_traceback(open_cells):
    page = open_cells("1 / 0")
    with pytest.raises(CellError, match="ZeroDivisionError: division by zero"):
        run_all(page)


def test_console_errors_and_foreign_requests_are_seen(open_cells, watch):
    page = open_cells("1 + 1")
    page.evaluate("() => console.error('a mishap')")
    page.evaluate("said => said.map(text => setTimeout(() => { throw new Error(text) }))", [LATE_MODEL, "a fault"])
    page.evaluate("() => fetch('http://example.invalid/x').catch(() => null)")
    foreign = ["http://example.invalid/x"]
    assert becomes(page, lambda: watch.foreign, foreign) == foreign
    for said in ("a mishap", "a fault"):
        assert becomes(page, lambda said=said: any(said in error for error in watch.errors), True)
    assert not any(LATE_MODEL in error for error in watch.errors)
    watch.errors.clear()
    watch.foreign.clear()
