import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { draw } from "../src/graph/nested-layout.js";
import { hidden } from "../src/graph/offscreen-counts.js";
import { filled, fitted, revealed, settled } from "../src/graph/camera.js";
import { firstSight, MOST_BOXES } from "../src/graph/first-sight.js";
import { saved } from "../src/graph/lanes.js";
import { level, stacked, typeSize, written } from "../src/graph/labels.js";
import { lineCounts, sentence, short } from "../src/graph/line-counts.js";
import { passSummary } from "../src/graph/passes.js";
import { inRows, layered } from "../src/graph/layered-layout.js";
import { Layouts } from "../src/graph/layout.js";
import { openable, shaped } from "../src/graph/open-all.js";
import { across, around, places } from "../src/graph/box-paths.js";
import { find, matcher } from "../src/graph/search.js";
import { UNSIZED } from "../src/format.js";
import { bytesOf, visible } from "../src/graph/visible-boxes.js";
import { membersOf, positionsOf, sizeOf, valuesOf, wordsIn, wordsOf } from "../src/graph/box-text.js";

// Written by tests/widgets/test_examples.py: what Python makes of the same graphs.
const { graphs: EXAMPLES, sights: SIGHTS } = JSON.parse(readFileSync(new URL("examples.json", import.meta.url), "utf8"));

const openNames = (names) => (name, byDefault) => byDefault || names.includes(name);
const sizes = (picture, width = 60, height = 30) => new Map(picture.boxes.map(({ name }) => [name, [width, height]]));
const close = (a, b) => Math.abs(a - b) < 1e-6;

for (const { name, state, open, boxes, words, frames, again, edges, places, depths, searches } of EXAMPLES) {
  test(`${name}: the same groups of a depth are open as in Python`, () => {
    depths.forEach((names, depth) => assert.deepEqual(openable(state.graphs, 0, undefined, depth).names.sort(), names));
  });

  test(`${name}: a search finds what it finds in Python`, () => {
    for (const [query, found] of Object.entries(searches)) assert.deepEqual(state.graphs[0].nodes.map(matcher(query)), found, query);
  });

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
  for (const [width, height] of [[2000, 500], [500, 9000], [20000, 20000], [100, 100]]) {
    const { x, y, scale } = fitted({ width: 700, height: 460 }, { width, height });
    assert.ok(x >= 0 && y >= 0 && x + width * scale <= 700 && y + height * scale <= 460, `${width} by ${height}`);
  }
});

test("what cannot be read is shown from its beginning, at the least scale that was asked for", () => {
  const room = { width: 700, height: 460 };
  assert.deepEqual(fitted(room, { width: 5000, height: 9000 }, 0.5), { x: 12, y: 12, scale: 0.5 });
  assert.deepEqual(fitted(room, { width: 500, height: 400 }, 0.5), fitted(room, { width: 500, height: 400 }));
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

/** A picture of a chain of ops. */
function chain(count) {
  const graph = { name: "f", inputs: [], outputs: [], groups: [], open: [], nodes: [] };
  for (let i = 0; i < count; i++) graph.nodes.push({ op: "exp", kind: "op", names: [`%${i}`], in: i ? [i - 1] : [], out: ["f32[2]"] });
  return visible([graph], 0, () => false);
}

test("without a worker there is still a layout, and it is remembered", async () => {
  const picture = chain(500);
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
  const picture = chain(500);
  const signals = [];
  const layouts = new Layouts(async () => (_picture, _sizes, _manner, signal) => {
    signals.push(signal);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("superseded"))));
  });
  const first = layouts.of("a", picture, sizes(picture));
  await new Promise((resolve) => setTimeout(resolve, 0));
  layouts.worker = async () => {
    throw new Error("gone");
  };
  const second = layouts.of("b", picture, sizes(picture));
  assert.equal(await first, null);
  assert.ok(signals[0].aborted);
  assert.ok(await second);
});

test("small pictures are laid out at once, without the worker", async () => {
  const layouts = new Layouts(async () => assert.fail("the worker was asked"));
  const picture = chain(300);
  assert.equal((await layouts.of("a", picture, sizes(picture))).boxes.size, 300);
  assert.equal(layouts.reason, "");
});

test("a picture that was laid out to find what can be seen is not laid out again, and supersedes others", async () => {
  const state = example("network");
  const { picture, drawing, manner } = firstSight(state, 0, { width: 800, height: 600 });
  assert.equal(drawing.boxes.size, picture.boxes.length);
  const layouts = new Layouts(async () => (_picture, _sizes, _manner, signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("superseded")))));
  const before = layouts.of("a", chain(500), sizes(chain(500)));
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(await layouts.of("b", picture, new Map(), manner, drawing), drawing);
  assert.equal(await before, null);
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

