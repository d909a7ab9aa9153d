// What a graph view does with the states that it gets, without a page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { onKey } from "../src/graph/keyboard.js";
import { Outline } from "../src/graph/outline.js";
import { roomOf, rooms, tallest } from "../src/graph/room.js";
import { GraphView } from "../src/graph/view.js";

/** A view that has shown nothing yet, and draws nothing. */
function unseen() {
  const view = Object.create(GraphView.prototype);
  const nothing = { given: null, state: null, variant: "", whole: "", wanted: "", overlay: "", line: null, drawn: Promise.resolve() };
  return Object.assign(view, nothing, { forget() {}, say() {}, drawHead() {}, placed: () => new Promise(() => {}), onWhole() {} });
}

test("a trace that runs is seen as it is traced, and once it is whole as was asked for", () => {
  const view = unseen();
  const common = { title: "f", which: "optimised", graphs: [], sources: [], rules: {} };
  view.show({ ...common, variants: [{ key: "traced", graph: 0 }], running: true });
  assert.equal(view.variant, "traced");
  const whole = { ...common, variants: [{ key: "traced", graph: 0 }, { key: "optimised", graph: 1 }] };
  view.show(whole);
  assert.equal(view.variant, "optimised");
  view.variant = "traced"; // the reader's choice
  view.show({ ...whole });
  assert.equal(view.variant, "traced");
});

test("after a trace that failed the version is that which was shown before", () => {
  const view = unseen();
  const common = { title: "f", which: "optimised", graphs: [], sources: [], rules: {} };
  const whole = { ...common, variants: [{ key: "traced", graph: 0 }, { key: "optimised", graph: 1 }] };
  const partial = { ...common, variants: [{ key: "traced", graph: 0 }] };
  for (const variant of ["optimised", "traced"]) {
    view.show({ ...whole });
    view.variant = variant;
    view.show({ ...partial, running: true });
    view.show({ ...partial, failed: { node: 0, error: "ShapeError" } });
    assert.equal(view.variant, "traced");
    view.show({ ...whole });
    assert.equal(view.variant, variant);
  }
});

test("what follows on the version that is shown leaves all as the reader has it", async () => {
  const view = Object.assign(unseen(), { looking: 0, opened: new Map([["g0", true]]), chosen: "n1", forgotten: 0 });
  Object.assign(view, { forget() { view.forgotten += 1; }, drawCount() {}, highlight() {}, pictureOf: () => "whole" });
  const common = { title: "f", which: "optimised", sources: [], rules: {} };
  view.show({ ...common, graphs: ["b"], variants: [{ key: "optimised", graph: 0 }], described: "1:1", waiting: "traced", soon: true });
  view.sight = { picture: "part", scale: 1 };
  const history = { graph: 2, stops: [] };
  const whole = { ...common, graphs: ["a", "b", "c"], variants: [{ key: "traced", graph: 0 }, { key: "optimised", graph: 1 }], described: "1:2", completes: "1:1", history };
  view.show(whole);
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual([view.variant, view.chosen, view.opened.get("g0"), view.graph], ["optimised", "n1", true, 1]);
  assert.deepEqual(view.sight, { picture: "whole", scale: 1 });
  assert.deepEqual(view.state.variants.map(({ key }) => key), ["traced", "optimised", "history"]);
  assert.equal(view.forgotten, 1); // of the first
  view.show({ ...whole, described: "1:4", completes: "1:3" }); // of another trace
  assert.equal(view.forgotten, 2);
});

test("what is opened while the rest of a graph comes is drawn to its end", async () => {
  const view = Object.assign(unseen(), { looking: 0, drawCount() {}, highlight() {}, pictureOf: () => "opened" });
  const common = { title: "f", which: "optimised", sources: [], rules: {} };
  view.show({ ...common, graphs: ["b"], variants: [{ key: "optimised", graph: 0 }], described: "1:1", waiting: "traced", soon: true });
  const part = view.state;
  view.sight = { picture: "closed", scale: 1 };
  const drawn = [];
  const ends = [];
  view.draw = async () => {
    const { state } = view;
    await new Promise((resolve) => ends.push(resolve));
    if (state === view.state) drawn.push(state.described);
  };
  const opening = view.redraw();
  const whole = { ...common, graphs: ["a", "b"], variants: [{ key: "traced", graph: 0 }, { key: "optimised", graph: 1 }], described: "1:2", completes: "1:1" };
  view.show(whole);
  view.show({ ...whole, label: "trace #1", revision: 2 }); // sent anew while that waits
  const again = view.redraw(); // and the reader opens more
  let isOpened = false;
  opening.then(() => (isOpened = true));
  ends[0]();
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual([view.state, isOpened], [part, false], "the second drawing took the place of the first");
  ends[1]();
  await Promise.all([opening, again]);
  assert.deepEqual(drawn, ["1:1", "1:1"]);
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual([view.state.described, view.state.label, view.sight.picture], ["1:2", "trace #1", "opened"]);
});

