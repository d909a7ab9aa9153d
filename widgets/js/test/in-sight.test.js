// What of a large picture is on the page, wherever it is moved.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EdgeLine } from "../src/graph/edge-line.js";
import { InSight } from "../src/graph/in-sight.js";
import { Labels } from "../src/graph/labels.js";
import { curve } from "../src/graph/nested-layout.js";

/** A group whose children are kept as a page would. */
function group() {
  const children = [];
  return {
    children,
    insertBefore(element, next) {
      assert.ok(!children.includes(element), "it comes once");
      const at = next ? children.indexOf(next) : children.length;
      assert.ok(at >= 0, "what follows is there");
      children.splice(at, 0, element);
      element.parentNode = this;
      return element;
    },
  };
}

/** Many boxes in a row, each 10 wide, and what is seen of them. */
function row(count) {
  const made = [];
  const make = (k) => () => {
    made.push(k);
    const element = { k, parentNode: null, remove: () => (element.parentNode.children.splice(element.parentNode.children.indexOf(element), 1), (element.parentNode = null)) };
    return element;
  };
  const parts = Array.from({ length: count }, (_, k) => ({ place: { x: 10 * k, y: 0, width: 8, height: 8 }, make: make(k) }));
  const [boxes, sight] = [group(), { x: 0, y: 0, width: 400, height: 100 }];
  const marked = [];
  const shown = new InSight(() => ({ ...sight }), (come) => marked.push(...come.map(({ k }) => k)));
  return { shown, parts, boxes, sight, made, make, marked, there: () => boxes.children.map(({ k }) => k) };
}

globalThis.document ??= { activeElement: null };

test("all of a small picture is there, wherever it is seen", () => {
  const { shown, parts, boxes, sight, there } = row(90);
  sight.x = -5000;
  shown.take([{ group: boxes, parts }]);
  assert.equal(there().length, 90); // at once
});

test("of a large picture there is what is in sight, in its order, and a little around", async () => {
  const { shown, parts, boxes, sight, there, made, marked } = row(3000);
  await shown.take([{ group: boxes, parts }]);
  assert.ok(there().length > 40 && there().length < 70);
  assert.deepEqual(marked.toSorted((a, b) => a - b), there());
  for (const x of [12000, 0, 500, 29000, 300, 15000]) {
    sight.x = x;
    const moved = shown.follow();
    const seen = (k) => 10 * k + 8 >= x && 10 * k <= x + 400;
    const wanted = parts.flatMap((_, k) => (seen(k) ? [k] : []));
    assert.deepEqual(there().filter(seen), wanted); // at once
    await moved;
    const all = there();
    assert.deepEqual(all, all.toSorted((a, b) => a - b));
    assert.ok(all.length < 100, "what is far away has gone");
  }
  assert.equal(made.length, new Set(made).size, "nothing is made twice");
});

test("what has come is marked once, not with each movement all that is there", async () => {
  const { shown, parts, boxes, sight, there, marked } = row(3000);
  await shown.take([{ group: boxes, parts }]);
  for (sight.x = 0; sight.x < 2000; sight.x += 10) await shown.follow(true);
  assert.equal(marked.length, new Set(marked).size);
  assert.deepEqual(marked.toSorted((a, b) => a - b), there());
});

test("under way nothing comes while all that is seen is there, then what is around it as well", async () => {
  const { shown, parts, boxes, sight, there } = row(3000);
  await shown.take([{ group: boxes, parts }]);
  const before = there();
  for (sight.x = 0; sight.x <= 100; sight.x += 10) await shown.follow(true);
  assert.deepEqual(there(), before);
  await shown.follow(true); // 110: there is more to be seen
  assert.ok(there().length > before.length + 8);
  assert.ok(there().at(-1) * 10 >= 110 + 400 + 90);
});

/** Edges from one box to each of many, all along one line until they turn off. */
function bundled(count) {
  const { shown, boxes, sight, there, make } = row(count);
  const parts = Array.from({ length: count }, (_, k) => {
    const path = curve([[0, 0], [10, 50], [10 * k + 10, 50], [10 * k + 20, 0]], true);
    return { place: { x: 0, y: 0, width: 10 * k + 20, height: 50 }, make: make(k), line: new EdgeLine(path, ["source", `target ${k}`], "") };
  });
  return { shown, parts, group: boxes, sight, there };
}