test("the corner of what is opened or closed does not move", () => {
  for (const opened of [{ x: 0, y: 100, width: 200, height: 150 }, { x: 500, y: 300, width: 900, height: 900 }]) {
    for (const now of [{ x: 100, y: 20, scale: 1 }, { x: -40, y: 10, scale: 0.6 }]) {
      const after = settled(now, view, opened);
      assert.ok(close(after.x + opened.x * after.scale, now.x + opened.x * now.scale));
      assert.ok(close(after.y + opened.y * after.scale, now.y + opened.y * now.scale));
      assert.ok(after.scale <= now.scale && after.scale >= Math.min(0.75, now.scale));
    }
  }
  const fits = settled({ x: 0, y: 0, scale: 1 }, view, { x: 10, y: 10, width: 800, height: 300 });
  assert.ok(seen(fits, { x: 10, y: 10, width: 800, height: 300 }), "it is made smaller where that is enough");
});

test("what is opened at an edge of the view keeps the corner there, and is in sight", () => {
  const [now, was] = [{ x: 0, y: 0, scale: 1 }, { width: 120, height: 50 }];
  const opened = { x: 560, y: 400, width: 600, height: 300 };
  const after = settled(now, view, opened, was);
  assert.ok(close(after.x + (opened.x + opened.width) * after.scale, 560 + was.width));
  assert.ok(close(after.y + (opened.y + opened.height) * after.scale, 400 + was.height));
  assert.ok(seen(after, opened));
  assert.ok(!seen(settled(now, view, opened), opened), "the upper left corner cannot stay");
  const small = { x: 60, y: 40, width: 300, height: 200 };
  assert.deepEqual(settled(now, view, small, was), now, "where all of it is seen, nothing moves");
});

test("where a trace failed comes after what had run", () => {
  const node = (/** @type {any} */ more) => ({ op: "exp", kind: "op", names: [], ...more });
  const nodes = [node({ in: [0], out: ["f32[2]"] }), node({ op: "KeyError", kind: "error", said: "'weights'", after: [1] })];
  const graphs = [{ name: "f", inputs: [{ name: "x", spec: "f32[2]" }], outputs: [], groups: [], open: [], nodes }];
  const { edges } = visible(graphs, 0, (_, byDefault) => byDefault, true);
  assert.deepEqual([...edges.keys()], ["i0>n0", "n0>n1"]);
  assert.deepEqual(edges.get("n0>n1"), { source: "n0", target: "n1", count: 1, again: "after what ran last" });
});

test("what is brought into sight has room around it, and what is in sight stays", () => {
  const now = { x: 0, y: 0, scale: 1 };
  const at = (/** @type {any} */ place, signs = []) => {
    const { x, y } = revealed(now, view, place, signs);
    return [x + place.x, y + place.y];
  };
  assert.deepEqual(at({ x: 560, y: 400, width: 120, height: 40 }), [560, 400]);
  assert.deepEqual(at({ x: 990, y: 200, width: 120, height: 40 }), [700 - 175 - 120, 200], "a quarter of the view to the right of it");
  assert.deepEqual(at({ x: 300, y: -90, width: 120, height: 40 }), [300, 115], "and above");
  assert.deepEqual(at({ x: 990, y: 200, width: 600, height: 40 }), [50, 200], "or as much as there is");
  assert.deepEqual(at({ x: 990, y: 200, width: 900, height: 40 }), [12, 200], "else the beginning is seen");
  const right = { x: 550, y: 207, width: 146, height: 20 };
  const below = { x: 280, y: 436, width: 140, height: 20 };
  assert.deepEqual(at({ x: 560, y: 200, width: 120, height: 40 }, [right, below]), [405, 200], "what lies below a sign is not in sight");
  assert.deepEqual(at({ x: 300, y: 405, width: 120, height: 40 }, [right, below]), [300, 460 - 115 - 40]);
  const inDrawer = revealed(now, { ...view, x: 300, width: 400 }, { x: 20, y: 200, width: 100, height: 40 });
  assert.equal(inDrawer.x + 20, 300 + 100);
});