test("another trace that comes before the rest of a graph is what is shown", async () => {
  const view = Object.assign(unseen(), { looking: 0 });
  const common = { title: "f", which: "optimised", graphs: ["b"], sources: [], rules: {}, variants: [{ key: "optimised", graph: 0 }] };
  view.show({ ...common, described: "1:1", waiting: "traced", soon: true });
  Object.assign(view, { sight: { picture: "part", scale: 1 }, drawn: new Promise((resolve) => setTimeout(resolve)) });
  view.show({ ...common, described: "1:2", completes: "1:1" });
  view.show({ ...common, described: "1:3" });
  await view.drawn;
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(view.state.described, "1:3");
});

test("a picture that gets another room while all of it is being opened is laid out for that room as a whole", () => {
  const view = Object.assign(unseen(), { opened: new Map([["g0", true]]), spread: true, redraw() {} });
  view.lookAgain();
  assert.equal(view.spread, true);
  view.opened.set("g0", false);
  view.lookAgain();
  assert.equal(view.spread, false, "all was closed again");
});

test("opening and closing all is said once it is drawn", async () => {
  const said = [];
  const graph = { inputs: [], outputs: [], groups: [{ parent: -1 }], nodes: [{ group: 0 }] };
  const view = Object.assign(unseen(), { opened: new Map(), state: { graphs: [graph], variants: [{ key: "", graph: 0 }] }, choose() {} });
  Object.assign(view, { async redraw() { said.push("drawn"); }, say: (text) => said.push(text) });
  await view.openAll(true);
  await view.openAll(false);
  assert.deepEqual(said, ["drawn", "1 group or function opened", "drawn", "all groups and functions closed"]);
});

test("until another graph is drawn, no boxes of the last one are there, whose nodes it does not have", () => {
  const view = Object.assign(unseen(), { results: { renew() {} }, layouts: { forget() {} }, opened: new Map(), forget: GraphView.prototype.forget });
  const common = { title: "f", which: "traced", sources: [], rules: {}, variants: [{ key: "traced", graph: 0 }] };
  view.show({ ...common, graphs: [{ nodes: [] }, { nodes: [{ op: "exp" }] }] });
  view.picture = { boxes: [{ name: "n0.0/n0", kind: "node", graph: 1, index: 0 }], frames: [], edges: new Map() };
  view.show({ ...common, graphs: [{ nodes: [] }], failed: { node: 0, error: "" } });
  assert.equal(view.box("n0.0/n0"), null);
});

test("a version that the reader waits for is shown once it has come", () => {
  const shown = [];
  const view = Object.assign(unseen(), { switchTo: (key) => shown.push(key) });
  const common = { title: "f", which: "optimised", graphs: ["b"], sources: [], rules: {} };
  view.show({ ...common, variants: [{ key: "optimised", graph: 0 }], described: "1:1", waiting: "traced" });
  view.ask("traced");
  view.show({ ...common, variants: [{ key: "traced", graph: 0 }, { key: "optimised", graph: 1 }], described: "1:2", completes: "1:1" });
  assert.deepEqual(shown, ["traced"]);
});

test("of the other version all is open where all of this one is, and what was said of this one is over", async () => {
  const said = [];
  const graph = { inputs: [], outputs: [], groups: [{ parent: -1 }], nodes: [{ group: 0 }] };
  const variants = [{ key: "traced", graph: 0 }, { key: "optimised", graph: 1 }];
  const view = Object.assign(unseen(), { opened: new Map(), state: { graphs: [graph, graph], variants, waiting: "" }, variant: "optimised" });
  const parts = { choose() {}, async redraw() {}, say: (text) => said.push(text), forget: GraphView.prototype.forget };
  Object.assign(view, parts, { layouts: { forget() {} }, results: { renew() {} } });
  await view.switchTo("traced");
  assert.deepEqual([view.variant, [...view.opened.values()]], ["traced", []]);
  await view.openAll(true);
  await view.switchTo("optimised");
  assert.deepEqual([view.variant, view.spread, [...view.opened.values()]], ["optimised", true, [true]]);
  view.opened.set("g0", false);
  await view.switchTo("traced");
  assert.deepEqual([view.spread, [...view.opened.values()]], [false, []], "all was closed");
  assert.deepEqual(said, ["", "1 group or function opened", "", "1 group or function opened", ""]);
});

