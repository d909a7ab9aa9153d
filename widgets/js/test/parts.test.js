import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";

import { bytes, counted, joinedArrows, lineText, number, seconds, shortened } from "../src/format.js";
import { LayoutQueue } from "../src/layout-worker/layout-queue.js";
import { mathTree } from "../src/maths.js";
import { replace, Store } from "../src/store.js";
import { line, momentAt } from "../src/tables/sparkline.js";
import { called, merged } from "../src/tables/cache-rows.js";
import { extend, filtered, oneLine } from "../src/tables/tape-rows.js";
import { moved, range, scrolledTo } from "../src/tables/virtual-list.js";
import { unpack } from "../src/wire.js";

globalThis.requestAnimationFrame = (draw) => setTimeout(draw, 0);
const tick = () => new Promise((resolve) => setTimeout(resolve, 0));

/** Waits until a store has taken in all it has heard, and drawn it. */
async function settled(store) {
  await store.ready;
  while (store.frame) await tick();
}
const packed = (state, ...buffers) => [deflateSync(JSON.stringify(state)), ...buffers].map((part) => new DataView(part.buffer, part.byteOffset, part.byteLength));

test("numbers in the same words as in Python", () => {
  const { format } = JSON.parse(readFileSync(new URL("examples.json", import.meta.url), "utf8"));
  for (const [number, text] of format.bytes) assert.equal(bytes(number), text);
  for (const [number, text] of format.seconds) assert.equal(seconds(number), text);
  for (const [given, text] of format.counted) assert.equal(counted(...given), text);
  for (const [given, text] of format.shortened) assert.equal(shortened(...given), text);
});

test("imports run one way: no file leads back to itself", () => {
  const root = fileURLToPath(new URL("../src", import.meta.url));
  const names = readdirSync(root, { recursive: true }).filter((name) => name.endsWith(".js"));
  const imported = (name) => {
    const found = readFileSync(join(root, name), "utf8").matchAll(/^import [^;]*from "(?:inline-worker:)?(\.[^"]+)";/gm);
    return [...found].map(([, path]) => relative(root, join(root, dirname(name), path)));
  };
  const arrows = new Map(names.map((name) => [name, imported(name)]));
  assert.ok([...arrows.values()].flat().length > 50, "the imports were found");
  for (const start of names) {
    const reached = new Set(arrows.get(start));
    for (const name of reached) for (const next of arrows.get(name)) reached.add(next);
    assert.ok(!reached.has(start), start);
  }
});

test("numbers as people read them", () => {
  assert.deepEqual([40, 31_360, 1e6, 999_600, null].map(bytes), ["40 B", "31.4 kB", "1 MB", "1 MB", "–"]);
  assert.deepEqual([0.0381, 4.2e-6, 12, undefined].map(seconds), ["38.1 ms", "4.2 µs", "12 s", "–"]);
  assert.deepEqual([counted(1, "entry", "entries"), counted(1200, "entry", "entries")], ["1 entry", "1,200 entries"]);
  assert.deepEqual([0, 999, 1000, 12345, 999999, 1234567, -1234, -123].map(number), ["0", "999", "1,000", "12,345", "999,999", "1,234,567", "-1,234", "-123"]);
  assert.equal(shortened("a long name", 7), "a long…");
  assert.equal(lineText(["In[3]", 4, "x"]), "In[3]:4");
});

test("arrows stay with what they connect, but for those of annotations", () => {
  const { arrows } = JSON.parse(readFileSync(new URL("examples.json", import.meta.url), "utf8")).format;
  assert.ok(arrows.some(([given, text]) => given !== text));
  for (const [given, text] of arrows) assert.equal(joinedArrows(given), text);
});

test("states from the wire, with numbers as floats", async () => {
  const floats = new Float32Array([1.5, 2.5]);
  const odd = new Uint8Array(9);
  odd.set(new Uint8Array(floats.buffer), 1); // a view that does not begin at a multiple of four
  const parts = packed({ history: { buffer: 1 }, name: "</script>", other: { buffer: 2, more: 1 } });
  parts.push(new DataView(odd.buffer, 1, 8));
  const state = await unpack(parts);
  assert.deepEqual([...state.history], [1.5, 2.5]);
  assert.equal(state.name, "</script>");
  assert.deepEqual(state.other, { buffer: 2, more: 1 });
});

