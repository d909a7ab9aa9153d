"""Graphs as files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import limelight as ll
import limelight_widgets as views
from limelight_widgets.figures import files, graph_files

sys.path.insert(0, str(Path(__file__).parents[1]))
import models  # in the folder above

PROGRAM = """
import sys; sys.path[:0] = [{folder!r}]
import models, limelight_widgets as views
print(views.graph(models.conv_net()).static().svg)
"""


@pytest.fixture(scope="module")
def view():
    return views.graph(models.conv_net())


def test_the_same_graph_gives_the_same_bytes(view, tmp_path):
    other = views.graph(models.conv_net())
    for ending in (".svg", ".dot", ".me.json", ".txt"):
        for name, one in (("a", view), ("b", other), ("c", view)):
            one.save(tmp_path / f"{name}{ending}")
        written = {(tmp_path / f"{name}{ending}").read_bytes() for name in "abc"}
        assert len(written) == 1, ending


def test_a_page_of_its_own_is_written_as_other_views_do(view, tmp_path):
    view.save(tmp_path / "step.html")
    page = (tmp_path / "step.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "data:image/svg+xml" in page
    assert "conv1" in page


@pytest.mark.slow
def test_the_same_graph_gives_the_same_picture_in_another_process():
    program = PROGRAM.format(folder=str(Path(models.__file__).parent))
    runs = [
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


def test_the_picture_has_text_a_title_and_a_description(view, tmp_path):
    said = view.save(tmp_path / "step.svg")
    assert said == f"{tmp_path / 'step.svg'}: {(tmp_path / 'step.svg').stat().st_size:,} bytes"
    root = ElementTree.parse(tmp_path / "step.svg").getroot()
    names = [child.tag.rpartition("}")[2] for child in root]
    assert names[:2] == ["title", "desc"]
    assert root[0].text == "Graph of train_step"
    assert any("conv1" in "".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))


def test_json_is_what_the_view_knows(view, tmp_path):
    view.save(tmp_path / "step.json")
    read = json.loads((tmp_path / "step.json").read_text())
    assert (read["schema"], read["version"]) == ("limelight-graph/1", "optimised")
    assert read["graphs"] == json.loads(json.dumps(view.state()["graphs"]))


def test_model_explorer_has_all_ops_in_namespaces_with_edges_that_meet(view, tmp_path):
    view.save(tmp_path / "step.me.json")
    collection = json.loads((tmp_path / "step.me.json").read_text())
    assert collection["label"] == "train_step"
    graph = collection["graphs"][0]
    ids = [node["id"] for node in graph["nodes"]]
    assert len(set(ids)) == len(ids)
    described = view.state()["graphs"][view.state()["variants"][1]["graph"]]
    assert len(ids) == len(described["inputs"]) + len(described["nodes"]) + len(described["outputs"])
    sources = {edge["sourceNodeId"] for node in graph["nodes"] for edge in node.get("incomingEdges", ())}
    assert sources <= set(ids)
    conv = next(node for node in graph["nodes"] if node["label"] == "conv")
    assert conv["namespace"].startswith("forward/")
    assert conv["namespace"].endswith("conv1")
    assert conv["outputsMetadata"] == [{"id": "0", "attrs": [{"key": "tensor_shape", "value": "f32[4,16,16,16]"}]}]


def test_called_functions_are_graphs_of_their_own_in_dot_and_model_explorer(tmp_path):
    @ll.function
    def loop(x):
        return ll.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, x))[1]

    loop(ll.ones(2))
    view = views.graph(loop, which="traced")
    view.save(tmp_path / "loop.me.json")
    graphs = json.loads((tmp_path / "loop.me.json").read_text())["graphs"]
    called = [name for node in graphs[0]["nodes"] for name in node.get("subgraphIds", ())]
    assert called
    assert set(called) <= {graph["id"] for graph in graphs}
    view.save(tmp_path / "loop.dot")
    text = (tmp_path / "loop.dot").read_text()
    assert text.count("{") == text.count("}")
    assert text.count("subgraph cluster_g") == len(graphs) - 1


def test_names_in_dot_are_escaped():
    assert graph_files._quoted('a "b"\\', "c") == '"a \\"b\\"\\\\\\nc"'


def test_an_unknown_ending_lists_those_there_are(view, tmp_path):
    with pytest.raises(ll.errors.ArgumentError, match=r"'step.pdf'.* \.svg, \.png, \.html, \.dot, \.json"):
        view.save(tmp_path / "step.pdf")
    with pytest.raises(ll.errors.ArgumentError):
        view.save(tmp_path / ".svg")


def test_a_function_without_a_trace_says_so(tmp_path):
    with pytest.raises(ll.errors.ArgumentError, match="has not been traced yet"):
        views.graph(ll.function(lambda x: x)).save(tmp_path / "f.svg")


def test_a_folder_that_is_not_there_and_a_folder_as_a_name_are_said(view, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere; make it first"):
        view.save(tmp_path / "nowhere" / "step.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(IsADirectoryError, match="give the name of a file"):
        view.save(tmp_path / "folder.svg")


def test_a_folder_in_which_nothing_can_be_made_is_said(view, tmp_path, monkeypatch):
    def refused(**given):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.tempfile, "mkstemp", refused)
    with pytest.raises(PermissionError, match=r"no file can be made in .* \(Permission denied\)"):
        view.save(tmp_path / "step.svg")


def test_a_file_that_is_there_is_replaced_and_it_is_said(view, tmp_path):
    target = tmp_path / "step.txt"
    target.write_text("before")
    assert "in the place of the file that was there" in view.save(target)
    assert target.read_text().startswith("train_step\n")
    assert [path.name for path in tmp_path.iterdir()] == ["step.txt"]


def test_a_png_needs_a_library_and_says_which(view, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ImportError, match="pip install cairosvg"):
        view.save(tmp_path / "step.png")
    asked = []
    fake = SimpleNamespace(svg2png=lambda bytestring, scale: asked.append(scale) or b"PNG")
    monkeypatch.setitem(sys.modules, "cairosvg", fake)
    view.save(tmp_path / "step.png")
    assert (asked, (tmp_path / "step.png").read_bytes()) == ([2], b"PNG")
