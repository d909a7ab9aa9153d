// The keys of the graph view. Arrows follow edges; Enter goes in, Escape comes out.

import { turnDrawer } from "./drawer.js";
import { h } from "../dom.js";

/** @typedef {import("./view.js").GraphView} GraphView */

const HELP = [
  ["↓ ↑", "follow an edge forward, backward"],
  ["← →", "neighbour in the same row"],
  ["Enter", "open a group or a nested function; show the line of an op"],
  ["F6", "the next pane: tools, picture, code, details, outline; Shift and F6 for the one before"],
  ["Esc", "close what is around; then leave"],
  ["/  n  N", "find; next match; previous match"],
  ["op:  line:  dtype:  dev:", "in the search: by op, line of code, type, device"],
  ["fused:1  was:shared", "in the search: by fusion group, by what passes did (in the traced graph)"],
  ["l", "show the listing of the ops, or the code"],
  ["+  −  f", "zoom in; zoom out; fit"],
  ["[  ]  t", "the pass before, the next pass (of Passes); the change as text"],
  ["p", "larger type, for a projector; back"],
  ["drag, Ctrl and wheel", "pan; zoom"],
];

export function keyHelp() {
  const rows = HELP.flatMap(([keys, meaning]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, meaning)]);
  return h("dl", { class: "ll-help", hidden: true, "aria-label": "Keys" }, ...rows);
}

/** @type {Record<string, (view: GraphView) => unknown>} */
const KEYS = {
  ArrowDown: (view) => move(view, follow(view, 1)),
  ArrowUp: (view) => move(view, follow(view, -1)),
  ArrowLeft: (view) => move(view, beside(view, -1)),
  ArrowRight: (view) => move(view, beside(view, 1)),
  Enter: enter,
  " ": enter,
  "/": (view) => view.bar?.search.focus(),
  n: (view) => view.results.next(1),
  N: (view) => view.results.next(-1),
  i: (view) => move(view, follow(view, -1)),
  o: (view) => move(view, follow(view, 1)),
  f: (view) => view.fit(true),
  l: (view) => view.side?.turn(),
  p: (view) => view.project(),
  "[": (view) => view.slider?.go(view.slider.stop - 1),
  "]": (view) => view.slider?.go(view.slider.stop + 1),
  t: (view) => view.slider?.turn(),
  "+": (view) => view.camera?.zoom(1.25),
  "=": (view) => view.camera?.zoom(1.25),
  "-": (view) => view.camera?.zoom(1 / 1.25),
  "?": (view) => view.showHelp(),
  Escape: leave,
};

/** @param {GraphView} view @param {KeyboardEvent} event */
export function onKey(view, event) {
  const action = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action(view);
}

/** The box that has the focus, or the chosen one. @param {GraphView} view */
function current(view) {
  const focused = /** @type {SVGElement | null} */ (document.activeElement)?.dataset?.box;
  return focused ?? view.chosen ?? view.picture.boxes[0]?.name ?? "";
}

/** @param {GraphView} view @param {string | undefined} name */
function move(view, name) {
  if (!name) return;
  view.choose(name);
  view.highlights?.focus();
}

/** The nearest box at the other end of an edge. @param {GraphView} view @param {1 | -1} direction */
export function follow(view, direction) {
  const name = current(view);
  const ends = [...view.picture.edges.values()].flatMap(({ source, target }) => {
    if (direction > 0) return source === name ? [target] : [];
    return target === name ? [source] : [];
  });
  return nearest(view, name, ends);
}

/** @param {GraphView} view @param {1 | -1} direction */
export function beside(view, direction) {
  const name = current(view);
  const here = view.drawing.boxes.get(name);
  if (!here) return undefined;
  const row = [...view.drawing.boxes].filter(([other, place]) => {
    const overlaps = place.y < here.y + here.height && here.y < place.y + place.height;
    return other !== name && overlaps && (place.x - here.x) * direction > 0;
  });
  return nearest(view, name, row.map(([other]) => other));
}

/** @param {GraphView} view @param {string} name @param {string[]} others */
function nearest(view, name, others) {
  const middle = (/** @type {string} */ box) => {
    const place = view.drawing.boxes.get(box);
    return place ? place.x + place.width / 2 : 0;
  };
  const distance = (/** @type {string} */ box) => Math.abs(middle(box) - middle(name));
  return others.sort((a, b) => distance(a) - distance(b))[0];
}

/** @param {GraphView} view */
function enter(view) {
  const name = current(view);
  if (view.box(name)?.opens) view.toggle(name, true);
  else view.choose(name);
}

/** Closes the frame around the current box; without one, gives the focus back to the notebook. @param {GraphView} view */
function leave(view) {
  let frame = view.box(current(view))?.parent ?? "";
  while (view.frame(frame)?.fused) frame = view.frame(frame)?.parent ?? ""; // fusion groups do not close
  if (frame) view.toggle(frame.replace(/\.\d+$/, ""), true);
  else if (view.chosen || view.line || view.body?.classList.contains("ll-drawer")) {
    turnDrawer(view, false);
    view.choose(null);
  }
  else {
    const cell = /** @type {HTMLElement | null | undefined} */ (view.canvas?.closest(".jp-Notebook"));
    if (cell) cell.focus();
    else /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
  }
}
