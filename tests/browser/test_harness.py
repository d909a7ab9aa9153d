"""The harness itself: a widget is clicked, Python sees it, the screen shows it; and what goes wrong is noticed."""

import pytest

from harness.page import DARK, CellError, becomes, output, run_all, run_cell, set_theme, wait_idle


def test_a_counter_counts_in_python_and_on_the_screen(open_notebook, picture):
    page = open_notebook("counter.ipynb")
    run_all(page)
    button = output(page, 1).get_by_role("button")
    assert button.inner_text() == "count is 0"
    button.click()
    button.click()
    output(page, 1).get_by_text("count is 2").wait_for()
    run_cell(page, 2)
    assert "Python saw 2" in output(page, 2).inner_text()
    picture(page, "harness-light")
    set_theme(page, DARK)
    picture(page, "harness-dark")


def test_a_theme_does_not_leak_into_the_next_test(open_cells):
    page = open_cells("1 + 1")
    assert page.evaluate("() => document.body.dataset.jpThemeName") == "JupyterLab Light"


def test_wait_idle_waits_for_running_and_queued_cells(open_cells):
    page = open_cells("import time; time.sleep(1.5)", "print('se' + 'cond')")
    run_all(page, wait=False)
    assert output(page, 1).inner_text().strip() == ""
    wait_idle(page)
    assert "second" in output(page, 1).inner_text()


def test_a_cell_that_raises_fails_the_run_with_its_traceback(open_cells):
    page = open_cells("1 / 0")
    with pytest.raises(CellError, match="ZeroDivisionError: division by zero"):
        run_all(page)


def test_console_errors_and_foreign_requests_are_seen(open_cells, watch):
    page = open_cells("1 + 1")
    page.evaluate("() => console.error('a mishap')")
    page.evaluate("() => fetch('http://example.invalid/x').catch(() => null)")
    foreign = ["http://example.invalid/x"]
    assert becomes(page, lambda: watch.foreign, foreign) == foreign
    assert becomes(page, lambda: any("a mishap" in error for error in watch.errors), True)
    watch.errors.clear()
    watch.foreign.clear()
