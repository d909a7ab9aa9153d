// The checkpoint view: what is in a file, how it is matched with objects, or how two files differ, a row for each value.

import { button, h } from "../dom.js";
import { counted, number } from "../format.js";
import { lent } from "../lent.js";
import { moved, range, scrolledTo } from "../tables/virtual-list.js";
import { emptyState, widget } from "../tables/table-view.js";

const CHARACTER = 7.4; // pixels of a character, about
const WIDEST = 340;
const SIGN = 26; // pixels of a sign before a word, and of the word's being bold
const ROW = 26; // pixels; the style sheet says the same
const LINE = 18; // of a cell that goes on in more lines
const NARROWEST = 170; // of the column that does
const WRAPPED = "why";
const SIGNS = /** @type {Record<string, string>} */ ({
  matched: "✓", equal: "=", waiting: "…", unused: "∅", mismatched: "✗", new: "+", added: "+", removed: "−", changed: "≠",
});

class SavedTable {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.title = h("span", { class: "ll-title" });
    this.status = h("span", { class: "ll-quiet", role: "status" });
    this.search = /** @type {HTMLInputElement} */ (
      h("input", { type: "search", placeholder: "Find ( / )", "aria-label": "Find values", size: 14, spellcheck: "false" })
    );
    this.kinds = h("div", { class: "ll-bar", role: "group", "aria-label": "Show only" });
    this.rowsElement = h("div", { class: "ll-rows", role: "presentation" });
    this.spacer = h("div", {}, this.rowsElement);
    this.window = h("div", { class: "ll-window", tabindex: 0, role: "rowgroup", "aria-label": "Values; arrows move" }, this.spacer);
    this.header = h("div", { class: "ll-grid ll-header", role: "row" });
    this.grid = h("div", { class: "ll-tape", role: "table", "aria-label": "Saved values" }, h("div", { role: "rowgroup" }, this.header), this.window);
    this.detail = h("div", { class: "ll-details ll-row-detail", role: "group", "aria-label": "Value", "aria-live": "polite" });
    this.content = h("div", {}, this.kinds, this.grid, this.detail);
    this.empty = emptyState(this.content);
    root.append(h("div", { class: "ll-bar" }, this.title, h("span", { class: "ll-spring" }), this.search, this.status));
    root.append(this.empty.sentence, this.content);
    /** @type {any} */
    this.state = null;
    /** @type {number[]} the places in the state of the rows that are shown */
    this.shown = [];
    this.only = "";
    this.height = ROW; // of a row
    /** @type {string | null} the path of the chosen row, which outlives an update */
    this.chosen = null;
    this.window.addEventListener("scroll", () => this.drawRows());
    this.window.addEventListener("keydown", (event) => this.onKey(event));
    this.search.addEventListener("input", () => this.filter());
    new ResizeObserver(() => {
      this.arrange();
      this.drawRows();
    }).observe(this.window);
  }

  /** @param {any} state */
  show(state) {
    this.state = state;
    const hidden = state.hidden ? `, ${number(state.hidden)} not listed` : "";
    this.title.replaceChildren(h("b", {}, state.heading), " ", h("span", { class: "ll-quiet" }, `${state.headline}${hidden}`));
    this.empty.say(state.empty);
    if (!(this.only in state.counts)) this.only = "";
    this.arrange();
    this.header.replaceChildren(...state.columns.map((/** @type {string} */ name) => h("span", { role: "columnheader" }, name)));
    this.drawKinds();
    this.filter();
  }

  /** The widths of the columns, and the height of the rows: where there is little room, reasons go on in more lines. */
  arrange() {
    const { state } = this;
    if (!state) return;
    const longest = state.columns.map((/** @type {string} */ name, /** @type {number} */ i) =>
      state.rows.reduce((/** @type {number} */ most, /** @type {string[]} */ row) => Math.max(most, row[i].length), name.length));
    const widths = longest.map((/** @type {number} */ most, /** @type {number} */ i) => {
      const sign = state.rows.some((/** @type {string[]} */ row, /** @type {number} */ at) => row[i] && row[i] === state.states[at]) ? SIGN : 0;
      return Math.min(Math.ceil(most * CHARACTER) + 22 + sign, WIDEST);
    });
    const sum = () => widths.reduce((/** @type {number} */ all, /** @type {number} */ width) => all + width + 10, 16);
    const why = state.columns.indexOf(WRAPPED);
    const beyond = sum() - (this.grid.clientWidth || Infinity);
    if (why >= 0 && beyond > 0) widths[why] = Math.max(widths[why] - beyond, Math.min(NARROWEST, widths[why]));
    const lines = why < 0 ? 1 : Math.ceil((longest[why] * CHARACTER + 12) / widths[why]); // 12: words do not fill a line
    this.height = lines > 1 ? lines * LINE + ROW - LINE : ROW;
    this.grid.style.setProperty("--ll-row", `${this.height}px`);
    this.grid.style.setProperty("--ll-columns", widths.map((/** @type {number} */ width) => `minmax(${width}px, ${width}fr)`).join(" "));
    this.grid.style.setProperty("--ll-tape-least", `${sum()}px`);
    this.spacer.style.blockSize = `${this.shown.length * this.height}px`;
  }

  drawKinds() {
    const kinds = Object.entries(this.state.counts);
    this.kinds.hidden = kinds.length < 2;
    this.kinds.replaceChildren(...kinds.map(([kind, count]) => {
      const pressed = () => {
        this.only = this.only === kind ? "" : kind;
        this.drawKinds();
        this.filter();
        /** @type {HTMLElement | null} */ (this.kinds.querySelector(`[data-kind="${kind}"]`))?.focus();
      };
      const made = button(`${SIGNS[kind] ?? ""} ${number(/** @type {number} */ (count))} ${kind}`, pressed);
      made.dataset.kind = kind;
      made.setAttribute("aria-pressed", String(this.only === kind));
      return made;
    }));
  }

  filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const { rows, states } = this.state;
    this.shown = [...rows.keys()].filter((at) => {
      const text = rows[at].join(" ").toLowerCase();
      return (!this.only || states[at] === this.only) && words.every((word) => text.includes(word));
    });
    this.status.textContent = words.length ? counted(this.shown.length, "match", "matches") : "";
    this.spacer.style.blockSize = `${this.shown.length * this.height}px`;
    this.grid.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.drawRows();
    this.drawDetail();
  }

  /** The place of the chosen row among those shown, -1 where it is not. */
  at() {
    return this.chosen === null ? -1 : this.shown.findIndex((at) => key(this.state.rows[at]) === this.chosen);
  }

  drawRows() {
    const [first, last] = range(this.window.scrollTop, this.window.clientHeight, this.height, this.shown.length);
    const chosen = this.at();
    this.rowsElement.style.transform = `translateY(${first * this.height}px)`;
    this.rowsElement.replaceChildren(...this.shown.slice(first, last).map((at, i) => this.row(at, first + i, first + i === chosen)));
  }

  /** @param {number} at @param {number} index @param {boolean} chosen */
  row(at, index, chosen) {
    const { rows, states } = this.state;
    const cells = rows[at].map((/** @type {string} */ text, /** @type {number} */ i) => {
      const isState = text === states[at] && SIGNS[text] && this.state.columns[i] !== "saved at";
      const name = this.state.columns[i] === WRAPPED ? "ll-wrapped" : null;
      return h("span", { role: "cell", title: text, class: name }, isState ? h("b", {}, `${SIGNS[text]} ${text}`) : text);
    });
    return h("div", { class: chosen ? "ll-grid ll-chosen" : "ll-grid", role: "row", "aria-rowindex": index + 2, onclick: () => this.choose(index) }, ...cells);
  }

  /** @param {number} index */
  choose(index) {
    this.chosen = key(this.state.rows[this.shown[index]]);
    this.window.scrollTop = scrolledTo(index, this.window.scrollTop, this.window.clientHeight, this.height);
    this.drawRows();
    this.drawDetail();
  }

  drawDetail() {
    const at = this.shown[this.at()];
    this.detail.hidden = at === undefined;
    if (at === undefined) return;
    const facts = this.state.columns.map((/** @type {string} */ name, /** @type {number} */ i) => [name, this.state.rows[at][i]]);
    const told = facts.filter((/** @type {string[]} */ [, text]) => text);
    this.detail.replaceChildren(h("dl", {}, ...told.flatMap((/** @type {string[]} */ [name, text]) => [h("dt", {}, name), h("dd", {}, text)])));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key === "/") this.search.focus();
    else {
      const page = Math.max(Math.floor(this.window.clientHeight / this.height) - 1, 1);
      const next = moved(event.key, this.at(), page, this.shown.length);
      if (next === null || !this.shown.length) return;
      this.choose(next);
    }
    event.preventDefault();
  }
}

/** What a row is known by: where it was saved, or where its object is. @param {string[]} row */
function key(row) {
  return row[0] || `object ${row[1]}`;
}

/** @param {HTMLElement} root */
function build(root) {
  const table = new SavedTable(root);
  return (/** @type {any} */ state) => table.show(state);
}

export default lent(widget("checkpoint", "Checkpoint", build));
