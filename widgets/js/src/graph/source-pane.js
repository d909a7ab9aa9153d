// The lines of code that made the graph. Choosing one lights its boxes; a chosen box lights its lines.

import { h } from "../dom.js";
import { sentence, short } from "./line-counts.js";
import { lineKey } from "./line-key.js";

/**
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {import("./box-text.js").Position} Position
 * @typedef {import("./line-counts.js").LineCount} LineCount
 */

export class SourcePane {
  /** @param {(key: string) => void} choose called with the key of a line that the reader chose */
  constructor(choose) {
    this.choose = choose;
    this.element = h("div", { class: "ll-source", role: "group", "aria-label": "Source code" });
    /** @type {Map<string, HTMLElement>} */
    this.lines = new Map();
    this.shown = ""; // the line that was to be seen last
  }

  /** @param {GraphState} state @param {Map<string, LineCount>} counts how many ops each line made, by `lineKey` */
  draw(state, counts) {
    this.lines.clear();
    const sections = state.sources.flatMap((source, index) => this.section(source, index, counts));
    const none = h("p", { class: "ll-quiet" }, "The lines that made this graph are not known.");
    this.element.replaceChildren(...(sections.length ? sections : [none]));
    const first = this.lines.values().next().value;
    this.shown = "";
    if (first) first.tabIndex = 0;
    this.reveal();
  }

  /** @param {{label: string, first: number, text: string[]}} source @param {number} index @param {Map<string, LineCount>} counts */
  section({ label, first, text }, index, counts) {
    if (!text.length) return [];
    const rows = text.map((code, i) => {
      const key = lineKey(index, first + i);
      const count = counts.get(key);
      const said = count ? sentence(count) : "";
      const row = h(
        "div",
        { class: "ll-line", dataset: { line: key } },
        h("span", { class: "ll-mark", "aria-hidden": "true" }),
        h("span", { class: "ll-ops", title: said || null }, ...(count ? badges(count) : [])),
        h("span", { class: "ll-number" }, first + i),
        h("span", { class: "ll-code" }, code || " "),
      );
      if (said) this.makeChoosable(row, key, `${label} line ${first + i}, ${said}: ${code.trim()}`);
      return row;
    });
    return [h("div", { class: "ll-file" }, label), h("div", {}, ...rows)];
  }

  /** @param {HTMLElement} row @param {string} key @param {string} label */
  makeChoosable(row, key, label) {
    this.lines.set(key, row);
    row.classList.add("ll-choosable");
    row.setAttribute("role", "button");
    row.setAttribute("aria-pressed", "false");
    row.setAttribute("aria-label", label);
    row.tabIndex = -1;
    row.addEventListener("click", () => this.choose(key));
    row.addEventListener("keydown", (event) => this.onKey(event, key));
  }

  /** @param {KeyboardEvent} event @param {string} key */
  onKey(event, key) {
    const rows = [...this.lines.values()];
    const at = rows.indexOf(/** @type {HTMLElement} */ (event.currentTarget));
    const next = event.key === "ArrowDown" ? rows[at + 1] : event.key === "ArrowUp" ? rows[at - 1] : null;
    if (next) {
      for (const row of rows) row.tabIndex = row === next ? 0 : -1;
      next.focus();
    } else if (event.key === "Enter" || event.key === " ") this.choose(key);
    else if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
  }

  /**
   * Lights lines: the innermost position of the chosen box, and weaker the calls that led there.
   * @param {string[]} strong @param {string[]} weak
   */
  light(strong, weak) {
    for (const row of this.element.querySelectorAll(".ll-line")) {
      const key = /** @type {HTMLElement} */ (row).dataset.line ?? "";
      const chosen = strong.includes(key);
      row.classList.toggle("ll-chosen", chosen);
      row.classList.toggle("ll-caller", !chosen && weak.includes(key));
      if (row.hasAttribute("aria-pressed")) row.setAttribute("aria-pressed", String(chosen));
      const mark = row.querySelector(".ll-mark");
      if (mark) mark.textContent = chosen ? "▸" : weak.includes(key) ? "·" : "";
    }
    this.shown = strong[0] ?? "";
    if (this.lines.has(this.shown)) this.reveal();
  }

  /** Brings the chosen line to sight, or else the first that made an op: again where the pane had no room before. */
  reveal() {
    const row = this.lines.get(this.shown) ?? this.lines.values().next().value;
    if (row) this.scrollTo(row);
  }

  /** Scrolls within the pane only: the page must not jump. @param {HTMLElement} row */
  scrollTo(row) {
    const pane = this.element;
    const top = row.offsetTop - pane.offsetTop;
    if (top < pane.scrollTop || top + row.offsetHeight > pane.scrollTop + pane.clientHeight) {
      pane.scrollTop = Math.max(top - pane.clientHeight / 3, 0);
    }
  }
}

/** The ops of the graph itself, and behind a sign those in functions that it calls. @param {LineCount} count */
function badges(count) {
  const [own, inside] = [short(count, "own"), short(count, "inside")];
  return [
    own && h("span", { class: "ll-badge" }, own),
    inside && h("span", { class: "ll-badge" }, `ƒ ${inside}`),
  ];
}
