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

test("a part whose script failed is begun anew the next time that it is put", async () => {
  const dashboard = ofOnePart();
  const put = dashboard.put("graph", element());
  dashboard.asked[0].fail();
  await tick();
  dashboard.asked[1].fail();
  await assert.rejects(put, /late/);
  dashboard.take("graph");
  const again = dashboard.put("graph", element());
  assert.equal(dashboard.asked.length, 3);
  dashboard.asked[2].come();
  await again;
  assert.deepEqual(dashboard.did, ["begun", "drawn"]);
});

test("the graph has the room that its bar and its messages leave, also when those come and go", () => {
  const bar = { offsetHeight: 60 };
  const message = { offsetHeight: 70 };
  const body = { style: { height: "" }, closest: () => ({ clientHeight: 400 }) };
  body.parentElement = { children: [bar, message, body] };
  const watched = [];
  const around = { observe: (one) => watched.push(one) };
  const dashboard = Object.assign(Object.create(Dashboard.prototype), { root: { querySelector: () => body }, around });
  dashboard.fill();
  assert.equal(body.style.height, "270px");
  assert.deepEqual(watched, [bar, message]);
  message.offsetHeight = 0; // there is a graph now
  dashboard.fill();
  assert.equal(body.style.height, "340px");
});

/** A page with one place beside the notebook, and what draws a kernel's dashboard there. */
async function kernelsOf(place) {
  const node = (name) => {
    const made = { name, children: [], dataset: {}, style: { setProperty() {} }, classList: { add() {}, toggle() {} }, listeners: {}, isConnected: true, clientWidth: 0, textContent: "" };
    Object.defineProperty(made, "firstChild", { get: () => made.children[0] });
    return Object.assign(made, {
      append: (...children) => made.children.push(...children), appendChild: (child) => made.children.push(child),
      replaceChildren: (...children) => { for (const old of made.children) old.isConnected = false; made.children = children; },
      remove: () => (made.isConnected = false), setAttribute() {}, addEventListener() {}, dispatchEvent() {}, querySelector: () => null, querySelectorAll: () => [],
      closest: (which) => (which === ".jp-NotebookPanel" ? { id: "notebook" } : null), contains: () => false,
    });
  };
  place.node = node("place");
  globalThis.Node = Object;
  globalThis.location = { pathname: "/lab" };
  globalThis.ResizeObserver = class { observe() {} };
  globalThis.document = { createElement: node, createElementNS: (_, name) => node(name), createTextNode: (text) => text, activeElement: null, dispatchEvent: ({ detail }) => (detail.place = place) };
  const { default: lent } = await import("../src/views/dashboard.js");
  class Store { show() {} }
  return () => {
    const heard = {};
    const model = { get: () => "", on: (name, told) => (heard[name] = told), off() {}, send() {} };
    const view = lent().initialize().view(Store);
    view.initialize({ model });
    return { heard, render: () => view.render({ el: node("output"), signal: new AbortController().signal, host: {} }) };
  };
}

test("the dashboard of an old kernel that ends late leaves that of the new one alone", async () => {
  const place = { path: "a.ipynb", move() {}, show() {}, close() {} };
  const kernel = await kernelsOf(place);
  const said = () => JSON.stringify(place.node.children.map(({ children }) => children.flatMap((one) => one.children)));
  const [old, young] = [kernel(), kernel()];
  await old.render();
  await young.render();
  const drawn = place.node.firstChild;
  old.heard.destroy();
  assert.equal(place.node.firstChild, drawn);
  young.heard.destroy();
  assert.match(said(), /The kernel has gone/);
});