function fakeModel(snapshot) {
  const model = { sent: [], hear: null, get: () => snapshot, off: () => {} };
  model.send = (message) => model.sent.push(message);
  model.on = (_name, callback) => (model.hear = callback);
  return model;
}

test("a view is drawn at once and after updates, in their order, and answers when asked", async () => {
  const model = fakeModel(packed({ n: 0 }));
  const store = new Store(model, replace);
  const drawn = [];
  const closing = new AbortController();
  await store.show((state) => drawn.push(state.n), closing.signal);
  for (let n = 1; n <= 5; n++) model.hear({ type: "update", number: n, answer: n === 4 }, packed({ n }));
  await settled(store);
  assert.equal(drawn[0], 0);
  assert.equal(drawn.at(-1), 5);
  assert.deepEqual(model.sent.map(({ type, number }) => [type, number]), [["opened", 0], ["seen", 4]]);
  closing.abort();
  assert.equal(model.sent.at(-1).type, "closed");
});

test("several views of one model close together", async () => {
  const model = fakeModel(packed({}));
  const store = new Store(model);
  const [first, second] = [new AbortController(), new AbortController()];
  await store.show(() => {}, first.signal);
  await store.show(() => {}, second.signal);
  first.abort();
  assert.ok(!model.sent.some(({ type }) => type === "closed"));
  second.abort();
  assert.ok(model.sent.some(({ type }) => type === "closed"));
});

test("an update that does not follow asks for everything", async () => {
  const model = fakeModel(packed({ from: 0, rows: [[0]] }));
  const store = new Store(model, extend);
  await store.show(() => {}, new AbortController().signal);
  model.hear({ type: "update", number: 7, answer: false }, packed({ from: 5, rows: [[5]] }));
  await settled(store);
  assert.deepEqual(model.sent.map(({ type, number }) => [type, number]), [["opened", 0], ["opened", -1]]);
  assert.equal(store.state.rows.length, 1);
});

test("what is under way when the last view closes is not answered: the kernel would take that for a reader", async () => {
  const model = fakeModel(packed({ from: 0, rows: [[0]] }));
  const store = new Store(model, extend);
  const closing = new AbortController();
  await store.show(() => {}, closing.signal);
  model.hear({ type: "update", number: 4, answer: true }, packed({ from: 1, rows: [[1]] }));
  model.hear({ type: "update", number: 5, answer: false }, packed({ from: 9, rows: [[9]] }));
  closing.abort();
  await settled(store);
  assert.deepEqual(model.sent.map(({ type }) => type), ["opened", "closed"]);
});

test("rows are added, or replaced when they start anew", () => {
  const state = { from: 0, rows: [[0], [1]], saved: 1 };
  assert.deepEqual(extend(state, { from: 2, rows: [[2]], saved: 9 }), { from: 2, rows: [[0], [1], [2]], saved: 9 });
  assert.deepEqual(extend(state, { from: 1, rows: [] }).rows, [[0]]);
  assert.deepEqual(extend(state, { from: 0, rows: [[7]] }).rows, [[7]]);
  assert.equal(extend(state, { from: 3, rows: [] }), null);
});

test("of a trace cache an update has the functions that changed, and numbers for entries that did not", () => {
  const row = (index, hits) => ({ index, hits });
  const state = merged(null, { functions: [{ id: 7, hits: 3, entries: [row(0, 1), row(1, 2)] }, { id: 9, hits: 0, entries: [] }], newest: null });
  const next = merged(state, { order: [7, 9, 11], functions: [{ id: 7, hits: 4, entries: [0, row(1, 3)] }, { id: 11, hits: 0, entries: [row(0, 0)] }], newest: [11, 0] });
  assert.deepEqual(next.functions.map(({ id, entries }) => [id, entries.map(({ hits }) => hits)]), [[7, [1, 3]], [9, []], [11, [0]]]);
  assert.deepEqual(next.newest, [11, 0]);
  assert.equal(merged(next, { order: [7, 9], functions: [{ id: 7, hits: 4, entries: [5] }] }), null, "an entry that it does not know");
  assert.equal(merged(next, { order: [8], functions: [] }), null, "a function that it does not know");
  assert.equal(merged(null, { order: [7], functions: [] }), null);
});

