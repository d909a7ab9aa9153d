import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { draw } from "../src/graph/nested-layout.js";
import { hidden } from "../src/graph/offscreen-counts.js";
import { fitted, settled, stacked } from "../src/graph/camera.js";
import { lineCounts, sentence, short } from "../src/graph/line-counts.js";
import { passSummary } from "../src/graph/passes.js";
import { fromViz, toViz } from "../src/graph/graphviz-format.js";
import { layered } from "../src/graph/layered-layout.js";
import { Layouts } from "../src/graph/layout.js";
import { openable } from "../src/graph/open-all.js";
import { across, around, places } from "../src/graph/box-paths.js";
import { find, matcher } from "../src/graph/search.js";
import { visible } from "../src/graph/visible-boxes.js";
import { membersOf, positionsOf, sizeOf, valuesOf, wordsOf } from "../src/graph/box-text.js";

// Written by tests/widgets/test_examples.py: what Python makes of the same graphs.
const { graphs: EXAMPLES } = JSON.parse(readFileSync(new URL("examples.json", import.meta.url), "utf8"));

const openNames = (names) => (name, byDefault) => byDefault || names.includes(name);
const sizes = (picture, width = 60, height = 30) => new Map(picture.boxes.map(({ name }) => [name, [width, height]]));
const close = (a, b) => Math.abs(a - b) < 1e-6;

for (const { name, state, open, boxes, words, frames, again, edges, places } of EXAMPLES) {
  test(`${name}: the same boxes, frames and edges as in Python`, () => {
    const picture = visible(state.graphs, 0, openNames(open));
    assert.deepEqual(picture.boxes.map((box) => [box.name, box.kind, box.parent]), boxes);
    assert.deepEqual(picture.frames.map((frame) => [frame.name, frame.label, frame.parent]), frames);
    const sorted = [...picture.edges.values()].map(({ source, target, count }) => [source, target, count]).sort();
    assert.deepEqual(sorted, edges.sort());
    const back = [...picture.edges.values()].filter((edge) => edge.again).map(({ source, target }) => [source, target]);
    assert.deepEqual(back.sort(), again);
  });

  test(`${name}: the same words on the boxes as in Python`, () => {
    const said = visible(state.graphs, 0, openNames(open)).boxes.map((box) => wordsOf(state, box));
    assert.deepEqual(said.map(({ title, detail, kind }) => [title, detail, kind]), words);
  });

  test(`${name}: the same places as in Python`, () => {
    const picture = visible(state.graphs, 0, openNames(open));
    const drawing = draw(picture, sizes(picture));
    for (const [box, [x, y, width, height]] of Object.entries(places)) {
      const place = drawing.boxes.get(box) ?? drawing.frames.get(box);
      assert.ok(close(place.x, x) && close(place.y, y) && close(place.width, width) && close(place.height, height), box);
    }
    assert.equal(drawing.boxes.size + drawing.frames.size, Object.keys(places).length);
  });
}

const example = (name) => EXAMPLES.find((one) => one.name === name).state;

test("Fit shows everything, however large it is", () => {
  for (const [width, height] of [[2000, 500], [500, 9000], [20000, 20000]]) {
    const { x, y, scale } = fitted({ width: 700, height: 460 }, { width, height }, true);
    assert.ok(x >= 0 && y >= 0 && x + width * scale <= 700 && y + height * scale <= 460, `${width} by ${height}`);
  }
});

test("at first everything is shown if it can be read, else the whole width, or its middle", () => {
  const view = { width: 700, height: 460 };
  assert.ok(fitted(view, { width: 600, height: 700 }, false).scale * 700 <= 460);
  const tall = fitted(view, { width: 600, height: 5000 }, false);
  assert.equal(tall.scale, 1);
  const wide = fitted(view, { width: 2000, height: 1500 }, false);
  assert.equal(wide.scale, 0.5);
  assert.equal(wide.x + (2000 * wide.scale) / 2, 350, "its middle is in sight");
  const fits = fitted(view, { width: 1200, height: 1500 }, false);
  assert.ok(fits.x >= 0 && fits.x + 1200 * fits.scale <= 700);
});

test("code stands below a picture that is too wide to be read beside it", () => {
  const [wide, tall, small] = [{ width: 1300, height: 500 }, { width: 800, height: 1300 }, { width: 500, height: 400 }];
  assert.deepEqual([wide, tall, small].map((drawing) => stacked(720, drawing)), [true, false, false]);
  assert.deepEqual([stacked(1200, wide), stacked(600, small)], [false, true]);
});

