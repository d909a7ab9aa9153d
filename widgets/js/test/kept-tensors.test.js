// What is kept for the backward pass, and of which boxes.

import assert from "node:assert/strict";
import test from "node:test";

import { keptOf, nodesOf } from "../src/graph/kept-tensors.js";

const node = (lane, names, specs, inputs, group) => ({ op: names[0], kind: "op", lane, names, out: specs, in: inputs, group });
const GRAPH = {
  inputs: [{ name: "x", spec: "f32[4]" }], outputs: [3],
  groups: [{ label: "a", kind: "module", parent: -1, size: 2 }, { label: "b", kind: "module", parent: 0, size: 1 }],
  nodes: [
    node("forward", ["%1"], ["f32[4]"], [0], 0), node("forward", ["%2"], ["f32[1000]"], [1], 1),
    node("loss", ["%3"], ["f32[]"], [2]), node("backward", ["%4"], ["f32[1000]"], [2, 0]), node("backward", ["%5"], ["f32[4]"], [1, 2]),
  ],
};

test("tensors that the backward pass reads are listed, heaviest first, with their readers", () => {
  const kept = keptOf(GRAPH, [0, 1, 2]);
  assert.deepEqual(kept.map(({ name, bytes, readers }) => [name, bytes, readers]), [["%2", 4000, [3, 4]], ["%1", 16, [4]]]);
});

test("a group has those of the groups in it; inputs and what backward makes are none", () => {
  assert.deepEqual(nodesOf(GRAPH, { kind: "group", index: 0 }), [0, 1]);
  assert.deepEqual(keptOf(GRAPH, nodesOf(GRAPH, { kind: "node", index: 3 })), []);
  assert.deepEqual(keptOf(GRAPH, nodesOf(GRAPH, { kind: "input", index: 0 })), []);
});

test("of all versions in one nothing is kept: one reads this, the other that", () => {
  assert.deepEqual(keptOf({ ...GRAPH, versions: true }, [0, 1, 2]), []);
});
