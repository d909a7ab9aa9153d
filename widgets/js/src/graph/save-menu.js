// The menu that saves a graph as a file; needs no kernel.

import { h } from "../dom.js";
import { asJson, dot, listing, modelExplorer } from "./graph-files.js";
import { pngOf, svgText } from "./picture-file.js";

/** @typedef {import("./view.js").GraphView} GraphView */

const KINDS = /** @type {const} */ ([
  ["svg", "SVG picture"], ["png", "PNG picture, twice the size"], ["dot", "DOT for Graphviz"], ["json", "JSON"],
  ["me.json", "JSON for Model Explorer"], ["txt", "text listing"],
]);

/** @param {GraphView} view */
export function saveMenu(view) {
  const options = KINDS.map(([ending, label]) => h("option", { value: ending }, label));
  const select = /** @type {HTMLSelectElement} */ (
    h("select", { class: "ll-save", "aria-label": "Save the graph as a file", title: "Save the graph as a file" }, h("option", { value: "" }, "Save"), ...options)
  );
  select.addEventListener("change", () => {
    const ending = select.value;
    select.value = "";
    if (ending) save(view, ending).catch((error) => view.say(`not saved as .${ending}: ${error.message}`));
  });
  return select;
}

/** @param {GraphView} view @param {string} ending */
async function save(view, ending) {
  const { state } = view;
  if (!state || view.graph < 0) throw new Error("there is no graph yet");
  const name = `${state.title.replace(/[^\w.-]+/g, "_")}.${ending}`;
  const link = h("a", { download: name, href: URL.createObjectURL(await contentOf(view, state, ending)) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(/** @type {HTMLAnchorElement} */ (link).href), 10_000);
  view.say(`saved as ${name}`);
}

/** @param {GraphView} view @param {import("./box-text.js").GraphState} state @param {string} ending @returns {Promise<Blob>} */
async function contentOf(view, state, ending) {
  if (ending === "svg" || ending === "png") {
    const svg = pictureOf(view, state);
    return ending === "png" ? pngOf(svg, view.drawing) : new Blob([svg], { type: "image/svg+xml" });
  }
  const text = { dot, "me.json": modelExplorer, txt: listing }[ending];
  const whole = view.given ?? state;
  return new Blob([text ? text(state, view.graph) : asJson(whole, view.variant)], { type: "text/plain" });
}

/** With all labels that have room at the natural size. @param {GraphView} view @param {import("./box-text.js").GraphState} state */
function pictureOf(view, state) {
  view.labels?.draw(1);
  view.shown?.whole();
  const svg = /** @type {SVGElement} */ (view.svg);
  const text = svgText(svg, view.drawing, `Graph of ${state.title}`, [view.variant, state.label, view.bar?.count.textContent].filter(Boolean).join(", "));
  view.camera?.onMove(false);
  return text;
}
