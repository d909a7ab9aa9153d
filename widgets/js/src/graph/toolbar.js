// The bar above a graph.

import { turnDrawer } from "./drawer.js";
import { button, h } from "../dom.js";
import { OVERLAYS } from "./overlays.js";
import { saveMenu } from "./save-menu.js";

/** @param {import("./view.js").GraphView} view */
export function toolbar(view) {
  const title = h("span", { class: "ll-title" });
  const variants = h("span", { class: "ll-switch", role: "group", "aria-label": "Version of the graph" });
  const count = h("span", { class: "ll-quiet ll-count" });
  const search = /** @type {HTMLInputElement} */ (
    h("input", { type: "search", placeholder: "Find ( / )", "aria-label": "Find ops", size: 12, spellcheck: "false" })
  );
  search.addEventListener("input", () => view.results.seek());
  search.addEventListener("keydown", (event) => view.results.onKey(event));
  const tool = (/** @type {string} */ label, /** @type {() => void} */ action, /** @type {string} */ sign) =>
    button(label, action, {}, sign);
  const tools = [
    tool("Open all groups and functions", () => view.openAll(true), "⊞"),
    tool("Close all groups and functions", () => view.openAll(false), "⊟"),
    tool("Zoom out", () => view.camera?.zoom(1 / 1.25), "−"),
    tool("Zoom in", () => view.camera?.zoom(1.25), "+"),
    tool("Fit", () => view.fit(true), "Fit"),
    tool("Show or hide the code", () => turnDrawer(view), "{ }"),
    tool("Larger type, for a projector", () => view.project(), "A"),
    tool("Keys", () => view.showHelp(), "?"),
  ];
  const options = Object.entries(OVERLAYS).map(([name, [label]]) => h("option", { value: name }, label));
  const overlays = /** @type {HTMLSelectElement} */ (
    h("select", { class: "ll-overlays", "aria-label": "Told on the boxes", title: "Told on the boxes" }, h("option", { value: "" }, "Overlay"), ...options)
  );
  overlays.addEventListener("change", () => view.tell(overlays.value));
  const matches = h("span", { class: "ll-quiet ll-matches", "aria-hidden": "true" }); // said in the status below as well
  const heading = h("span", { class: "ll-heading" }, title, variants, count, matches); // where it takes of the count's room, and moves nothing
  const offered = h("span", { class: "ll-tools" }, search, overlays, ...tools, saveMenu(view));
  const element = h("div", { class: "ll-bar", role: "toolbar", "aria-label": "Graph tools" }, heading, offered);
  return { element, title, variants, count, search, matches, overlays, tools: offered };
}
