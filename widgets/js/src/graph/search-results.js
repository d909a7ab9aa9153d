// What the reader seeks in a graph view: the matches, the boxes that hold them, and the way from one to the next.

import { counted } from "../format.js";
import { around } from "./box-paths.js";
import { deepMatcher, find } from "./search.js";
import { membersOf } from "./box-text.js";

/**
 * @typedef {import("./view.js").GraphView} GraphView
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./visible-boxes.js").GraphNode} GraphNode
 */

export class SearchResults {
  /** @param {GraphView} view */
  constructor(view) {
    this.view = view;
    /** @type {number[]} the nodes that match, of the graph that is shown */
    this.nodes = [];
    this.at = -1;
    /** @type {((node: GraphNode) => boolean) | null} */
    this.test = null;
  }

  /** Takes the query as it stands, for the graph that is shown now. */
  renew() {
    const { state, graph, bar } = this.view;
    const query = bar?.search.value ?? "";
    this.nodes = state && graph >= 0 ? find(state, graph, query) : [];
    this.at = -1;
    this.test = state && deepMatcher(state, query);
  }

  /** The query has changed. */
  seek() {
    this.renew();
    this.view.say(this.test ? counted(this.nodes.length, "match", "matches") : "", true);
    this.view.highlight();
  }

  /** The names of the boxes that hold what was found. */
  boxes() {
    return this.view.picture.boxes.filter((box) => this.holds(box)).map(({ name }) => name);
  }

  /** Whether a box is, or holds, something that was found. @param {Box} box */
  holds(box) {
    const graph = this.view.state?.graphs[box.graph];
    if (!graph || !this.test) return false;
    const inside = box.kind === "node" ? [box.index] : box.kind === "group" ? membersOf(graph, box.index) : [];
    return inside.some((index) => this.test?.(graph.nodes[index]));
  }

  /** Goes to the next match, opening what hides it. @param {number} step */
  async next(step) {
    const { view, nodes, at } = this;
    if (!view.state || !nodes.length) return;
    this.at = at < 0 ? (step > 0 ? 0 : nodes.length - 1) : (at + step + nodes.length) % nodes.length;
    const said = `${this.at + 1} of ${counted(nodes.length, "match", "matches")}`;
    const node = nodes[this.at];
    const hidden = around(view.state.graphs, view.graph, `n${node}`).filter((name) => !view.drawing.frames.has(name));
    for (const name of hidden) view.opened.set(name, true);
    if (hidden.length) await view.redraw();
    const inside = view.picture.boxes.find((box) => box.name.startsWith(`n${node}.`) && this.holds(box));
    view.choose(view.box(`n${node}`)?.name ?? inside?.name ?? null);
    view.say(said, true);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      if (this.view.bar) this.view.bar.search.value = "";
      this.seek();
      this.view.highlights?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
