// The graph view: keeps what is open, chosen and sought, and draws it.

import { button, h, s } from "../dom.js";
import { counted } from "../format.js";
import { Camera } from "./camera.js";
import { details } from "./details.js";
import { Highlights } from "./highlights.js";
import { keyHelp, onKey } from "./keys.js";
import { Layouts } from "./layout.js";
import { Outline } from "./outline.js";
import { arrowMarker, scene } from "./scene.js";
import { deepMatcher, find } from "./search.js";
import { lineKey, placeOfKey, SourcePane } from "./source.js";
import { visible } from "./visible.js";
import { membersOf, placeOf, positionsOf, sizeOf, wordsOf } from "./words.js";

/**
 * @typedef {import("./visible.js").Box} Box
 * @typedef {import("./visible.js").GraphNode} GraphNode
 * @typedef {import("./visible.js").Picture} Picture
 * @typedef {import("./frames.js").Drawing} Drawing
 * @typedef {import("./frames.js").Rectangle} Rectangle
 * @typedef {import("./words.js").GraphState} GraphState
 * @typedef {import("./words.js").Position} Position
 */

let views = 0;

export class GraphView {
  /** @param {HTMLElement} root @param {() => Promise<import("./layout.js").Graphviz>} graphviz @param {AbortSignal} signal */
  constructor(root, graphviz, signal) {
    this.layouts = new Layouts(graphviz);
    this.arrow = `ll-arrow-${++views}`;
    /** @type {GraphState | null} */
    this.state = null;
    this.variant = "";
    /** @type {Map<string, boolean>} what the reader opened and closed */
    this.opened = new Map();
    /** @type {string | null} */
    this.chosen = null;
    /** @type {string | null} the line that the reader chose */
    this.line = null;
    /** @type {{nodes: number[], at: number, test: ((node: GraphNode) => boolean) | null}} what is sought */
    this.found = { nodes: [], at: -1, test: null };
    /** @type {Picture} */
    this.picture = { boxes: [], frames: [], edges: new Map() };
    /** @type {Drawing} */
    this.drawing = { boxes: new Map(), frames: new Map(), edges: new Map(), width: 0, height: 0 };
    this.fitted = false;
    /** @type {(lines: {label: string, line: number}[]) => void} told which lines are lit */
    this.onLines = () => {};
    /** @type {import("./visible.js").Graph | null} the graph whose lines are shown */
    this.sourceOf = null;
    this.build(root, signal);
  }

  /** @param {HTMLElement} root @param {AbortSignal} signal */
  build(root, signal) {
    this.stage = s("g");
    this.svg = s("svg", { class: "ll-picture", "aria-label": "Graph", role: "group" }, arrowMarker(this.arrow), this.stage);
    this.canvas = h("div", { class: "ll-canvas" }, this.svg);
    this.camera = new Camera(this.svg, this.stage, signal);
    this.highlights = new Highlights(this.stage);
    this.source = new SourcePane((key) => this.chooseLine(key));
    this.details = h("div", { class: "ll-details", role: "region", "aria-label": "Details", "aria-live": "polite" });
    this.outline = new Outline({ select: (name) => this.choose(name), toggle: (name) => this.toggle(name) });
    this.help = keyHelp();
    this.message = h("p", { class: "ll-empty" });
    this.body = h("div", { class: "ll-body" }, this.canvas, h("div", { class: "ll-side" }, this.source.element, this.details));
    const bar = this.toolbar();
    this.foot = h("div", { class: "ll-foot" }, this.outline.element, this.status);
    root.append(bar, this.message, this.help, this.body, this.foot);
    this.canvas.addEventListener("keydown", (event) => onKey(this, event));
    new ResizeObserver(() => this.fitted || this.fit(false)).observe(this.canvas);
  }

