// A graph from version to version.

import assert from "node:assert/strict";
import test from "node:test";

import { arithmetic, fateOf, readsAt, textDiff } from "../src/graph/pass-slider.js";

const node = (op, name, inputs, more = {}) => ({ op, kind: "op", names: [name], out: ["f32[2]"], in: inputs, ...more });
const GRAPH = {
  inputs: [{ name: "x", spec: "f32[2]" }], outputs: [3], groups: [],
  nodes: [
    node("tanh", "%0", [0]), node("exp", "%1", [0]), node("exp", "%2", [0], { gone: 1 }),
    node("add", "%3", [2, 3], { ins: [[0, [2, 3]], [1, [2, 2]]] }), node("scale", "%4", [4], { born: 2 }),
  ],
};

test("a node is coming, added, kept, removed and past, in this order", () => {
  const life = { born: 1, gone: 3 };
  assert.deepEqual([0, 1, 2, 3, 4].map((stop) => fateOf(life, stop)), ["coming", "added", "kept", "removed", "past"]);
  assert.equal(fateOf({}, 0), "kept");
});

test("what a node reads is what it read at that stop", () => {
  assert.deepEqual([0, 1, 2].map((stop) => readsAt(GRAPH.nodes[3], stop)), [[2, 3], [2, 2], [2, 2]]);
  assert.deepEqual(readsAt(GRAPH.nodes[0], 1), [0]);
});

test("the arithmetic is said", () => {
  const stop = { name: "share", before: 4, removed: 1, added: 0, after: 3, changes: [] };
  assert.equal(arithmetic(stop, 1), "share: 4 − 1 + 0 = 3 ops");
  assert.equal(arithmetic({ ...stop, name: "traced", after: 4 }, 0), "traced: 4 ops");
});

test("as text, what went, what came and what reads something else, and the lines around", () => {
  assert.deepEqual(textDiff(GRAPH, 1), ["  %1 = exp(x)  f32[2]", "- %2 = exp(x)  f32[2]", "~ %3 = add(%1, %1)  f32[2]"]);
  assert.deepEqual(textDiff(GRAPH, 2), ["  %3 = add(%1, %1)  f32[2]", "+ %4 = scale(%3)  f32[2]"]);
  assert.equal(textDiff(GRAPH, 0).length, 4);
});