test("filtering rows by all of their words", () => {
  const rows = [
    [0, "matmul", ["In[3]", 4, "y = x @ w"], ["f32[2]"], ["f32[3]"], 8, "ā = c̄ bᵀ"],
    [1, "tanh", null, ["f32[3]"], ["f32[3]"], 8, "x̄ = ȳ (1 - y²)"],
  ];
  const indices = (query) => filtered(rows, query).map(([index]) => index);
  assert.deepEqual(indices(""), [0, 1]);
  assert.deepEqual(indices("TANH f32[3]"), [1]);
  assert.deepEqual(indices("in[3]:4"), [0]);
  assert.deepEqual(indices("x @"), [0]);
  assert.deepEqual(indices("relu"), []);
});

test("a rule has a line of its own where it would be cut beside the rest", () => {
  const widths = [32, 120, 330, 180]; // of number, op, inputs, output
  assert.ok(oneLine([...widths, 140], 1060));
  assert.ok(!oneLine([...widths, 340], 1060));
});

test("of 10,000 rows only those in view are drawn", () => {
  assert.deepEqual(range(0, 312, 26, 10000), [0, 18]);
  const [first, last] = range(130_000, 312, 26, 10000);
  assert.ok(first <= 5000 && last >= 5012 && last - first < 40);
  assert.deepEqual(range(260_000, 312, 26, 10000), [9994, 10000]);
  assert.deepEqual(range(0, 312, 26, 0), [0, 0]);
  assert.deepEqual(range(9999, 312, 26, 3), [3, 3]);
});

test("keys move within the rows, and the row is brought into view", () => {
  assert.equal(moved("ArrowDown", -1, 11, 5), 0);
  assert.equal(moved("End", 0, 11, 5), 4);
  assert.equal(moved("PageUp", 3, 11, 5), 0);
  assert.equal(moved("x", 3, 11, 5), null);
  assert.equal(scrolledTo(0, 260, 312, 26), 0);
  assert.equal(scrolledTo(100, 0, 312, 26), 101 * 26 - 312);
  assert.equal(scrolledTo(5, 0, 312, 26), 0);
});

test("a sparkline has a step for each value, the greatest on top", () => {
  const path = line(new Float32Array([0, 10, 5]));
  assert.equal(path, "M0.0,34.0 H60.0 L60.0,2.0 H120.0 L120.0,18.0 H180.0");
  assert.equal(line([]), "");
});

class FakeWorker {
  constructor(answers) {
    this.answers = answers;
    this.terminated = false;
  }
  postMessage(graph) {
    if (this.answers) setTimeout(() => this.onmessage({ data: graph.bad ? { error: "bad" } : { layout: graph.n } }), 0);
  }
  terminate() {
    this.terminated = true;
  }
}

test("one worker lays out one graph after the other", async () => {
  let started = 0;
  const layouts = new LayoutQueue(() => (started++, new FakeWorker(true)));
  const { signal } = new AbortController();
  assert.deepEqual(await Promise.all([layouts.layout({ n: 1 }, signal), layouts.layout({ n: 2 }, signal)]), [1, 2]);
  await assert.rejects(layouts.layout({ bad: true }, signal), /bad/);
  assert.equal(await layouts.layout({ n: 3 }, signal), 3);
  assert.equal(started, 1);
});

test("a superseded or slow layout ends its worker; the next starts another", async () => {
  const workers = [];
  const layouts = new LayoutQueue(() => (workers.push(new FakeWorker(workers.length > 1)), workers.at(-1)), 30);
  const first = new AbortController();
  const pending = layouts.layout({ n: 1 }, first.signal);
  while (!workers.length) await tick();
  first.abort();
  await assert.rejects(pending, /superseded/);
  assert.ok(workers[0].terminated);
  await assert.rejects(layouts.layout({ n: 2 }, new AbortController().signal), /no layout within 30 ms/);
  assert.ok(workers[1].terminated);
  assert.equal(await layouts.layout({ n: 3 }, new AbortController().signal), 3);
  const aborted = new AbortController();
  aborted.abort();
  await assert.rejects(layouts.layout({ n: 4 }, aborted.signal), /superseded/);
});

test("copies of the code on one page share no ids", async () => {
  const copies = await Promise.all(["one", "two"].map((copy) => import(`../src/dom.js?${copy}`)));
  assert.equal(new Set(copies.map(({ uniqueId }) => uniqueId("ll-arrow"))).size, 2);
});