test("outputs have the names that their function knows", () => {
  const graph = { name: "f", inputs: [{ name: "x", spec: "f32[]" }], outputs: [0, 0], nodes: [], groups: [], open: [] };
  const state = { graphs: [graph], variants: [], sources: [], rules: {} };
  const box = { name: "o1", kind: "output", graph: 0, index: 1, parent: "" };
  assert.equal(wordsOf(state, box).title, "output 1");
  graph.output_names = ["loss", "result"];
  assert.equal(wordsOf(state, box).title, "result");
});

test("a node with a requested device shows it on its box", () => {
  const node = { op: "tanh", kind: "op", in: [], out: ["f32[2]"], names: ["%0"], device: "CPU:1" };
  const graph = { name: "f", inputs: [], outputs: [], nodes: [node], groups: [], open: [] };
  const state = { graphs: [graph], variants: [], sources: [], rules: {} };
  const box = { name: "n0", kind: "node", graph: 0, index: 0, parent: "" };
  assert.equal(wordsOf(state, box).detail, "f32[2] · CPU:1");
  node.out = ["f32[2000,3000,4000]", "f32[2000,3000,4000]"];
  assert.match(wordsOf(state, box).detail, /… · CPU:1$/);
});

test("closing a group changes nothing beyond it", () => {
  const state = example("network");
  const before = visible(state.graphs, 0, () => false);
  const after = visible(state.graphs, 0, openNames(["g0"]));
  const outside = (picture) => picture.boxes.filter(({ parent, kind }) => !parent && kind !== "group").map(({ name }) => name);
  assert.deepEqual(outside(after), outside(before));
});

test("a call says whether it can be opened", () => {
  const boxes = visible(example("network").graphs, 0, () => false).boxes;
  assert.deepEqual(boxes.filter(({ opens }) => opens).map(({ name }) => name), ["g0", "n4"]);
  const recursive = visible(example("recursion").graphs, 0, () => true).boxes;
  assert.deepEqual(recursive.filter(({ opens }) => opens), []);
});

test("10,000 boxes are laid out in linear time, without recursion", () => {
  const count = 10000;
  const edges = Array.from({ length: count - 1 }, (_, i) => [i, i + 1]);
  const layout = layered(Array.from({ length: count }, () => [60, 30]), edges);
  assert.ok(layout.centres.every(([, y], i) => i === 0 || y > layout.centres[i - 1][1]));
});

test("boxes of a row keep their distance", () => {
  const wide = Array.from({ length: 50 }, (_, i) => [0, i + 1]);
  const layout = layered(Array.from({ length: 51 }, () => [60, 30]), wide);
  const row = layout.centres.slice(1).map(([x]) => x).sort((a, b) => a - b);
  assert.ok(row.every((x, i) => i === 0 || x - row[i - 1] >= 76 - 1e-6));
});

test("Graphviz gets numbers for names, and its drawing comes back upright", () => {
  const state = example("network");
  const picture = visible(state.graphs, 0, openNames([]));
  const graph = toViz(picture, sizes(picture, 72, 36));
  assert.match(JSON.stringify(graph.nodes[0]), /"name":"b0"/);
  assert.equal(graph.subgraphs[0].nodes.length, 2);
  const json = {
    bb: "0,0,200,300",
    objects: [
      { name: "cluster_0", bb: "10,100,90,200", _gvid: 0 },
      { name: "b0", pos: "50,250", width: 1, height: 0.5, _gvid: 1 },
      { name: "b3", pos: "50,150", width: 1, height: 0.5, _gvid: 2 },
    ],
    edges: [{ tail: 1, head: 2, pos: "e,50,168 50,232 50,220 50,200 50,180" }],
  };
  const drawing = fromViz(picture, json);
  assert.deepEqual(drawing.boxes.get("i0"), { x: 14, y: 32, width: 72, height: 36 });
  assert.deepEqual(drawing.frames.get("g0"), { x: 10, y: 100, width: 80, height: 100 });
  assert.equal(drawing.edges.get("i0>n0"), "M50,68.0 C50,80.0 50,100.0 50,120.0");
});

test("without Graphviz there is still a layout, and it is remembered", async () => {
  const picture = visible(example("network").graphs, 0, openNames([]));
  let calls = 0;
  const layouts = new Layouts(async () => {
    calls += 1;
    throw new Error("no worker here");
  });
  const first = await layouts.of("a", picture, sizes(picture));
  assert.equal(first.boxes.size, picture.boxes.length);
  assert.match(layouts.reason, /no worker here/);
  assert.equal(await layouts.of("a", picture, sizes(picture)), first);
  assert.equal(calls, 1);
});

test("a layout that was superseded is dropped", async () => {
  const picture = visible(example("network").graphs, 0, openNames([]));
  const signals = [];
  const layouts = new Layouts(async () => (_graph, signal) => {
    signals.push(signal);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("superseded"))));
  });
  const first = layouts.of("a", picture, sizes(picture));
  await new Promise((resolve) => setTimeout(resolve, 0));
  layouts.graphviz = async () => {
    throw new Error("gone");
  };
  const second = layouts.of("b", picture, sizes(picture));
  assert.equal(await first, null);
  assert.ok(signals[0].aborted);
  assert.ok(await second);
});

