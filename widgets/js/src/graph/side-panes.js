// What stands beside the picture: the code or the listing of the ops, and below them all that is known of what is chosen.
// Where it is low, as in a dashboard on a small screen, these have a tab like the others: two panes would be a line each.

import { button, h, replaceKeepingFocus } from "../dom.js";
import { lineCounts } from "./line-counts.js";
import { OpsPane, rowsOf } from "./ops-pane.js";
import { places } from "./box-paths.js";
import { SourcePane } from "./source-pane.js";

/**
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./box-text.js").GraphState} GraphState
 *
 * @typedef {object} SideActions
 * @property {(key: string) => void} chooseLine @property {(name: string) => void} chooseOp
 * @property {(shown: string) => void} turned told what is shown now
 */

const LOW = 190; // pixels of height below which one of two panes, one below the other, has no room for three lines

const COUNTS =
  "Each op counts once, at the innermost line that led to it. ƒ: ops in functions that the graph calls.";

export class SidePanes {
  /** @param {SideActions} actions */
  constructor({ chooseLine, chooseOp, turned }) {
    this.turned = turned;
    this.source = new SourcePane(chooseLine);
    this.ops = new OpsPane(chooseOp);
    this.shown = "code"; // or "listing", or "details" where they stand alone
    this.low = false;
    this.height = 0;
    this.tabs = h("div", { class: "ll-tabs", role: "group", "aria-label": "Beside the graph" });
    this.details = h("div", { class: "ll-details", role: "group", "aria-label": "Details", "aria-live": "polite" });
    this.element = h("div", { class: "ll-side" }, this.tabs, this.source.element, this.ops.element, this.details);
    this.arrange();
    new ResizeObserver(() => this.fit()).observe(this.element);
    /** @type {import("./visible-boxes.js").Graph | null} what is shown */
    this.of = null;
    this.versions = "";
  }

  /** @param {GraphState} state @param {string} variant @param {number} graph */
  draw(state, variant, graph) {
    const versions = state.variants.length === 1 ? "ops" : variant === "traced" ? "ops traced" : "ops traced → run";
    if (this.of === state.graphs[graph] && this.versions === versions) return;
    [this.of, this.versions] = [state.graphs[graph], versions];
    this.source.draw(state, lineCounts(state, variant));
    this.ops.draw(() => rowsOf(state, graph), places(state.graphs, graph));
    this.drawTabs();
  }

  /** Shows the code, the listing of the ops, or the details, which are seen anyway where there is room. @param {string} name */
  show(name) {
    this.shown = name;
    this.arrange();
  }

  /** The same for a reader who asks for it: without a name the listing, or the code again. @param {string} [name] */
  turn(name = this.shown === "listing" ? "code" : "listing") {
    this.show(name);
    this.turned(name);
  }

  /** The room is another. */
  fit() {
    const { clientHeight: height } = this.element;
    const low = height > 0 && height < LOW && getComputedStyle(this.element).display === "flex"; // in a grid they stand side by side
    if (low !== this.low) {
      this.low = low;
      this.arrange();
    }
    if (height && !this.height) this.source.reveal(); // what was chosen before it had any
    this.height = height;
  }

  arrange() {
    const alone = this.low && this.shown === "details";
    this.element.classList.toggle("ll-low", this.low);
    this.source.element.hidden = alone || this.shown === "listing";
    this.ops.element.hidden = this.shown !== "listing";
    this.details.hidden = this.low && !alone;
    if (!this.source.element.hidden) this.source.reveal(); // what was chosen while it was not seen
    this.drawTabs();
  }

  drawTabs() {
    const listing = this.shown === "listing";
    const tab = (/** @type {string} */ label, /** @type {string} */ name, /** @type {HTMLElement} */ { hidden }, /** @type {string} */ title) =>
      button(title, () => hidden && this.turn(name), { "aria-pressed": !hidden }, label);
    replaceKeepingFocus(
      this.tabs,
      h("span", { class: "ll-switch" },
        tab("Code", "code", this.source.element, "Show the code"),
        tab("Listing", "listing", this.ops.element, "Show the listing of the ops"),
        this.low && tab("Details", "details", this.details, "Show what is known of what is chosen"),
      ),
      h("span", { class: "ll-quiet", title: COUNTS }, listing ? "in the order in which they run" : this.versions),
    );
  }

  /**
   * Shows what is known about what is chosen, and its places in the code and the listing.
   * @param {HTMLElement[]} details @param {Box | null} box @param {string[]} strong @param {string[]} weak lines, by `lineKey`
   */
  light(details, box, strong, weak) {
    this.details.replaceChildren(...details);
    if (!box && strong.length && this.shown === "details") this.show("code"); // a line was chosen there
    this.source.light(strong, weak);
    const path = box?.kind === "node" ? this.ops.paths.get(box.graph) : undefined;
    this.ops.light(box?.kind === "node" ? box.name : null, path === undefined ? "" : `${path}n${box?.index}`);
  }
}
