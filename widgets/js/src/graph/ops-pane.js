// The graph as a listing: a row for each op, of the graph and then of the functions that it calls. Choosing a row shows
// its box; a chosen box shows its row.

import { h, uniqueId } from "../dom.js";
import { counted } from "../format.js";
import { moved, range, scrolledTo } from "../tables/virtual-list.js";
import { places } from "./box-paths.js";
import { placeOf, titleOf, valuesOf } from "./box-text.js";

/**
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {import("./visible-boxes.js").GraphNode} GraphNode
 * @typedef {{name: string, text: string, fused: number, mark: string, where: string}} Row name "" for a heading
 */

const ROW = 20;

/** @param {GraphState} state @param {number} root @returns {Row[]} */
export function rowsOf(state, root) {
  return [...places(state.graphs, root)].flatMap(([index, path]) => {
    const graph = state.graphs[index];
    const values = valuesOf(graph);
    const heading = { name: "", text: `in ${graph.name}:`, fused: 0, mark: "", where: "" };
    const rows = graph.nodes.map((node, k) => ({
      name: `${path}n${k}`,
      text: textOf(node, values),
      fused: node.fused ?? 0,
      mark: node.became?.[2] ?? "",
      where: placeOf(state, node.stack?.[0]),
    }));
    return path ? [heading, ...rows] : rows;
  });
}

/** `%7 = multiply(%4, %2)  f32[8,4]` @param {GraphNode} node @param {{name: string}[]} values */
function textOf(node, values) {
  const op = node.calls ? titleOf(node) : node.op;
  const of = node.kind === "constant" ? titleOf(node) : (node.in ?? []).map((value) => values[value].name).join(", ");
  const named = node.names.length ? `${node.names.join(", ")} = ` : "";
  return `${named}${op}(${of})  ${(node.out ?? []).join(", ")}`.trimEnd();
}

export class OpsPane {
  /** @param {(name: string) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.id = uniqueId("ll-ops");
    /** @type {Row[]} */
    this.rows = [];
    /** @type {(() => Row[]) | null} */
    this.waiting = null;
    this.wanted = ["", ""]; // the names of the row to light, and of one to light in its place
    /** @type {Map<number, string>} for each graph where it is listed */
    this.paths = new Map();
    this.at = -1;
    this.sheet = h("div", { class: "ll-sheet", role: "presentation" });
    this.element = h(
      "div",
      { class: "ll-listing", role: "listbox", tabindex: 0, "aria-label": "Listing of the ops", onkeydown: (/** @type {KeyboardEvent} */ e) => this.onKey(e) },
      this.sheet,
    );
    this.element.addEventListener("scroll", () => this.paint());
    new ResizeObserver(() => this.paint()).observe(this.element);
  }

  /** @param {() => Row[]} rows made when somebody looks @param {Map<number, string>} paths */
  draw(rows, paths) {
    [this.waiting, this.rows, this.paths] = [rows, [], paths];
    this.at = -1;
    this.wanted = ["", ""];
    this.paint();
  }

  /** Lists what is waiting. */
  list() {
    const rows = this.waiting?.();
    if (!rows) return;
    [this.waiting, this.rows] = [null, rows];
    this.element.scrollTop = 0;
    this.sheet.style.setProperty("block-size", `${rows.length * ROW}px`);
    this.element.setAttribute("aria-label", `Listing: ${counted(rows.filter(({ name }) => name).length, "op")}`);
    this.find();
  }

  /** Draws the rows in view. */
  paint() {
    if (this.element.hidden || !this.element.clientHeight) return;
    this.list();
    const { scrollTop, clientHeight } = this.element;
    const [first, end] = range(scrollTop, clientHeight, ROW, this.rows.length);
    this.sheet.replaceChildren(...this.rows.slice(first, end).map((row, k) => this.row(row, first + k)));
    this.element.setAttribute("aria-activedescendant", this.at >= 0 ? `${this.id}-${this.at}` : "");
  }

  /** @param {Row} row @param {number} index */
  row({ name, text, fused, mark, where }, index) {
    const style = { "inset-block-start": `${index * ROW}px` };
    if (!name) return h("div", { class: "ll-listed ll-listed-head", role: "presentation", style }, text);
    const notes = [fused ? `◉ fused ${fused}` : "", mark].filter(Boolean).join(" · ");
    const full = [text, notes, where].filter(Boolean).join("  ");
    return h(
      "div",
      {
        id: `${this.id}-${index}`, class: `ll-listed${index === this.at ? " ll-chosen" : ""}${fused ? " ll-listed-fused" : ""}`, role: "option",
        "aria-selected": index === this.at, "aria-label": full, title: full, style, dataset: { op: name }, onclick: () => this.choose(name),
      },
      h("span", { class: "ll-listed-text" }, text),
      notes ? h("span", { class: "ll-listed-note" }, notes) : null,
      h("span", { class: "ll-listed-where" }, where),
    );
  }

  /** Lights the row of a box; of a box that stands at a second place, that of the first. @param {string | null} name @param {string} [first] */
  light(name, first = "") {
    this.wanted = [name ?? "", first];
    this.find();
    this.paint();
  }

  /** Finds the row that is to be lit. */
  find() {
    const rows = this.wanted.filter(Boolean).map((wanted) => this.rows.findIndex(({ name }) => name === wanted));
    this.at = rows.find((row) => row >= 0) ?? -1;
    if (this.at >= 0) this.element.scrollTop = scrolledTo(this.at, this.element.scrollTop, this.element.clientHeight, ROW);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const page = Math.max(Math.floor(this.element.clientHeight / ROW) - 1, 1);
    let to = moved(event.key, this.at, page, this.rows.length);
    if (to === null) return;
    event.preventDefault();
    event.stopPropagation();
    if (!this.rows[to]?.name) to += to > this.at && to + 1 < this.rows.length ? 1 : -1; // headings are passed over
    if (this.rows[to]?.name) this.choose(this.rows[to].name);
  }
}