test("too many boxes for Graphviz go straight to the linear layout", async () => {
  const graph = { name: "f", inputs: [], outputs: [], groups: [], open: [], nodes: [] };
  for (let i = 0; i < 400; i++) graph.nodes.push({ op: "exp", kind: "op", names: [`%${i}`], in: i ? [i - 1] : [], out: ["f32[2]"] });
  const picture = visible([graph], 0, () => false);
  const layouts = new Layouts(async () => assert.fail("Graphviz was asked"));
  assert.equal((await layouts.of("a", picture, sizes(picture))).boxes.size, 400);
  assert.equal(layouts.reason, "");
});

test("finding by word and by field", () => {
  const state = example("network");
  assert.deepEqual(find(state, 0, "matmul"), [0]);
  assert.deepEqual(find(state, 0, "op:MATM"), [0]);
  assert.deepEqual(find(state, 0, "op:MUL"), [0, 3, 4], "the call's function multiplies too");
  assert.deepEqual(find(state, 0, "line:7"), [3]);
  assert.deepEqual(find(state, 0, "dtype:f32 line:8"), [4]);
  assert.deepEqual(find(state, 0, "call loss"), [4]);
  assert.deepEqual(find(example("fused"), 0, "fused:1"), [0, 2, 3]);
  assert.deepEqual(find(state, 0, "dtype:i32"), []);
  assert.deepEqual(find(state, 0, "  "), []);
  assert.equal(matcher(""), null);
  assert.ok(matcher("constructor:x")({ op: "constructor:x", kind: "op", names: [] }));
});

test("a box knows its lines, those of what is inside included", () => {
  const state = example("network");
  const [group, call] = [{ kind: "group", graph: 0, index: 0 }, { kind: "node", graph: 0, index: 4 }];
  assert.deepEqual(membersOf(state.graphs[0], 0), [0, 1]);
  assert.deepEqual(positionsOf(state, group).map(([, line]) => line), [5, 6]);
  assert.deepEqual(positionsOf(state, call).map(([, line]) => line), [8, 2, 3, 3]);
});

test("words of boxes", () => {
  const state = example("network");
  const words = (kind, index) => wordsOf(state, { name: "", kind, graph: 0, index, parent: "" });
  assert.deepEqual(words("node", 0), { title: "matmul", detail: "f32[2,3]", kind: "op", full: "matmul, f32[2,3]" });
  assert.deepEqual(words("node", 2), { title: "2.0", detail: "f32[2,3]", kind: "constant", full: "2.0, f32[2,3]" });
  assert.deepEqual(words("node", 4), { title: "call loss", detail: "f32[2,3]", kind: "call", full: "call loss, f32[2,3]" });
  assert.deepEqual(words("input", 2), { title: "w", detail: "captured f32[2,3]", kind: "input", full: "w, captured f32[2,3]" });
  assert.deepEqual(words("output", 0), { title: "output", detail: "f32[2,3]", kind: "output", full: "output, f32[2,3]" });
  assert.deepEqual(words("group", 0), { title: "dense", detail: "2 ops", kind: "group", full: "dense, 2 ops" });
  assert.deepEqual(valuesOf(state.graphs[0])[7], { name: "%7", spec: "f32[2,3]", node: 4 });
  assert.ok(sizeOf({ title: "x".repeat(20), detail: "", kind: "op" })[0] > sizeOf({ title: "x", detail: "", kind: "op" })[0]);
});

const view = { width: 700, height: 460 };
const seen = ({ x, y, scale }, place) =>
  x + place.x * scale >= 0 && y + place.y * scale >= 0 &&
  x + (place.x + place.width) * scale <= view.width && y + (place.y + place.height) * scale <= view.height;

test("what is opened moves nothing if all of it is in sight, and else everything into sight", () => {
  const now = { x: 100, y: 20, scale: 1 };
  const opened = { x: 0, y: 100, width: 200, height: 150 };
  assert.deepEqual(settled(now, view, { width: 500, height: 400 }, opened), now);
  const moved = settled({ x: 300, y: 20, scale: 1 }, view, { width: 500, height: 400 }, opened);
  assert.equal(moved.scale, 1);
  assert.ok(seen(moved, { x: 0, y: 0, width: 500, height: 400 }));
  for (const [width, height] of [[500, 400], [900, 600], [300, 780]]) {
    assert.ok(seen(settled(now, view, { width, height }, opened), { x: 0, y: 0, width, height }), `${width} by ${height}`);
  }
});

