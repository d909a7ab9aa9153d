// What stands beside the picture: the code or the listing of the ops, and below them all that is known of what is chosen.

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

const COUNTS =
  "Each op counts once, at the innermost line of a cell or file that led to it. ƒ: ops in functions that the graph calls.";

export class SidePanes {
  /** @param {SideActions} actions */
  constructor({ chooseLine, chooseOp, turned }) {
    this.turned = turned;
    this.source = new SourcePane(chooseLine);
    this.ops = new OpsPane(chooseOp);
    this.ops.element.hidden = true;
    this.tabs = h("div", { class: "ll-tabs", role: "group", "aria-label": "Beside the graph" });
    this.details = h("div", { class: "ll-details", role: "group", "aria-label": "Details", "aria-live": "polite" });
    this.element = h("div", { class: "ll-side" }, this.tabs, this.source.element, this.ops.element, this.details);
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

  /** Shows the other of the two: the code, or the listing of the ops. */
  turn() {
    const [code, listing] = [this.source.element, this.ops.element];
    [code.hidden, listing.hidden] = [!code.hidden, code.hidden];
    this.drawTabs();
    this.turned(code.hidden ? "listing" : "code");
  }

  drawTabs() {
    const listing = this.source.element.hidden;
    const tab = (/** @type {string} */ name, /** @type {boolean} */ shown, /** @type {string} */ title) =>
      button(title, () => shown || this.turn(), { "aria-pressed": shown }, name);
    replaceKeepingFocus(
      this.tabs,
      h("span", { class: "ll-switch" }, tab("Code", !listing, "Show the code"), tab("Listing", listing, "Show the listing of the ops")),
      h("span", { class: "ll-quiet", title: COUNTS }, listing ? "in the order in which they run" : this.versions),
    );
  }

  /**
   * Shows what is known about what is chosen, and its places in the code and the listing.
   * @param {HTMLElement[]} details @param {Box | null} box @param {string[]} strong @param {string[]} weak lines, by `lineKey`
   */
  light(details, box, strong, weak) {
    this.details.replaceChildren(...details);
    this.source.light(strong, weak);
    const path = box?.kind === "node" ? this.ops.paths.get(box.graph) : undefined;
    this.ops.light(box?.kind === "node" ? box.name : null, path === undefined ? "" : `${path}n${box?.index}`);
  }
}