test("of edges that lie on one another as far as they are seen one is there", async () => {
  const { shown, parts, group: edges, sight, there } = bundled(3000);
  sight.x = 10;
  await shown.take([{ group: edges, parts }]);
  assert.ok(there().length >= 40 && there().length < 60, String(there().length)); // those that turn off here, and one that goes on
  sight.x = 20_000;
  await shown.follow();
  assert.ok(there().length < 80, String(there().length)); // not those that end before
  assert.ok(there().every((k) => 10 * k > 19_700));
  shown.whole();
  assert.equal(there().length, 3000);
});

test("of the chosen box all edges are there", async () => {
  const { shown, parts, group: edges, there } = bundled(3000);
  await shown.take([{ group: edges, parts }]);
  assert.ok(!there().includes(2500));
  shown.chosen = "target 2500";
  await shown.follow();
  assert.ok(there().includes(2500));
});

test("edges that are drawn in another way are told apart", () => {
  const region = { x: 0, y: 0, width: 10, height: 10 };
  const [path, other] = ["M0,0 L100,0", "M0,20 L100,20"];
  const look = (at, stroke) => new EdgeLine(at, [], stroke).within(region);
  assert.notEqual(look(path, "dashed"), look(path, "plain"));
  assert.equal(look(other, "plain"), "");
});

test("the path of an edge has no points on straight ways", () => {
  assert.equal(curve([[0, 0], [5, 0], [9, 0], [9, 4], [9, 8], [20, 12]], true), "M0,0 L9,0 L9,8 C14.5,8 14.5,12 20,12");
  assert.equal(curve([[0, 0], [9, 0], [5, 0]], true), "M0,0 L9,0 L5,0"); // it turns back
});

test("under way nothing goes, and what has the focus stays", async () => {
  const { shown, parts, boxes, sight, there } = row(3000);
  await shown.take([{ group: boxes, parts }]);
  sight.x = 9000;
  await shown.follow(true);
  assert.ok(there().includes(0) && there().includes(900));
  document.activeElement = parts[3].element;
  await shown.follow();
  assert.deepEqual(there().filter((k) => k < 800), [3]);
  document.activeElement = null;
});

test("what is in sight comes in turns where it is very much, and no more once the picture has moved on", async () => {
  const { shown, parts, boxes, sight, there } = row(3000);
  sight.width = 30_000;
  const first = shown.take([{ group: boxes, parts }]);
  assert.ok(there().length < 3000);
  sight.width = 100;
  await Promise.all([first, shown.follow()]);
  assert.ok(there().length < 3000);
  sight.width = 30_000;
  await shown.follow();
  assert.deepEqual(there(), [...parts.keys()]);
});

test("a picture that is saved is there as a whole", async () => {
  const { shown, parts, boxes, there } = row(3000);
  await shown.take([{ group: boxes, parts }]);
  shown.whole();
  assert.deepEqual(there(), [...parts.keys()]);
  shown.leave();
  await shown.follow();
  assert.equal(there().length, 3000); // the next picture takes their place
});

test("labels that come late are written as large as those that are there", () => {
  const stage = { classList: { toggle() {} } };
  const element = () => ({ style: {}, attributes: {}, textContent: "long title", setAttribute(name, value) { this.attributes[name] = value; }, removeAttribute(name) { delete this.attributes[name]; } });
  const label = (width) => ({ element: element(), size: 12, full: "long title", width, height: 40 });
  const [labels, early, late, none] = [new Labels(stage), label(300), label(300), label(0)];
  labels.add(early);
  labels.draw(0.5);
  labels.add(late);
  labels.add(none);
  assert.equal(early.element.style.fontSize, "21.0px");
  assert.deepEqual([late.element.style.fontSize, none.element.attributes.display], ["21.0px", "none"]);
  labels.draw(1);
  assert.deepEqual([early.element.style.fontSize, late.element.style.fontSize, none.element.attributes], ["", "", {}]);
});
