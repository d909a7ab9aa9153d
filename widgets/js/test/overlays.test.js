// What overlays tell on boxes: the same as in Python.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { legend, OVERLAYS, told } from "../src/graph/overlays.js";

const { overlays } = JSON.parse(readFileSync(new URL("examples.json", import.meta.url), "utf8"));

test("there are the same overlays as in Python", () => {
  assert.deepEqual(Object.keys(OVERLAYS), Object.keys(overlays.said));
});

for (const [kind, { boxes, legend: said }] of Object.entries(overlays.said)) {
  test(`${kind}: the same words, shares and legend as in Python`, () => {
    const found = [...told(overlays.state, overlays.boxes, kind)];
    assert.deepEqual(found.map(([name, { text }]) => [name, text]), Object.entries(boxes).map(([name, [text]]) => [name, text]));
    for (const [name, { share }] of found) {
      if (boxes[name][1] === null) assert.equal(share, null);
      else assert.ok(Math.abs(share - boxes[name][1]) < 1e-9, `${name}: ${share}`);
    }
    assert.equal(legend(overlays.state, 0, kind), said);
  });
}

test("what was not measured says so, and how to measure it", () => {
  const state = { title: "f", sources: [], graphs: [{ inputs: [], outputs: [], groups: [], nodes: [{ op: "add", kind: "op", names: [] }] }] };
  assert.match(legend(state, 0, "time"), /not measured.*%graph f\(\.\.\.\) --overlay time/);
  const box = { name: "n0", kind: "node", graph: 0, index: 0, parent: "" };
  assert.deepEqual(told(state, [box], "time").get("n0"), { text: "not measured", share: null });
});
