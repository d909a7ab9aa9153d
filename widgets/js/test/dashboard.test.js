// The dashboard's parts, whatever comes between their scripts being asked for and being there.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Dashboard } from "../src/dashboard/dashboard.js";

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));

/** As much of an element as a part has. */
function element() {
  const made = { children: [], contains: (one) => made.children.includes(one), append: (one) => made.children.push(one), remove() {} };
  return made;
}

/** A dashboard of one part, and the script of that, which comes when `come` is called, or fails at first. */
function ofOnePart() {
  globalThis.document = { createElement: () => ({ ...element(), setAttribute() {}, classList: { add() {} } }) };
  const did = [];
  const asked = [];
  const view = () => (did.push("begun"), { initialize: () => {}, render: async ({ signal }) => did.push(signal.aborted ? "drawn for nobody" : "drawn") });
  const host = { getWidget: () => new Promise((resolve, reject) => asked.push({ come: () => resolve({ exports: { view } }), fail: () => reject(new Error("late")) })) };
  const dashboard = Object.assign(Object.create(Dashboard.prototype), { model: { get: () => "", on() {}, send() {} }, host, parts: new Map(), state: null, Store: null });
  return Object.assign(dashboard, { fill() {}, tell() {}, did, asked });
}

test("a part that is taken and put again while its script is on its way begins once", async () => {
  const dashboard = ofOnePart();
  const pane = element();
  dashboard.put("graph", pane);
  dashboard.take("graph");
  dashboard.put("graph", pane);
  dashboard.asked.forEach(({ come }) => come());
  await tick();
  assert.deepEqual(dashboard.did, ["begun", "drawn"]);
});

test("a script that does not come in time is asked for once more", async () => {
  const dashboard = ofOnePart();
  dashboard.put("graph", element());
  dashboard.asked[0].fail();
  await tick();
  dashboard.asked[1].come();
  await tick();
  assert.deepEqual(dashboard.did, ["begun", "drawn"]);
});