/** As much of an element as a count has. */
const element = () => ({ replaceChildren(...parts) { this.textContent = parts.map(({ text }) => text).join(""); } });

test("the number of ops is told once", () => {
  globalThis.Node = class {};
  globalThis.document = { createElement: () => ({ text: "", appendChild(part) { this.text += part; }, setAttribute() {} }), createTextNode: (text) => text };
  const view = Object.assign(unseen(), { picture: { boxes: [] }, bar: { count: element() } });
  const graph = { name: "f", inputs: [], outputs: [], groups: [], open: [], nodes: [{ op: "exp", kind: "op", names: ["%1"] }, { op: "matmul", kind: "error", names: [] }] };
  view.drawCount({ graphs: [graph] }, 0);
  assert.equal(view.bar.count.textContent, "2 ops");
  view.drawCount({ graphs: [graph], failed: { node: 1, error: "ShapeError" } }, 0);
  assert.equal(view.bar.count.textContent, "", "the label tells after how many ops it failed");
  view.variant = "history";
  view.drawCount({ graphs: [graph] }, 0);
  assert.equal(view.bar.count.textContent, "", "the slider tells how many each version has");
});

test("a part of a pixel makes no other room, for which all would be found out again", () => {
  globalThis.window = { innerHeight: 720 };
  const within = (enlarged) => roomOf({ body: { clientWidth: 846, clientHeight: 460, style: { height: "" } }, height: "", camera: { enlarged: () => enlarged } });
  assert.equal(within(846.5 / 846), within(1));
  assert.notEqual(within(1.4), within(1));
  delete globalThis.window;
});

/** A view in a page of so many pixels of height, of which a scrolled pane shows so many at once. */
function within(pane, more = {}) {
  globalThis.window = { innerHeight: 720 };
  globalThis.getComputedStyle = ({ overflowY }) => ({ overflowY });
  globalThis.document = { body: null };
  const cell = { overflowY: "visible", parentElement: { overflowY: "auto", clientHeight: pane } };
  return { root: { parentElement: cell }, body: { clientWidth: 846, clientHeight: 460, style: { height: "" } }, height: "", ...more };
}

test("a picture is as high as can be seen with its bar and foot, without scrolling", () => {
  assert.equal(tallest(within(599)), 515); // JupyterLab's bars leave that of 720 pixels
  assert.equal(tallest(within(2000)), 576); // a share of the window
  assert.equal(tallest(within(300)), 400); // where it must be scrolled in any case
  assert.equal(tallest(within(599, { high: true })), 720);
  assert.equal(tallest(within(599, { camera: { enlarged: () => 1.4 } })), 343); // for a projector
});

test("an output that scrolls is as high as the view, and says nothing of its room", () => {
  const view = within(599);
  const output = { overflowY: "auto", clientHeight: 300, parentElement: view.root.parentElement };
  assert.equal(tallest({ ...view, root: { parentElement: output } }), 515);
});

test("below a cell on a low screen a small graph opens as it can be read there, a larger one takes the height for it", async () => {
  const op = (/** @type {string} */ name) => (_, id) => ({ op: name, kind: "op", in: [id], names: [`%${id}`], out: ["f32[16,20]"] });
  const opens = async (ops, name = "multiply") => {
    const classList = { toggle() {} };
    const view = Object.assign(unseen(), within(599), { variant: "traced", looking: 0 });
    Object.assign(view.body, { clientWidth: 1098, classList });
    globalThis.getComputedStyle = ({ overflowY }) => ({ overflowY, maxBlockSize: "280px" });
    const graph = { name: "f", inputs: [{ name: "x", spec: "f32[16,20]" }], outputs: [ops], groups: [], open: [], nodes: Array.from({ length: ops }, op(name)) };
    view.state = { graphs: [graph], variants: [{ key: "traced", graph: 0 }], rules: {} };
    const { scale, drawing } = await view.look(view.state, 0);
    assert.equal(scale, 1);
    return drawing.height;
  };
  assert.ok(await opens(6) <= 256);
  assert.ok(await opens(40) > 256);
  assert.ok(await opens(30, "multiply_and_accumulate_in_place") > 256, "small, but too wide for the low room");
});

