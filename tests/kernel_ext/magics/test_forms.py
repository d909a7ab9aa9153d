"""`--json`, `--save`, `-q` and `-o`: the same on every magic, and all of them tell the same."""

from __future__ import annotations

import json

import pytest

SOURCES = (
    "x = ll.constant([[1.0, 2.0]])\nwith ll.GradientTape(persistent=True) as tape:\n    tape.watch(x)\n    y = x * x"
)
LINES = [
    "%graph double", "%trace_cache double", "%trace_cache double --why", "%tape", "%tape --saved", "%tape --of y",
    "%tape --flow double(x=x)", "%devices --mem", "%devices --copies", "%explain double", "%steps double", "%stage",
    "%dashboard", "%stageconfig", "%check", "%hint 1.1",
]  # fmt: skip


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run(f"import limelight as ll\n{SOURCES}")
    run("%%stage -q double\nz = x + x\nz")
    return run


def test_json_and_what_is_kept_agree(notebook, subtests):
    for line in LINES:
        with subtests.test(line):
            magic, _, call = line.partition(" --flow ")
            flags = f"{magic} --json -o kept" + (f" --flow {call}" if call else "")
            shown = notebook(flags).value
            assert json.loads(repr(shown)) == shown.to_dict()
            kept = notebook("import limelight_widgets.figures.files as files\nfiles.json_ready(kept)").value
            told = shown.to_dict()
            for one in (kept, told):  # what runs again takes another time
                one.pop("seconds", None) if isinstance(one, dict) else None
            assert kept == told or "graph" in line or "dashboard" in line or "cache" in line


def test_quiet_shows_nothing_and_keeps(notebook, subtests):
    for line in LINES:
        with subtests.test(line):
            magic, _, call = line.partition(" --flow ")
            ran = notebook(f"{magic} -q -o kept" + (f" --flow {call}" if call else ""))
            assert (ran.value, ran.shown, ran.out) == (None, [], "")
            assert notebook("kept is not None").value


@pytest.mark.parametrize("ending", ["svg", "html", "json", "txt"])
def test_views_and_answers_are_files(notebook, tmp_path, ending):
    lines = ["%tape", "%trace_cache double", "%devices --mem"]
    for line in [*lines, *(["%explain double"] if ending != "svg" else [])]:
        said = notebook(f"{line} --text --save {tmp_path}/view.{ending}")
        assert f"saved {tmp_path}/view.{ending}:" in " ".join(said.text.split())
        text = (tmp_path / f"view.{ending}").read_text(encoding="utf-8")
        starts = {"svg": "<svg", "html": "<!doctype html>", "json": ("{", "["), "txt": ""}[ending]
        assert text.startswith(starts)
    refused = notebook(f"%tape --save {tmp_path}/view.pdf", fails=True)
    assert "give a name that ends in .svg, .png, .html, .json, .txt" in refused.err
    assert not (tmp_path / "view.pdf").exists()


def test_a_cell_keeps_its_result(notebook):
    ran = notebook("%%stage --json\nx * 2.0")
    assert json.loads(ran.text)["lines"][0]["mark"] == "staged"
    assert ran.value.shape == (1, 2)
    assert notebook("%%devices -q -o told\nx + 1.0").shown == []
    assert notebook("told.to_dict()['copies']").value == []
