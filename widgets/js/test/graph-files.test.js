// Graphs as text: the same as Python writes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { asJson, dot, listing, modelExplorer } from "../src/graph/graph-files.js";

const { graphs: EXAMPLES } = JSON.parse(readFileSync(new URL("examples.json", import.meta.url), "utf8"));

for (const { name, state, files } of EXAMPLES) {
  test(`${name}: the same files as in Python`, () => {
    const titled = { ...state, title: name };
    assert.equal(dot(titled, 0), files.dot);
    assert.equal(modelExplorer(titled, 0), files.model_explorer);
    assert.equal(listing(titled, 0), files.listing);
  });
}

test("JSON says what it is, and which version is meant", () => {
  const { schema, version, title } = JSON.parse(asJson({ ...EXAMPLES[0].state, title: "f" }, "traced"));
  assert.deepEqual([schema, version, title], ["limelight-graph/1", "traced", "f"]);
});
