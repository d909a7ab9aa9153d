// The tape view: what a gradient tape recorded, row by row, with what each row keeps alive.

import { h, m } from "../dom.js";
import { bytes, counted, lineText, number } from "../format.js";
import { lent } from "../lent.js";
import { mathTree } from "../maths.js";
import { SELECT, atLine, selected } from "../selection.js";
import { extend, filtered, oneLine } from "../tables/tape-rows.js";
import { moved, range, scrolledTo } from "../tables/virtual-list.js";
import { bar, emptyState, lineCell, widget } from "../tables/table-view.js";

const CHARACTER = 7.8; // pixels: of a digit, with some room
const ROW = 26; // pixels; the style sheet says the same
const RULE = 20; // more where the rule is below
const LEAST = 80; // pixels of a column of shapes
const COLUMNS = ["#", "op", "line", "saved", "inputs", "output", "gradient rule"]; // shapes may be long: bytes come first

/** @typedef {import("../tables/tape-rows.js").Row} Row */

class TapeTable {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.title = h("span", { class: "ll-title" });
    this.status = h("span", { class: "ll-quiet", role: "status" });
    this.search = /** @type {HTMLInputElement} */ (
      h("input", { type: "search", placeholder: "Find ( / )", "aria-label": "Find entries", size: 14, spellcheck: "false" })
    );
    this.rowsElement = h("div", { class: "ll-rows", role: "presentation" });
    this.spacer = h("div", {}, this.rowsElement);
    this.window = h("div", { class: "ll-window", tabindex: 0, role: "rowgroup", "aria-label": "Entries; arrows move" }, this.spacer);
    const header = h("div", { class: "ll-grid ll-header", role: "row" }, ...COLUMNS.map((name) => h("span", { role: "columnheader" }, name)));
    this.grid = h("div", { class: "ll-tape", role: "table", "aria-label": "Entries of the tape" }, h("div", { role: "rowgroup" }, header), this.window);
    this.detail = h("div", { class: "ll-details ll-row-detail", role: "group", "aria-label": "Entry", "aria-live": "polite" });
    this.hint = h("p", { class: "ll-quiet ll-hint" });
    this.content = h("div", {}, this.grid, this.hint, this.detail);
    this.empty = emptyState(this.content);
    root.append(h("div", { class: "ll-bar" }, this.title, h("span", { class: "ll-spring" }), this.search, this.status));
    root.append(this.empty.sentence, this.content);
    /** @type {Row[]} */
    this.rows = [];
    /** @type {any} */
    this.state = null;
    this.most = 1;
    /** @type {number | null} index of the chosen row among those shown */
    this.at = null;
    this.window.addEventListener("scroll", () => this.drawRows());
    this.window.addEventListener("keydown", (event) => this.onKey(event));
    this.search.addEventListener("input", () => this.filter());
    root.addEventListener(SELECT, (event) => this.bringToSight(/** @type {CustomEvent} */ (event).detail));
    /** @type {number[]} of the columns, as wide as they would be */
    this.widths = [];
    this.rowSize = ROW;
    new ResizeObserver(() => this.arrange()).observe(root);
  }

  /** @param {any} state */
  show(state) {
    const follows = this.window.scrollTop + this.window.clientHeight >= this.spacer.clientHeight - this.rowSize;
    const grew = this.state && state.rows.length > this.state.rows.length;
    this.state = state;
    this.most = state.rows.reduce((/** @type {number} */ most, /** @type {Row} */ row) => Math.max(most, row[5]), 1);
    const widest = (/** @type {number} */ at) => widthOf(state.rows.map((/** @type {Row} */ row) => row[at]));
    const op = Math.min(Math.max(widest(1) * 1.1, 70), 210); // bold
    const [inputs, output] = [3, 4].map((at) => Math.max(widest(at), LEAST));
    const index = (String(state.entries).length + 2) * CHARACTER; // and the sign of what is chosen
    this.widths = [index, op, inputs, output, widest(6)];
    for (const [name, width] of Object.entries({ number: index, op, inputs, output })) this.grid.style.setProperty(`--ll-longest-${name}`, `${width}px`);
    const saved = `${bytes(state.saved)} ${state.released ? "released" : "kept alive"}`;
    const hidden = state.hidden ? `, ${number(state.hidden)} not listed` : "";
    this.title.replaceChildren(
      h("b", {}, "Gradient tape"),
      " ",
      h("span", { class: "ll-quiet" }, `${counted(state.entries, "entry", "entries")}, ${saved}${hidden}`),
    );
    this.empty.say(state.empty);
    this.hint.textContent = state.hint;
    this.arrange();
    if (follows && grew) this.window.scrollTop = this.spacer.clientHeight;
  }

  /** Sets rules below their rows where they would be cut beside them. */
  arrange() {
    if (!this.state || !this.grid.clientWidth) return this.filter();
    const isBeside = oneLine(this.widths, this.grid.clientWidth);
    this.grid.classList.toggle("ll-two-lines", !isBeside);
    this.rowSize = isBeside ? ROW : ROW + RULE;
    this.filter();
  }

  filter() {
    if (!this.state) return;
    const query = this.search.value;
    this.rows = filtered(this.state.rows, query);
    this.status.textContent = query.trim() ? counted(this.rows.length, "match", "matches") : "";
    this.spacer.style.blockSize = `${this.rows.length * this.rowSize}px`;
    this.grid.setAttribute("aria-rowcount", String(this.rows.length + 1));
    if (this.at !== null && this.at >= this.rows.length) this.at = null;
    this.drawRows();
    this.drawDetail();
  }

  drawRows() {
    const [first, last] = range(this.window.scrollTop, this.window.clientHeight, this.rowSize, this.rows.length);
    this.rowsElement.style.transform = `translateY(${first * this.rowSize}px)`;
    this.rowsElement.replaceChildren(...this.rows.slice(first, last).map((row, i) => this.row(row, first + i)));
  }

  /** @param {Row} row @param {number} index */
  row([number_, op, line, inputs, outputs, saved, rule], index) {
    const cell = (/** @type {any} */ content, /** @type {string} */ kind = "") =>
      h("span", { role: "cell", class: kind || null, title: typeof content === "string" ? content : null }, content);
    const chosen = index === this.at;
    return h(
      "div",
      {
        class: chosen ? "ll-grid ll-chosen" : "ll-grid", role: "row", "aria-rowindex": index + 2, onclick: () => this.choose(index),
        dataset: { at: atLine(line) ?? "", silent: "true", tensors: [...inputs, ...outputs].map(nameOf).join("\n") },
      },
      cell(`${chosen ? "▸" : ""}${number_}`, "ll-numeric"),
      cell(h("b", {}, op)),
      cell(lineText(line)),
      cell(bar(saved / this.most, bytes(saved)), "ll-numeric"),
      cell(inputs.join(", ")),
      cell(outputs.join(", ")),
      cell(h("code", {}, rule)),
    );
  }

  /** @param {number} index */
  choose(index) {
    this.at = index;
    const [, op, line, inputs, outputs] = this.rows[index];
    selected(this.grid, { op, line: line && [line[0], line[1]], tensor: [...inputs, ...outputs].map(nameOf).find(Boolean) ?? "" });
    this.window.scrollTop = scrolledTo(index, this.window.scrollTop, this.window.clientHeight, this.rowSize);
    this.drawRows();
    this.drawDetail();
  }

  /** Scrolls to the first row of the chosen line. @param {import("../selection.js").Selection} chosen */
  bringToSight({ line, op }) {
    const ofLine = this.rows.findIndex((row) => line && atLine(row[2]) === atLine(line) && row[1] === op);
    const index = ofLine >= 0 ? ofLine : this.rows.findIndex((row) => line && atLine(row[2]) === atLine(line));
    if (index < 0) return;
    this.window.scrollTop = scrolledTo(index, this.window.scrollTop, this.window.clientHeight, this.rowSize);
    this.drawRows();
  }

  drawDetail() {
    const row = this.at === null ? null : this.rows[this.at];
    this.detail.hidden = !row;
    if (!row) return;
    const [index, op, line, inputs, outputs, saved, rule] = row;
    const facts = [["inputs", inputs.join(", ")], ["output", outputs.join(", ")], ["saved", bytes(saved)]];
    this.detail.replaceChildren(
      h("h4", {}, `${index}  ${op}`, h("span", { class: "ll-kind" }, lineCell(line))),
      h("dl", {}, ...facts.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
      h("div", { class: "ll-formula" }, "gradient ", ...formula(rule)),
    );
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key === "/") this.search.focus();
    else {
      const page = Math.max(Math.floor(this.window.clientHeight / this.rowSize) - 1, 1);
      const next = moved(event.key, this.at ?? -1, page, this.rows.length);
      if (next === null || !this.rows.length) return;
      this.choose(next);
    }
    event.preventDefault();
  }
}

/** The rule as it is set in books, and beside it as plain text. @param {string} rule */
function formula(rule) {
  const plain = h("code", { class: "ll-rule" }, rule || "none");
  return rule ? [m(mathTree(rule)), " ", plain] : [plain];
}

/** The name of a variable in "dense.kernel f32[3,4]". @param {string} text */
function nameOf(text) {
  return text.includes(" ") ? text.split(" ")[0] : "";
}

/** Pixels for the longest text, so that no shape is cut. @param {(string | string[])[]} texts */
function widthOf(texts) {
  return texts.reduce((most, text) => Math.max(most, [text].flat().join(", ").length), 0) * CHARACTER;
}

/** @param {HTMLElement} root */
function build(root) {
  const table = new TapeTable(root);
  return (/** @type {any} */ state) => table.show(state);
}

export default lent(widget("tape", "Gradient tape", build, extend));