  toolbar() {
    this.title = h("span", { class: "ll-title" });
    this.variants = h("span", { class: "ll-switch", role: "group", "aria-label": "Version of the graph" });
    this.count = h("span", { class: "ll-quiet" });
    this.search = /** @type {HTMLInputElement} */ (
      h("input", { type: "search", placeholder: "Find ( / )", "aria-label": "Find ops", size: 12, spellcheck: "false" })
    );
    this.search.addEventListener("input", () => this.seek());
    this.search.addEventListener("keydown", (event) => this.onSearchKey(event));
    this.status = h("span", { class: "ll-quiet", role: "status" });
    const help = button("Keys", () => this.showHelp(), { class: "ll-button" }, "?");
    return h(
      "div",
      { class: "ll-bar" },
      this.title,
      this.variants,
      this.count,
      h("span", { class: "ll-spring" }),
      this.search,
      button("Open all groups", () => this.openAll(true), { class: "ll-button" }, "⊞"),
      button("Close all groups", () => this.openAll(false), { class: "ll-button" }, "⊟"),
      button("Zoom out", () => this.camera?.zoom(1 / 1.25), { class: "ll-button" }, "−"),
      button("Zoom in", () => this.camera?.zoom(1.25), { class: "ll-button" }, "+"),
      button("Fit", () => this.fit(), { class: "ll-button" }, "Fit"),
      help,
    );
  }

  /** Takes a new state: another trace, or the first. @param {GraphState} state */
  show(state) {
    if (state === this.state) return;
    const first = this.state === null;
    this.state = state;
    const keys = state.variants.map(({ key }) => key);
    if (!keys.includes(this.variant)) this.variant = keys.includes(state.which) ? state.which : (keys[0] ?? "");
    this.forget();
    if (!first && state.trace !== undefined) this.say(`trace #${state.trace + 1} is shown`);
    this.redraw();
  }

  /** Another graph: nothing that was opened or chosen in the last one means anything here. */
  forget() {
    this.opened.clear();
    this.layouts.forget();
    this.chosen = this.line = null;
    this.fitted = false;
  }

  get graph() {
    return this.state?.variants.find(({ key }) => key === this.variant)?.graph ?? -1;
  }

  /** @param {string} key */
  switchTo(key) {
    this.variant = key;
    this.forget();
    this.redraw();
  }

  /** @param {string} name */
  box(name) {
    return this.picture.boxes.find((box) => box.name === name) ?? null;
  }

  /** Draws what is visible now. @param {string} [anchor] a box or frame that shall not move on the screen */
  async redraw(anchor) {
    const { state, graph } = this;
    if (!state) return;
    this.drawHead(state);
    if (graph < 0) return;
    const picture = visible(state.graphs, graph, (name, byDefault) => this.opened.get(name) ?? byDefault);
    const words = new Map(picture.boxes.map((box) => [box.name, wordsOf(state, box)]));
    const sizes = new Map([...words].map(([name, text]) => [name, sizeOf(text)]));
    const key = [graph, ...picture.boxes.map(({ name }) => name)].join(" ");
    const drawing = await this.layouts.of(key, picture, sizes);
    if (!drawing || state !== this.state) return;
    const before = anchor ? this.placeOf(anchor) : null;
    [this.picture, this.drawing] = [picture, drawing];
    const actions = {
      select: (/** @type {string} */ name) => this.camera?.dragged || this.choose(name),
      toggle: (/** @type {string} */ name) => this.toggle(name),
      where: (/** @type {Box} */ box) => (box.kind === "node" ? placeOf(state, positionsOf(state, box)[0]) : ""),
    };
    this.stage?.replaceChildren(scene(picture, drawing, words, actions, this.arrow));
    this.outline?.draw(picture, words);
    this.drawSource(state, graph);
    const now = anchor ? this.placeOf(anchor) : null;
    if (before && now) this.camera?.keep(before, now);
    if (!this.fitted) this.fit(false);
    this.drawCount(state, graph);
    this.highlight();
    this.outline?.restoreFocus();
  }

  /** @param {GraphState} state */
  drawHead(state) {
    const trace = state.trace === undefined ? "" : `trace #${state.trace + 1} of ${state.traces}`;
    const signature = state.signature ?? "";
    this.title?.replaceChildren(h("b", {}, state.title), " ", h("span", { class: "ll-quiet" }, trace));
    this.title?.setAttribute("title", signature);
    const labels = /** @type {Record<string, string>} */ ({ traced: "Traced", optimised: "Optimised" });
    this.variants?.replaceChildren(
      ...(state.variants.length < 2 ? [] : state.variants).map(({ key }) =>
        button(`Show the ${key} graph`, () => this.switchTo(key), { "aria-pressed": key === this.variant }, labels[key]),
      ),
    );
    for (const part of [this.body, this.foot]) part?.toggleAttribute("hidden", this.graph < 0);
    this.message?.toggleAttribute("hidden", this.graph >= 0);
    if (this.message) this.message.textContent = state.empty ?? "";
  }