test("what is opened is in sight where the whole could not be read", () => {
  const opened = { x: 900, y: 2000, width: 300, height: 600 };
  const after = settled({ x: 0, y: 0, scale: 1 }, view, { width: 2000, height: 5000 }, opened);
  assert.ok(seen(after, opened));
  assert.ok(after.scale >= 0.55);
});

test("what is closed gives its room back", () => {
  assert.ok(settled({ x: 0, y: 0, scale: 0.55 }, view, { width: 500, height: 400 }, null).scale > 0.9);
});

test("boxes out of sight are counted on each side", () => {
  const boxes = [[0, -50], [0, 100], [0, 900], [-400, 100], [1000, 100]].map(([x, y]) => ({ x, y, width: 10, height: 10 }));
  assert.deepEqual(hidden(boxes, { x: 0, y: 0, scale: 1 }, view), { above: 1, below: 1, left: 1, right: 1 });
});

test("everything opens: groups, calls, branches, and what is in them, as long as there is room", () => {
  const { graphs } = example("branches");
  assert.deepEqual(openable(graphs, 0), { names: ["n1"], complete: true });
  const scopes = example("scopes").graphs;
  const all = openable(scopes, 0);
  assert.equal(all.complete, true);
  assert.equal(visible(scopes, 0, (name) => all.names.includes(name)).boxes.length, 152);
  const some = openable(scopes, 0, 90);
  assert.equal(some.complete, false);
  assert.ok(visible(scopes, 0, (name) => some.names.includes(name)).boxes.length <= 90);
  assert.deepEqual(openable(example("recursion").graphs, 0).names, []);
});

test("paths lead into calls, and to the other version of a graph", () => {
  const call = (op, calls, more) => ({ op, kind: "call", names: [], calls, ...more });
  const inner = { inputs: [], groups: [], nodes: [{ op: "exp", kind: "op", names: [], became: ["kept", [1], ""] }] };
  const outer = { inputs: [], groups: [{ parent: -1 }], nodes: [call("call", [[1, "f"]], { group: 0, became: ["kept", [3], ""] })] };
  const state = { graphs: [outer, inner], variants: [{ key: "traced", graph: 0 }, { key: "optimised", graph: 0 }] };
  assert.deepEqual(around(state.graphs, 0, "n0.0/n0").sort(), ["g0", "n0"]);
  assert.deepEqual([...places(state.graphs, 0)], [[0, ""], [1, "n0.0/"]]);
  assert.deepEqual(across(state, "traced", "n0.0/n0", [1]), ["n3.0/n1"]);
});

test("each op counts once at a line, those of called functions for themselves", () => {
  const at = (...lines) => ({ op: "exp", kind: "op", names: [], stack: lines.map((line) => [0, line, "f"]) });
  const call = { ...at(2), calls: [[2, "g"]] };
  const graph = (...nodes) => ({ inputs: [], groups: [], nodes });
  const state = {
    graphs: [graph(at(5, 2), at(2), call), graph(at(2), call), graph(at(2), at(9))],
    variants: [{ key: "traced", graph: 0 }, { key: "optimised", graph: 1 }],
  };
  const count = (variant, line) => lineCounts(state, variant).get(`0:${line}`);
  assert.deepEqual([short(count("traced", 2), "own"), short(count("traced", 2), "inside")], ["2", "1"]);
  assert.equal(sentence(count("traced", 2)), "2 ops; 1 op in functions that the graph calls");
  assert.equal(short(count("traced", 5), "own"), "1", "the innermost line of a file has it");
  assert.equal(sentence(count("optimised", 5)), "1 op as traced, 0 as they run");
  assert.equal(short(count("optimised", 2), "own"), "2");
  assert.equal(sentence(count("optimised", 9)), "1 op in functions that the graph calls");
});

test("what was fused in a called function is no idle pass", () => {
  const empty = { name: "f", inputs: [], outputs: [], groups: [], open: [] };
  const inner = { ...empty, nodes: [], fusions: [{ kind: "elementwise", nodes: [0, 1] }, { kind: "elementwise", nodes: [2, 3] }] };
  const outer = { ...empty, nodes: [{ op: "while_loop", kind: "call", names: [], calls: [[1, "body"]] }] };
  const pass = (name, removed) => ({ name, before: 3, removed, added: 0, after: 3 - removed });
  const state = { graphs: [outer, inner], passes: [pass("fold", 0), pass("prune", 1), pass("fuse", 0)] };
  const { busy, others, inside, called } = passSummary(state, 0);
  assert.deepEqual([busy.map(({ name }) => name), others, inside, called], [["prune"], ["fold"], 2, 1]);
  assert.deepEqual(passSummary({ ...state, graphs: [{ ...outer, nodes: [] }] }, 0).others, ["fold", "fuse"]);
});
