// What keeps the page alive with large graphs: movements that draw nothing, work in turns, records as columns.

import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";

import { Camera } from "../src/graph/camera.js";
import { columnsOf } from "../src/graph/columns.js";
import { firstSight, sights } from "../src/graph/first-sight.js";
import { inTurns } from "../src/turns.js";
import { unpack } from "../src/wire.js";

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function element(more = {}) {
  const classes = new Set();
  const rectangle = () => ({ left: 0, top: 0, width: 400, height: 300 });
  return {
    attributes: {}, style: {}, classes, clientWidth: 400, clientHeight: 300, getBoundingClientRect: rectangle,
    classList: { add: (...all) => all.forEach((one) => classes.add(one)), remove: (...all) => all.forEach((one) => classes.delete(one)) },
    addEventListener: () => {}, setAttribute(name, value) { this.attributes[name] = value; }, ...more,
  };
}

function camera(large) {
  const [svg, stage, layer] = [element(), element(), element({ parentElement: element() })];
  const made = new Camera(svg, stage, layer, new AbortController().signal);
  made.apply();
  made.large = large;
  return { camera: made, stage, layer };
}

test("zooming moves what is painted of a large picture, which is drawn anew when it rests", async () => {
  const { camera: one, stage, layer } = camera(true);
  one.zoom(1.5, 100, 100);
  one.zoom(1.2, 100, 100);
  one.pan(10, 0);
  assert.equal(stage.attributes.transform, "translate(0,0) scale(1)");
  const [, x, y, by] = /translate\((.+)px,(.+)px\) scale\((.+)\)/.exec(layer.style.transform);
  assert.ok(Math.abs(Number(by) - 1.8) < 1e-9);
  assert.ok(Math.abs(100 * by + Number(x) - 110) < 1e-9 && Math.abs(100 * by + Number(y) - 100) < 1e-9); // the point under the pointer
  assert.deepEqual([...layer.classes], ["ll-sliding", "ll-zooming"]);
  await pause(400);
  assert.equal(layer.style.transform, "");
  assert.deepEqual([...layer.classes], []);
  assert.match(stage.attributes.transform, /scale\(1\.79999?\d*|scale\(1\.8/);
});

test("a small picture, and a large one that would be too blurred, is drawn anew at each step", () => {
  const small = camera(false);
  small.camera.zoom(1.5);
  assert.match(small.stage.attributes.transform, /scale\(1\.5\)/);
  const large = camera(true);
  large.camera.zoom(0.25);
  assert.match(large.stage.attributes.transform, /scale\(1\)/);
  large.camera.zoom(0.25);
  assert.match(large.stage.attributes.transform, /scale\(0\.0625\)/);
  assert.equal(large.layer.style.transform, "");
});

test("a view that is off the page for a while is taken to be as large as it was", () => {
  const { camera: one } = camera(true);
  one.measure();
  const before = one.sight();
  assert.deepEqual(before, { x: -0, y: -0, width: 400, height: 300 });
  Object.assign(one.svg, { clientWidth: 0, clientHeight: 0 });
  one.measure();
  assert.deepEqual(one.sight(), before);
});

test("the first sight comes in steps, to the same end, and can be left", async () => {
  const nodes = Array.from({ length: 300 }, (_, k) => ({ op: "tanh", kind: "op", names: [`%${k + 1}`], in: [k], out: ["f32[2]"], group: Math.floor(k / 30) }));
  const groups = Array.from({ length: 10 }, (_, k) => ({ label: `part ${k}`, kind: "module", parent: -1, size: 30 }));
  const graph = { name: "f", inputs: [{ name: "x", spec: "f32[2]" }], outputs: [300], nodes, groups, open: [] };
  const state = { title: "f", which: "traced", variants: [{ key: "traced", graph: 0 }], graphs: [graph], sources: [], rules: {} };
  const room = { width: 700, height: 460 };
  const sight = await inTurns(sights(state, 0, room), () => false);
  const { picture, ...rest } = firstSight(state, 0, room);
  assert.deepEqual({ ...sight, picture: null }, { ...rest, picture: null });
  assert.deepEqual(sight.picture.boxes, picture.boxes);
  let steps = 0;
  for (const _ of sights(state, 0, room)) steps += 1;
  assert.ok(steps >= 3);
  assert.equal(await inTurns(sights(state, 0, room), () => true), null);
});

test("columns of a graph", () => {
  const nodes = [
    { op: "read_variable", kind: "variable", names: ["%2"], in: [1], out: ["f32[2]"] },
    { op: "split", kind: "op", names: ["%3", "%4"], in: [0, 2], out: ["f32[1]", "f32[1]"], group: 0 },
    { op: "constant", kind: "constant", names: ["%5"], out: ["f32[]"], inline: true },
  ];
  const { makers, places, readers, reads, positions, groups, inline, folds } = columnsOf({ inputs: [{}, {}], nodes });
  assert.deepEqual([...makers], [-1, -1, 0, 1, 1, 2]);
  assert.deepEqual([...places], [0, 1, 0, 0, 1, 0]);
  assert.deepEqual([[...readers], [...reads], [...positions]], [[0, 1, 1], [1, 0, 2], [0, 0, 1]]);
  assert.deepEqual([[...groups], [...inline], [...folds]], [[-1, 0, -1], [0, 0, 1], [1, 0, 0]]);
});

test("long lists of records come as columns", async () => {
  const table = { "=table": [3, { op: [["tanh", "exp"], [0, 1, 0]], in: [[[0], [1], [2]], null], at: [[[1, 2]], null, [1]] }] };
  const parts = [deflateSync(JSON.stringify({ graphs: [{ nodes: table }] }))];
  const state = await unpack(parts.map((part) => new DataView(part.buffer, part.byteOffset, part.byteLength)));
  assert.deepEqual(state.graphs[0].nodes, [{ op: "tanh", in: [0] }, { op: "exp", in: [1], at: [1, 2] }, { op: "tanh", in: [2] }]);
});
