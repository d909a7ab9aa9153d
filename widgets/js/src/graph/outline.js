// The picture as a tree of words, for screen readers and for those who prefer reading: the same boxes, the same choice.

import { h } from "../dom.js";
import { counted } from "../format.js";
import { GLYPHS } from "./box-text.js";

/**
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./box-text.js").Words} Words
 *
 * @typedef {object} OutlineActions
 * @property {(name: string) => void} select @property {(name: string) => void} toggle
 */

export class Outline {
  /** @param {OutlineActions} actions */
  constructor(actions) {
    this.actions = actions;
    this.tree = h("ul", { role: "tree", "aria-label": "Graph outline", onkeydown: (/** @type {KeyboardEvent} */ e) => this.onKey(e) });
    this.summary = h("summary", {}, "Outline");
    this.element = /** @type {HTMLDetailsElement} */ (h("details", { class: "ll-outline-pane" }, this.summary, this.tree));
    /** @type {Map<string, HTMLElement>} */
    this.items = new Map();
    /** @type {(() => void) | null} lists what is to be listed when somebody looks */
    this.waiting = null;
    /** @type {string | null} */
    this.chosen = null;
    this.element.addEventListener("toggle", () => this.list());
  }

  /** @param {Picture} picture @param {Map<string, Words>} words */
  draw(picture, words) {
    this.summary.textContent = `Outline: ${counted(picture.boxes.length, "box", "boxes")}`;
    this.waiting = () => this.fill(picture, words);
    this.list();
  }

  list() {
    if (!this.waiting || !this.element.open) return;
    this.waiting();
    this.waiting = null;
    this.choose(this.chosen);
  }

  /** @param {Picture} picture @param {Map<string, Words>} words */
  fill(picture, words) {
    this.items.clear();
    const children = new Map([["", this.tree], ...picture.frames.map(({ name }) => /** @type {const} */ ([name, h("ul", { role: "group" })]))]);
    const frames = new Map(picture.frames.map((frame) => [frame.name, frame]));
    this.tree.replaceChildren();
    const placed = new Set();
    /** @param {string} name @param {string} parent @param {string} text @param {Node | null} inside @param {boolean} opens */
    const place = (name, parent, text, inside, opens) => {
      const expanded = !opens ? null : inside ? "true" : "false";
      const item = h(
        "li",
        { role: "treeitem", tabindex: -1, "aria-expanded": expanded, "aria-selected": "false", dataset: { item: name } },
        h("span", { onclick: () => this.actions.select(name) }, `${!opens ? "" : expanded === "true" ? "⊟ " : "⊞ "}${text}`),
        inside,
      );
      this.items.set(name, item);
      children.get(parent)?.append(item);
    };
    /** @param {string} name frames stand where their first box does */
    const placeFrames = (name) => {
      const frame = frames.get(name);
      if (!frame || placed.has(name)) return;
      placed.add(name);
      placeFrames(frame.parent);
      place(name, frame.parent, frame.fused ? `${GLYPHS.fused} ${frame.label}` : frame.label, children.get(name) ?? null, !frame.fused);
    };
    for (const { name, parent, opens } of picture.boxes) {
      placeFrames(parent);
      place(name, parent, words.get(name)?.full ?? name, null, opens ?? false);
    }
  }

  /** @param {string | null} name */
  choose(name) {
    this.chosen = name;
    for (const [key, item] of this.items) {
      item.setAttribute("aria-selected", String(key === name));
      item.tabIndex = key === name ? 0 : -1;
    }
    if (!name || !this.items.has(name)) [...this.items.values()][0]?.setAttribute("tabindex", "0");
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const item = /** @type {HTMLElement} */ (event.target).closest("li");
    const name = item?.dataset.item;
    if (!item || !name) return;
    const items = [...this.items.values()];
    const at = items.indexOf(item);
    const expanded = item.getAttribute("aria-expanded");
    if (event.key === "ArrowDown") items[at + 1]?.focus();
    else if (event.key === "ArrowUp") items[at - 1]?.focus();
    else if (event.key === "ArrowRight" && expanded === "false") this.reopen(name);
    else if (event.key === "ArrowLeft" && expanded === "true") this.reopen(name);
    else if (event.key === "Enter" || event.key === " ") this.actions.select(name);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} name */
  reopen(name) {
    this.refocus = name;
    this.actions.toggle(name);
  }

  /** Puts the focus back after a redrawing that was asked for from here. */
  restoreFocus() {
    if (this.refocus) this.items.get(this.refocus)?.focus();
    this.refocus = "";
  }
}