test("a packed recording of steps is unpacked, and searched", async () => {
  const { following, hasBadNumbers, unpacked } = await import("../src/players/steps.js");
  const value = ["f32[2]", 0, 1, 0.5, 1, 0, [], 1, 2, "0!", false];
  const steps = unpacked({
    sources: [["a.py", 5, ["x = 1", "  y = 2"]]],
    steps: [[0, 0, 6, null, [["y", "2"]], [], null, 0], [2, 0, 5, "%1 = add", [], [], value, 1]],
  });
  assert.equal(steps[0].text, "y = 2");
  assert.equal(steps[1].value.shades, "0!");
  assert.equal(following(steps, -1, hasBadNumbers), 1);
  assert.equal(following(steps, 1, hasBadNumbers), -1);
});

test("the line of a step comes to the middle of its pane, wherever the pane stands in the page", async () => {
  const { centre } = await import("../src/players/steps.js");
  const pane = { offsetTop: 90, clientHeight: 268, scrollTop: 0 };
  const scrolled = (/** @type {number} */ offsetTop) => (centre(pane, { offsetTop, offsetHeight: 18 }), pane.scrollTop);
  assert.deepEqual([275, 4, 1000].map(scrolled), [150, 0, 875]);
});

test("the heat maps of steps have the colours of a tensor's tile", async () => {
  const { colour, key } = await import("../src/players/steps.js");
  const python = readFileSync(new URL("../../limelight_widgets/figures/heat_map.py", import.meta.url), "utf8");
  const anchors = (/** @type {string} */ name) => [...new RegExp(`^${name}.*= \\[(.*)\\]$`, "m").exec(python)[1].matchAll(/\(([^)]*)\)/g)].map(([, parts]) => `rgb(${parts})`);
  const [one, both] = [{ spec: "f32[9]", low: 2, high: 5 }, { spec: "f32[9]", low: -1, high: 3 }];
  assert.deepEqual([0, 1 / 3, 2 / 3, 1].map((share) => colour(one, share)), anchors("SEQUENTIAL"));
  const [, , zero, , most] = anchors("DIVERGING");
  assert.deepEqual([0.25, 1].map((share) => colour(both, share)), [zero, most], "of both signs zero is in the middle");
  assert.deepEqual([0, 0.5, 1].map((share) => colour({ low: -2, high: 2 }, share)), [anchors("DIVERGING")[0], zero, most]);
  assert.deepEqual([one, both, { ...one, spec: "bool[9]" }].map(key), ["dark < bright", "blue < 0 < orange", "dark False, bright True"]);
});

const plain = (tree) => (typeof tree === "string" ? tree : `${tree[0]}(${tree.slice(1).map(plain).join(" ")})`);

test("rules as formulae", () => {
  const shown = (rule) => plain(mathTree(rule)[1]);
  assert.equal(shown("x̄ = z̄ yᴴ"), "mrow(mover(mi(x) mo(¯)) mo(=) mover(mi(z) mo(¯)) msup(mi(y) mi(H)))");
  assert.equal(shown("2 ȳ x*"), "mrow(mn(2) mover(mi(y) mo(¯)) msup(mi(x) mo(*)))");
  assert.equal(shown("Iₙ₋₁(x)"), "mrow(msub(mi(I) mrow(mi(n) mo(-) mn(1))) mo(() mi(x) mo()))");
  assert.equal(shown("ȳ (1 - y²)"), "mrow(mover(mi(y) mo(¯)) mo(() mn(1) mo(-) msup(mi(y) mn(2)) mo()))");
  assert.equal(shown("a⁻ᴴ x̄"), "mrow(msup(mi(a) mrow(mo(-) mi(H))) mover(mi(x) mo(¯)))");
});

test("a timeline's last moment says what lives now, others the most that there was", () => {
  const device = { live: 10, history: [0, 400, 30], history_seconds: 2 };
  assert.equal(momentAt(device).words, "now: 10 B");
  assert.equal(momentAt(device, 0.5).words, "1 s ago: 400 B");
  assert.deepEqual(momentAt({ live: 7, history: [], history_seconds: 0 }), { last: 0, at: 0, ago: 0, words: "now: 7 B" });
});

test("functions of one name are told apart by their places", () => {
  const places = { 9: " (In[3]:1)", 11: " (In[3]:1, no. 2)" };
  assert.deepEqual([7, 9, 11].map((id) => called({ id, name: "f" }, places)), ["f", "f (In[3]:1)", "f (In[3]:1, no. 2)"]);
  const state = { functions: [], places };
  assert.equal(merged(state, { order: [], functions: [] }).places, places, "an update without any");
  assert.deepEqual(merged(state, { order: [], functions: [], places: {} }).places, {});
});