test("what failed leaves room for what is said of it", () => {
  const [whole] = rooms(within(599, { state: { failed: undefined } }));
  const [beside] = rooms(within(599, { state: { failed: { node: 1, error: "" } } }));
  assert.ok(beside.width < whole.width && beside.height === whole.height);
  const narrow = { clientWidth: 470, clientHeight: 240, style: { height: "240px" } };
  const [below] = rooms(within(599, { body: narrow, state: { failed: { node: 1, error: "" } } }));
  assert.ok(below.width === 446 && Math.abs(below.height - 108) < 1e-9);
});

test("a picture whose groups were all closed, or that begins in an empty corner, is shown where its boxes are", () => {
  const calls = [];
  const camera = { measure() {}, onMove() {}, fit: (_, least) => calls.push(least === undefined ? "whole" : "beginning"), reveal: ({ x }) => calls.push(`to ${x}`) };
  const drawing = { width: 5000, boxes: new Map([["i0", { x: 2400 }]]), frames: new Map() };
  const view = Object.assign(unseen(), { camera, drawing, svg: { clientWidth: 800 }, body: { clientWidth: 800 }, state: {}, picture: { boxes: [{ name: "i0" }] } });
  Object.assign(view, { fitted: true, spread: false, opened: new Map([["g0", false]]), looked: "another room" });
  view.refit();
  assert.deepEqual(calls, ["whole"]);
  view.opened.set("g0", true);
  view.refit(); // the reader's own
  assert.deepEqual(calls, ["whole"]);
  view.spread = true;
  view.fit();
  assert.deepEqual(calls, ["whole", "beginning", "to 2400"]);
});

test("a group that is opened by a key may move, for the view to be full; one under the pointer stays", async () => {
  const calls = [];
  const camera = { settle: () => calls.push("settled"), fill: () => calls.push("filled") };
  const drawing = { boxes: new Map(), frames: new Map() };
  const view = Object.assign(unseen(), { camera, drawing, opened: new Map(), picture: { boxes: [], frames: [] }, redraw: async () => {}, grow() {} });
  Object.assign(view, { choose: () => calls.push("chosen"), box: () => ({ opens: true }), chosen: "g0" });
  globalThis.document = { activeElement: null };
  await view.toggle("g0");
  assert.deepEqual(calls.splice(0), ["settled", "chosen"]);
  onKey(view, { key: "Enter", preventDefault() {}, stopPropagation() {} });
  await new Promise((done) => setTimeout(done));
  assert.deepEqual(calls, ["settled", "filled", "chosen"]);
  delete globalThis.document;
});

test("one box is one", () => {
  const outline = Object.assign(Object.create(Outline.prototype), { summary: {}, list() {} });
  const said = (/** @type {number} */ count) => (outline.draw({ boxes: new Array(count) }, new Map()), outline.summary.textContent);
  assert.deepEqual([1, 1200].map(said), ["Outline: 1 box", "Outline: 1,200 boxes"]);
});

test("who moves the picture while its new room is waited for keeps it where it was moved", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  globalThis.window = { innerHeight: 720 };
  const fits = [];
  const camera = { touched: false, enlarged: () => 1, measure() {}, onMove() {}, fit: () => fits.push("whole") };
  const view = Object.assign(unseen(), { camera, drawing: { width: 500 }, svg: { clientWidth: 800 }, body: { clientWidth: 800, classList: { toggle() {}, remove() {} }, style: {} } });
  const looks = [];
  Object.assign(view, { state: {}, fitted: true, spread: false, opened: new Map(), looked: "another room", redraw: () => looks.push("again"), grow() {} });
  view.refit();
  camera.touched = true; // zoomed out
  t.mock.timers.tick(100);
  assert.deepEqual(looks, []);
  camera.touched = false;
  view.refit();
  t.mock.timers.tick(100);
  assert.deepEqual([looks, view.fitted], [["again"], false]);
  camera.touched = true; // while the first sight is found out
  view.present();
  assert.deepEqual([fits, view.fitted], [[], true]);
});