  /** @param {GraphState} state @param {number} graph */
  drawCount(state, graph) {
    const closed = this.picture.boxes.filter(({ kind }) => kind === "group").length;
    const ops = counted(state.graphs[graph].nodes.length, "op");
    if (this.count) this.count.textContent = closed ? `${ops}, ${counted(closed, "group")} closed` : ops;
  }

  /** @param {GraphState} state @param {number} graph */
  drawSource(state, graph) {
    if (this.sourceOf === state.graphs[graph]) return;
    this.sourceOf = state.graphs[graph];
    const counts = new Map();
    for (const [index, { inline }] of state.graphs[graph].nodes.entries()) {
      if (inline) continue;
      const box = /** @type {Box} */ ({ name: "", kind: "node", graph, index, parent: "" });
      for (const [source, line] of positionsOf(state, box)) {
        counts.set(lineKey(source, line), (counts.get(lineKey(source, line)) ?? 0) + 1);
      }
    }
    this.source?.draw(state, counts);
  }

  /** @param {string} name @returns {Rectangle | null} */
  placeOf(name) {
    return this.drawing.boxes.get(name) ?? this.drawing.frames.get(name) ?? null;
  }

  /** @param {boolean} [all] whether everything must be seen, be it too small to read */
  fit(all = true) {
    if (!this.camera || !this.drawing.width || !this.svg?.clientWidth) return;
    this.camera.fit(this.drawing, all);
    this.fitted = true;
  }

  /**
   * Chooses a box, and shows where it comes from.
   * @param {string | null} name null for none @param {boolean} [reveal] whether to move the picture if need be
   */
  choose(name, reveal = true) {
    this.chosen = name;
    this.line = null;
    this.highlight();
    const place = name && reveal ? this.placeOf(name) : null;
    if (place) this.camera?.reveal(place);
  }

  /** Chooses a line of code, and lights the boxes that it made. @param {string} key */
  chooseLine(key) {
    this.line = this.line === key ? null : key;
    this.chosen = null;
    this.highlight();
    const first = this.state && this.picture.boxes.find((box) => this.line && this.isFrom(/** @type {GraphState} */ (this.state), box, this.line));
    const place = first ? this.placeOf(first.name) : null;
    if (place) this.camera?.reveal(place);
  }

  highlight() {
    const { state, highlights } = this;
    if (!state || !highlights) return;
    const box = this.chosen ? this.box(this.chosen) : null;
    const keys = box ? positionsOf(state, box).map(([source, line]) => lineKey(source, line)) : [];
    const strong = this.line ? [this.line] : box?.kind === "group" ? [...new Set(keys)] : keys.slice(0, 1);
    const lit = this.line ? this.picture.boxes.filter((other) => this.isFrom(state, other, this.line)) : [];
    highlights.set(box?.name ?? null, lit.map(({ name }) => name), this.foundBoxes());
    this.outline?.choose(box?.name ?? null);
    if (this.line) this.say(`${counted(lit.length, "box", "boxes")} from this line`);
    const links = {
      chooseLine: (/** @type {string} */ key) => this.chooseLine(key),
      toggle: (/** @type {string} */ name) => this.toggle(name),
      goTo: (/** @type {string} */ variant, /** @type {number} */ node) => this.goTo(variant, node),
    };
    this.details?.replaceChildren(...details(state, box, links));
    this.source?.light(strong, box?.kind === "node" ? keys.slice(1) : []);
    this.onLines(strong.map((key) => placeOfKey(state, key)));
  }

  /** Chooses a line by the name of its cell or file, as a list of lines beside the view knows it. @param {string} label @param {number} line */
  chooseSource(label, line) {
    const keys = (this.state?.sources ?? []).flatMap((one, index) => (one.label === label ? [lineKey(index, line)] : []));
    const key = keys.find((one) => this.source?.lines.has(one)) ?? keys[0]; // a cell may be known under two file names
    if (key) this.chooseLine(key);
  }

