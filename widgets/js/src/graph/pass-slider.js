// The graph through the passes, or from one trace to another: a slider whose stops are the versions, over a picture of all
// nodes that there ever were. Boxes stay where they are: what went is a ghost, what came is marked.

import { button, h, s } from "../dom.js";
import { counted } from "../format.js";
import { titleOf, valuesOf } from "./box-text.js";
import { nodesOf } from "./kept-tensors.js";

/**
 * @typedef {import("./visible-boxes.js").Graph} Graph
 * @typedef {import("./visible-boxes.js").GraphNode} GraphNode
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./view.js").GraphView} GraphView
 *
 * @typedef {object} Stop
 * @property {string} name @property {number} before @property {number} removed @property {number} added @property {number} after
 * @property {[string, string, number[], number[]][]} changes rule, reason, nodes that went, nodes that stand for them
 * @typedef {{graph: number, stops: Stop[]}} History
 * @typedef {"kept" | "added" | "removed" | "past" | "coming"} Fate
 */

const MOST = 60; // changes that are listed
const AROUND = 1; // unchanged lines around a change, in the text

/** What a node is at a stop. @param {GraphNode} node @param {number} stop @returns {Fate} */
export function fateOf({ born = 0, gone = Infinity }, stop) {
  if (born > stop) return "coming";
  if (gone < stop) return "past";
  if (gone === stop) return "removed";
  return born === stop && stop > 0 ? "added" : "kept";
}

/** The values that a node reads at a stop. @param {GraphNode} node @param {number} stop */
export function readsAt({ in: inputs = [], ins }, stop) {
  return ins?.findLast(([from]) => from <= stop)?.[1] ?? ins?.[0][1] ?? inputs;
}

/** "after fold: 334 − 3 + 3 = 334 ops" @param {Stop} stop @param {number} index */
export function arithmetic({ name, before, removed, added, after }, index) {
  return index ? `${name}: ${before} − ${removed} + ${added} = ${counted(after, "op")}` : `${name}: ${counted(after, "op")}`;
}

/**
 * The text of a stop against the one before: "-", "+" and " " before each line, those around a change only.
 * @param {Graph} graph @param {number} stop @returns {string[]}
 */
export function textDiff(graph, stop) {
  const values = valuesOf(graph);
  const line = (/** @type {GraphNode} */ node) => `${node.names.join(", ")} = ${node.calls ? titleOf(node) : node.op}(${node.kind === "constant" ? titleOf(node) : readsAt(node, stop).map((value) => values[value].name).join(", ")})  ${(node.out ?? []).join(", ")}`;
  const rows = graph.nodes.flatMap((node) => {
    const fate = fateOf(node, stop);
    if (fate === "coming" || fate === "past") return [];
    const rewired = stop > 0 && fate === "kept" && node.ins?.some(([from]) => from === stop);
    return [{ sign: fate === "removed" ? "-" : fate === "added" ? "+" : rewired ? "~" : " ", text: line(node) }];
  });
  if (!stop) return rows.map(({ text }) => `  ${text}`);
  const near = rows.map((_, k) => rows.slice(Math.max(k - AROUND, 0), k + AROUND + 1).some(({ sign }) => sign !== " "));
  return rows.flatMap(({ sign, text }, k) => (near[k] ? [`${sign} ${text}`] : near[k - 1] ? ["…"] : []));
}

export class PassSlider {
  /** @param {GraphView} view */
  constructor(view) {
    this.view = view;
    this.stop = 0;
    /** @type {History | null} */
    this.history = null;
    /** @type {Map<string, number[]>} of each box of the picture the nodes in it */
    this.inside = new Map();
    /** @type {Set<string>} the pairs of boxes between which a value goes at the stop */
    this.alive = new Set();
    this.range = /** @type {HTMLInputElement} */ (h("input", { type: "range", min: 0, value: 0, "aria-label": "Stop" }));
    this.range.addEventListener("input", () => this.go(Number(this.range.value)));
    this.range.addEventListener("keydown", (event) => this.onKey(event));
    this.said = h("b", {});
    this.changes = h("ul", { class: "ll-changes" });
    this.text = h("pre", { class: "ll-diff", hidden: true, tabindex: 0, "aria-label": "Text of the change" });
    const step = (/** @type {string} */ label, /** @type {number} */ by, /** @type {string} */ sign) =>
      button(label, () => this.go(this.stop + by), {}, sign);
    this.element = h(
      "div",
      { class: "ll-history", role: "group", "aria-label": "From version to version", hidden: true },
      h("div", { class: "ll-history-bar" }, step("The version before ( [ )", -1, "◂"), this.range, step("The next version ( ] )", 1, "▸"), this.said,
        button("The change as text ( t )", () => this.turn(), {}, "± text")),
      this.changes,
      this.text,
    );
  }

  /** @param {History | undefined} history of the state that is shown @param {boolean} fresh whether it is another one */
  take(history, fresh) {
    this.history = history ?? null;
    if (fresh) this.stop = 0;
    this.range.max = String((history?.stops.length ?? 1) - 1);
  }

  get shown() {
    return this.view.variant === "history" && this.history !== null;
  }

  /** How many ops there are at the stop. */
  get ops() {
    return this.shown ? this.history?.stops[this.stop].after : undefined;
  }

