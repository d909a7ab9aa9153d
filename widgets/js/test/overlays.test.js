// What overlays tell on boxes: the same as in Python.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { written } from "../src/graph/labels.js";
import { legend, OVERLAYS, told, toldLabel } from "../src/graph/overlays.js";

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
  assert.ok(legend(state, 0, "time").endsWith("not measured. To run a call and measure its ops, write %graph f(‹arguments›) --overlay time, with the call's own for ‹arguments›"));
  assert.ok(legend({ ...state, staged_cell: true }, 0, "nan").endsWith("To run the cell and measure its ops, write %graph f --overlay nan"));
  const box = { name: "n0", kind: "node", graph: 0, index: 0, parent: "" };
  assert.deepEqual(told(state, [box], "time").get("n0"), { text: "not measured", share: null });
});

test("norms have no powers of ten where three digits say as much, and no word where there is none", () => {
  const said = (/** @type {any} */ norm) => {
    const nodes = [{ op: "add", kind: "op", names: [], lane: "backward", cost: [0, 0, 0, norm, 4] }];
    const state = { title: "f", sources: [], graphs: [{ inputs: [], outputs: [], groups: [], nodes }] };
    return told(state, [{ name: "n0", kind: "node", graph: 0, index: 0, parent: "" }], "grad").get("n0").text;
  };
  assert.deepEqual([26.412, 12.25, 1, 0, 0.00345, 9999.9, 1e4, 1.5e-7, "inf", null].map(said), ["norm 26.4", "norm 12.3", "norm 1", "norm 0", "norm 0.00345", "norm 10000", "norm 1.00e+4", "norm 1.50e-7", "norm ∞", ""]);
});

test("a bar keeps its number while the picture gets smaller", () => {
  const numbers = [1, 0.8, 0.6].map((scale) => written(toldLabel("norm 26.4", 80), scale));
  assert.deepEqual(numbers.map(({ text, type }) => [text, Math.round(type)]), [["norm 26.4", 11], ["norm 26.4", 13], ["26.4", 18]]);
  assert.equal(written(toldLabel("norm 26.4", 30), 0.6).type, 0, "none that is cut");
});

test("the legend tells the heaviest box, whose number may have no room", () => {
  const found = told(overlays.state, overlays.boxes, "bytes");
  const heaviest = [...found.values()].find(({ share }) => share === 1).text;
  assert.ok(legend(overlays.state, 0, "bytes", found).endsWith(`The bar is the share of the heaviest box, ${heaviest}.`));
});