test("no room is left empty while some of the drawing is out of sight", () => {
  const drawing = { width: 600, height: 900 };
  assert.deepEqual(filled({ x: 50, y: 320, scale: 1 }, view, drawing), { x: 50, y: 12, scale: 1 });
  assert.deepEqual(filled({ x: -90, y: -700, scale: 1 }, view, drawing), { x: 12, y: 460 - 12 - 900, scale: 1 });
  assert.deepEqual(filled({ x: 50, y: -200, scale: 1 }, view, drawing), { x: 50, y: -200, scale: 1 });
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

for (const { name, state, rooms } of SIGHTS) {
  test(`${name}: the same at first sight as in Python`, () => {
    for (const { room: [width, height], ...sight } of rooms) {
      const found = firstSight(state, 0, { width, height });
      const said = wordsIn(state, found.picture, found.manner);
      const drawing = draw(found.picture, new Map([...said].map(([box, words]) => [box, sizeOf(words)])), found.manner);
      assert.deepEqual([...(found.open ?? [])].sort(), sight.open);
      assert.deepEqual([...found.dissolved].sort(), sight.dissolved);
      assert.equal(found.folded, sight.folded);
      assert.deepEqual(found.manner, sight.manner);
      assert.ok(close(found.scale, sight.scale));
      assert.deepEqual([...said.values()].map(({ title, detail, tags = "" }) => [title, detail, tags]), sight.words);
      for (const [box, place] of Object.entries(sight.places)) {
        const { x, y, width: wide, height: high } = drawing.boxes.get(box) ?? drawing.frames.get(box);
        [x, y, wide, high].forEach((one, i) => assert.ok(close(one, place[i]), `${box} in ${width}`));
      }
      const strips = (drawing.strips ?? []).map((one) => [one.lane, one.title, one.x, one.y, one.width, one.height]);
      strips.forEach((strip, i) => strip.forEach((one, k) => assert.ok(one === sight.strips[i][k] || close(one, sight.strips[i][k]))));
      assert.equal([...found.picture.edges.values()].reduce((sum, { bytes = 0 }) => sum + bytes, 0), sight.bytes);
    }
  });

  test(`${name}: at first sight no box lies on another, and few are drawn`, () => {
    for (const [width, height] of [[500, 400], [820, 516], [1400, 760]]) {
      const found = firstSight(state, 0, { width, height });
      assert.ok(found.picture.boxes.length <= MOST_BOXES);
      const drawing = draw(found.picture, new Map([...wordsIn(state, found.picture, found.manner)].map(([name, words]) => [name, sizeOf(words)])), found.manner);
      const places = [...drawing.boxes.values()];
      const overlap = (a, b) => a.x < b.x + b.width - 1e-6 && b.x < a.x + a.width - 1e-6 && a.y < b.y + b.height - 1e-6 && b.y < a.y + a.height - 1e-6;
      assert.deepEqual(places.filter((a, i) => places.some((b, k) => k > i && overlap(a, b))), []);
      const out = places.filter(({ x, y, width: wide, height: high }) => x < -1e-6 || y < -1e-6 || x + wide > drawing.width + 1e-6 || y + high > drawing.height + 1e-6);
      assert.deepEqual(out, []);
      assert.ok(found.scale <= Math.min(width / drawing.width, height / drawing.height) + 1e-9);
    }
  });
}

test("layers stand by themselves, and their gradients beside them, with what is kept", () => {
  const { state } = SIGHTS.find((one) => one.name === "five layers");
  const { picture, manner, dissolved } = firstSight(state, 0, { width: 620, height: 400 });
  assert.equal(dissolved.size, 2, "the model's frame, and that of its gradient, say nothing");
  assert.ok(manner.lanes);
  const kept = saved(picture);
  assert.equal(kept.length, 5);
  assert.ok(kept.every(({ bytes }, i) => i === 0 || bytes <= kept[i - 1].bytes), "heaviest first");
  assert.equal(kept[0].bytes, 8 * 64 * 4);
  assert.ok([...picture.boxes, ...picture.frames].some(({ path }) => path === "model.0"));
  assert.ok(picture.boxes.some(({ tags = [] }) => tags.includes("model.w")));
  assert.equal(picture.boxes.filter(({ kind }) => kind === "input").length, 1, "variables have no boxes");
});

test("of all versions in one no bytes are told, and groups count no ops", () => {
  const { state } = SIGHTS.find((one) => one.name === "five layers");
  const [first, ...others] = state.graphs;
  const groups = first.groups.map((group) => ({ ...group, size: 0, ops: 0 }));
  const all = { ...state, graphs: [{ ...first, groups, versions: true }, ...others] };
  const { picture, manner } = firstSight(all, 0, { width: 620, height: 400 });
  assert.deepEqual(saved(picture), []);
  assert.ok(picture.boxes.some(({ kind }) => kind === "group"));
  assert.deepEqual([...wordsIn(all, picture, manner).values()].filter(({ full }) => /\b0 ops|kept/.test(full)), []);
});

test("a repeat is one box; opened, it shows the first of its members, those that are open, and a box for the others", () => {
  const { state } = SIGHTS.find((one) => one.name === "repeated");
  const { groups } = state.graphs[0];
  const many = groups.findIndex(({ repeat }) => repeat);
  const shown = (...open) => visible(state.graphs, 0, (name) => ["g0", `g${many}`, ...open].includes(name), true).boxes;
  assert.ok(!firstSight(state, 0, { width: 700, height: 460 }).open?.has(`g${many}`));
  const [first, second, third] = groups[many].repeat.members;
  const inside = shown().filter(({ parent }) => parent === `g${many}`);
  assert.deepEqual(inside.map(({ name, more = 0 }) => [name, more]), [[`g${first}`, 0], [`g${second}`, 0], [`g${third}`, 10]]);
  assert.equal(wordsOf(state, inside[2]).title, "10 more");
  assert.deepEqual(shown(`g${third}`).filter(({ more }) => more).map(({ more }) => more), [9]);
});

test("rounds of an unrolled loop without groups: the first, and a box for the others", () => {
  const nodes = Array.from({ length: 300 }, (_, i) => ({ op: "exp", kind: "op", names: [`%${i}`], in: i ? [i - 1] : [], out: ["f32[2]"], group: 0 }));
  const groups = [{ label: "line 4 ×100", kind: "repeat", parent: -1, size: 300, repeat: { count: 100, period: 3 } }];
  const graph = { name: "f", inputs: [], outputs: [], groups, open: [], nodes };
  const { boxes, edges } = visible([graph], 0, () => true, true);
  assert.deepEqual(boxes.map(({ name, more = 0 }) => [name, more]).slice(5), [["n5", 0], ["g0+", 98]]);
  assert.ok(edges.has("n5>g0+"));
});

test("labels grow until they can be read, and are left out where they do not fit", () => {
  const label = { size: 12, characters: 10, width: 100, height: 30 };
  assert.equal(typeSize(label, 1), 12);
  assert.ok(typeSize(label, 0.7) > 12 && typeSize(label, 0.7) * 0.7 >= 10.5 - 1e-9);
  assert.equal(typeSize(label, 0.3), 0);
  assert.deepEqual([level(1), level(1.1), level(0.96)], [0, 0, 0]);
  assert.ok(level(0.5) < 0);
});

test("lines that have grown, or are left, stay within the middle of their box; the last goes where not all have room", () => {
  const [title, told] = [{ size: 12, y: 16 }, { size: 11, y: 30 }];
  const room = { top: 100, height: 33 };
  const at = (/** @type {number[]} */ ...types) => stacked([title, told].map((line, i) => ({ ...line, type: types[i] })), room).flatMap(({ type, y }) => (type ? [[type, Math.round(y)]] : []));
  assert.deepEqual(at(12, 11), [[12, 16], [11, 30]], "as they are");
  assert.deepEqual(at(12, 0), [[12, 121]], "alone in the middle");
  assert.deepEqual(at(15, 15), [[15, 114], [15, 130]]);
  assert.deepEqual(at(20, 18), [[20, 124]], "a title alone");
  assert.deepEqual(at(0, 18), [[18, 123]], "a number alone");
});

test("the bytes of a value", () => {
  assert.deepEqual(["f32[2,3]", "i64[]", "bool[8]", "f32[?,3]", "generator"].map(bytesOf), [24, 8, 8, UNSIZED, UNSIZED]);
});

test("the title of a fusion group is shortened before it is left out", () => {
  const title = { size: 11, full: "◉ fused 1: 3 ops in one go", short: "◉ fused 1", width: 190, height: 60 };
  assert.deepEqual(written(title, 1), { text: title.full, type: 11 });
  assert.equal(written(title, 0.6).text, title.short);
  assert.ok(written(title, 0.6).type * 0.6 >= 10.5 - 1e-9);
  assert.equal(written(title, 0.1).type, 0);
  assert.equal(written({ ...title, short: undefined }, 0.6).text, "◉ fused 1: 3 ops…");
});

test("a title is cut to its room before it is left out, a second line is not", () => {
  const title = { size: 12, full: "⊞ Adam: 10 variables, 2 rules", width: 216, height: 32 };
  assert.deepEqual(written(title, 1), { text: title.full, type: 12 });
  const { text, type } = written(title, 0.4);
  assert.equal(text, "⊞ Adam: 10 v…");
  assert.ok(type * 0.4 >= 10.5 - 1e-9);
  assert.equal(written(title, 0.1).type, 0);
  assert.deepEqual(written({ ...title, width: 0 }, 0.4), { text: title.full, type: 0 });
});

test("what two gradients read of a box is kept once, and told by its line alone", () => {
  const boxes = [["f", "forward", "net"], ["b", "backward", "net"], ["c", "backward", ""]].map(([name, lane, path], index) => ({ name, kind: "group", graph: 0, index, parent: "", lane, path }));
  const carried = new Map([["f>b", new Map([["7", 400], ["9", 5]])], ["f>c", new Map([["7", 400], ["8", 30]])]]);
  const edges = new Map([...carried].map(([key, values]) => [key, { source: "f", target: key[2], count: 1, bytes: [...values.values()].reduce((a, b) => a + b) }]));
  const picture = { boxes, frames: [], edges, carried };
  assert.deepEqual(saved(picture), [{ forward: "f", backward: "b", bytes: 435 }]);
  const state = { sources: [], graphs: [{ groups: boxes.map(({ name }) => ({ label: name, kind: "module", size: 3, parent: -1 })), nodes: [] }] };
  assert.equal(wordsIn(state, picture, { lanes: true }).get("c").detail, "3 ops");
  assert.equal(wordsIn(state, picture, {}).get("c").detail, "3 ops · 430 B kept");
});

test("ranks that are too wide take several rows, in which nothing comes before what it hangs on", () => {
  const boxes = Array.from({ length: 40 }, () => [100, 24]);
  const edges = Array.from({ length: 39 }, (_, box) => [0, box + 1]);
  assert.equal(layered(boxes, []).width, 40 * 116 - 16);
  assert.ok(layered(boxes, [], [], [], Infinity, 500).width <= 500);
  const rows = layered(boxes, edges, [], [], Infinity, 500);
  assert.ok(rows.width < layered(boxes, edges).width / 2); // with the ways of edges to the rows below
  assert.ok(edges.every(([a, b]) => rows.centres[a][1] < rows.centres[b][1]));
  assert.deepEqual(inRows([0, 1, 1, 1, 2], [[9, 9], [100, 9], [100, 9], [100, 9], [9, 9]], 200), [0, 1, 1, 2, 3]);
  assert.deepEqual(inRows([0, 2], [[9, 9], [9, 9]], 5), [0, 2]); // a box that is too wide is not cut, and no rank is lost
});

test("what was opened has about the shape of its room, whatever its edges take", async () => {
  const room = { width: 800, height: 480 };
  const asked = [];
  const layOut = async (manner) => (asked.push(manner), asked.length === 1 ? { width: 30000, height: 1500 } : { width: 9000, height: 5000 });
  const sizes = Array.from({ length: 600 }, () => [80, 40]);
  assert.deepEqual(await shaped(layOut, sizes, room, { lanes: true }), { width: 9000, height: 5000 });
  const [first, second] = asked;
  assert.equal(first.cross, undefined);
  assert.ok(second.lanes && Math.abs(second.limit - Math.sqrt(45e6 * 0.6)) < 1 && Math.abs(second.cross - second.limit / 0.6) < 1);
  assert.equal(await shaped(async () => null, sizes, room, {}), null); // something else is to be drawn by then
  const worse = await shaped(async ({ cross }) => (cross ? { width: 90000, height: 90000 } : { width: 30000, height: 1500 }), sizes, room, {});
  assert.deepEqual(worse, { width: 30000, height: 1500 });
});

test("edges that lead over to another lane take no room beside the boxes of their frames", () => {
  const layers = Array.from({ length: 30 }, (_, k) => k);
  const boxes = ["forward", "backward"].flatMap((lane) => layers.map((k) => ({ name: `${lane}${k}`, kind: "node", graph: 0, index: k, parent: `${lane} frame`, lane })));
  const frames = ["forward", "backward"].map((lane) => ({ name: `${lane} frame`, label: lane, parent: "", lane }));
  const edges = new Map();
  const join = (source, target) => edges.set(`${source}>${target}`, { source, target, count: 1 });
  for (const k of layers.slice(1)) join(`forward${k - 1}`, `forward${k}`), join(`backward${k}`, `backward${k - 1}`);
  for (const k of layers) join(`forward${k}`, `backward${k}`);
  const { frames: places } = draw({ boxes, frames, edges }, sizes({ boxes }), { lanes: true });
  for (const { name } of frames) assert.ok(places.get(name).width < 200, `${name}: ${places.get(name).width}`);
});