  /** @param {number} stop */
  go(stop) {
    if (!this.shown || !this.history) return;
    this.stop = Math.min(Math.max(stop, 0), this.history.stops.length - 1);
    this.draw();
    if (this.view.state) this.view.drawCount(this.view.state, this.history.graph);
    this.view.say(arithmetic(this.history.stops[this.stop], this.stop));
  }

  /** The keys of a slider, which a notebook takes for its own. @param {KeyboardEvent} event */
  onKey(event) {
    const last = (this.history?.stops.length ?? 1) - 1;
    const to = { ArrowLeft: this.stop - 1, ArrowDown: this.stop - 1, ArrowRight: this.stop + 1, ArrowUp: this.stop + 1, Home: 0, End: last }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.go(to);
  }

  turn() {
    if (!this.shown) return;
    this.text.hidden = !this.text.hidden;
    this.draw();
  }

  /** Marks the boxes and edges of the picture as they are at the stop. */
  draw() {
    this.element.hidden = !this.shown;
    const { view, history, stop } = this;
    if (!this.shown || !history || !view.state || !view.stage) return;
    const graph = view.state.graphs[history.graph];
    this.range.value = String(stop);
    this.range.setAttribute("aria-valuetext", arithmetic(history.stops[stop], stop));
    this.said.textContent = arithmetic(history.stops[stop], stop);
    this.changes.replaceChildren(...this.rows(graph, history.stops[stop]));
    this.text.textContent = this.text.hidden ? "" : textDiff(graph, stop).join("\n");
    const boxes = view.picture.boxes.filter((box) => box.graph === history.graph && (box.kind === "node" || box.kind === "group"));
    this.inside = new Map(boxes.map((box) => [box.name, nodesOf(graph, box)]));
    this.alive = this.edgesAt(graph, this.inside);
    this.mark(view.stage.querySelectorAll(".ll-box, .ll-edge"));
  }

  /** Marks some of them, as those that have come. @param {Iterable<Element>} elements */
  mark(elements) {
    const { view, history, stop, inside, alive } = this;
    if (!this.shown || !history || !view.state) return;
    const { nodes } = view.state.graphs[history.graph];
    for (const element of /** @type {Iterable<SVGElement>} */ (elements)) {
      const { box = "", source = "", target = "" } = element.dataset;
      const fates = inside.get(box)?.map((index) => fateOf(nodes[index], stop));
      if (fates) mark(element, fates, view.drawing.boxes.get(box)?.height ?? 0);
      if (source) element.classList.toggle("ll-not-now", inside.has(source) && inside.has(target) && !alive.has(`${source} ${target}`));
    }
  }

  /** The pairs of boxes between which a value goes at the stop. @param {Graph} graph @param {Map<string, number[]>} inside */
  edgesAt(graph, inside) {
    const values = valuesOf(graph);
    /** @type {Map<number, string[]>} */
    const boxes = new Map();
    for (const [name, nodes] of inside) for (const node of nodes) boxes.set(node, [...(boxes.get(node) ?? []), name]);
    graph.nodes.forEach(({ folded_into: into }, node) => {
      if (into !== undefined && !boxes.has(node)) boxes.set(node, boxes.get(into) ?? []);
    });
    const found = new Set();
    graph.nodes.forEach((node, index) => {
      if (["coming", "past"].includes(fateOf(node, this.stop))) return;
      for (const value of readsAt(node, this.stop)) {
        for (const source of boxes.get(values[value].node) ?? []) for (const target of boxes.get(index) ?? []) found.add(`${source} ${target}`);
      }
    });
    return found;
  }

  /** What the pass did, and by which rule. @param {Graph} graph @param {Stop} stop */
  rows(graph, { name, changes }) {
    const said = (/** @type {number[]} */ nodes) => nodes.slice(0, 4).map((index) => `${graph.nodes[index].names[0] ?? ""} ${graph.nodes[index].op}`.trim()).join(", ");
    const rows = changes.slice(0, MOST).map(([rule, reason, old, now]) =>
      h("li", {}, h("code", {}, `${name}: ${rule}`), ` ${said(old) || "nothing"} → ${said(now) || "nothing"}`, h("span", { class: "ll-quiet" }, ` ${reason}`)),
    );
    return changes.length > MOST ? [...rows, h("li", {}, `and ${counted(changes.length - MOST, "change")} more`)] : rows;
  }
}

/** Marks a box, below it, by what has become of what is in it. @param {SVGElement} element @param {Fate[]} fates @param {number} height */
function mark(element, fates, height) {
  const count = (/** @type {Fate} */ fate) => fates.filter((one) => one === fate).length;
  const [added, removed, absent] = [count("added"), count("removed"), count("past") + count("coming")];
  const all = (/** @type {number} */ some) => some > 0 && some === fates.length - absent;
  element.classList.toggle("ll-absent", absent === fates.length);
  element.classList.toggle("ll-ghost", all(removed));
  element.classList.toggle("ll-added", all(added));
  element.querySelector(".ll-fate")?.remove();
  if (!added && !removed) return;
  const text = [removed ? `−${removed}` : "", added ? `+${added}` : ""].filter(Boolean).join(" ");
  const size = 7 * text.length + 6;
  element.append(
    s("g", { class: "ll-fate", transform: `translate(4,${height - 6})` }, s("rect", { width: size, height: 14, rx: 4 }), s("text", { x: size / 2, y: 11 }, text)),
  );
}