  /** Shows a node of a version of the graph, wherever it is hidden. @param {string} variant @param {number} node */
  async goTo(variant, node) {
    if (variant !== this.variant) {
      this.variant = variant;
      this.forget();
    }
    for (const group of this.groupsAround(node)) this.opened.set(`g${group}`, true);
    await this.redraw();
    this.choose(this.box(`n${node}`)?.name ?? null);
  }

  /** @param {GraphState} state @param {Box} box @param {string | null} key */
  isFrom(state, box, key) {
    return positionsOf(state, box).some(([source, line]) => lineKey(source, line) === key);
  }

  /** Opens a closed group or call, closes an open one; what was chosen stays within it. @param {string} name */
  async toggle(name) {
    const open = !this.drawing.frames.has(name);
    this.opened.set(name, open);
    const focused = this.canvas?.contains(document.activeElement);
    await this.redraw(name);
    const inside = this.picture.boxes.find(({ parent }) => parent === name || parent.startsWith(`${name}.`));
    this.choose(open ? (inside?.name ?? null) : name, Boolean(focused)); // with the mouse, nothing moves
    if (focused) focusPicture(this);
  }

  /** @param {boolean} open */
  async openAll(open) {
    const { state, graph } = this;
    if (!state || graph < 0) return;
    for (const index of state.graphs[graph].groups.keys()) this.opened.set(`g${index}`, open);
    if (!open) for (const name of this.opened.keys()) this.opened.set(name, false);
    this.fitted = false;
    await this.redraw();
  }

  seek() {
    const { state, search } = this;
    const query = search?.value ?? "";
    const nodes = state && this.graph >= 0 ? find(state, this.graph, query) : [];
    this.found = { nodes, at: -1, test: state && deepMatcher(state, query) };
    this.say(search?.value.trim() ? counted(nodes.length, "match", "matches") : "");
    this.highlight();
  }

  /** The boxes that hold what was found. */
  foundBoxes() {
    return this.picture.boxes.filter((box) => this.holds(box)).map(({ name }) => name);
  }

  /** Whether a box is, or holds, something that was found. @param {Box} box */
  holds(box) {
    const { state, found } = this;
    const graph = state?.graphs[box.graph];
    if (!graph || !found.test) return false;
    const inside = box.kind === "node" ? [box.index] : box.kind === "group" ? membersOf(graph, box.index) : [];
    return inside.some((index) => found.test?.(graph.nodes[index]));
  }

  /** @param {number} node @returns {number[]} the groups around a node of the graph that is shown, from the inside out */
  groupsAround(node) {
    const { nodes, groups } = /** @type {GraphState} */ (this.state).graphs[this.graph];
    const around = [];
    for (let group = nodes[node].group ?? -1; group >= 0; group = groups[group].parent) around.push(group);
    return around;
  }

  /** Goes to the next match, opening what hides it. @param {number} step */
  async next(step) {
    const { nodes, at } = this.found;
    if (!nodes.length) return;
    this.found.at = at < 0 ? (step > 0 ? 0 : nodes.length - 1) : (at + step + nodes.length) % nodes.length;
    const node = nodes[this.found.at];
    const hidden = this.groupsAround(node).filter((group) => !this.drawing.frames.has(`g${group}`));
    for (const group of hidden) this.opened.set(`g${group}`, true);
    if (hidden.length) await this.redraw();
    const inside = this.picture.boxes.find((box) => box.name.startsWith(`n${node}.`) && this.holds(box));
    this.choose(this.box(`n${node}`)?.name ?? inside?.name ?? null);
    this.say(`${this.found.at + 1} of ${counted(nodes.length, "match", "matches")}`);
  }

  /** @param {KeyboardEvent} event */
  onSearchKey(event) {
    if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      if (this.search) this.search.value = "";
      this.seek();
      focusPicture(this);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  showHelp() {
    this.help?.toggleAttribute("hidden");
  }

  /** @param {string} text */
  say(text) {
    if (this.status) this.status.textContent = text;
  }
}

/** Puts the focus on the chosen box, or on the first. @param {GraphView} view */
export function focusPicture(view) {
  view.highlights?.focus();
}
