// What is chosen in a graph, said to the other views of a dashboard, and theirs shown here.

import { SELECT, selected } from "../selection.js";
import { lineKey } from "./line-key.js";
import { titleOf } from "./box-text.js";

/** @typedef {import("../selection.js").Selection} Selection */

/** @param {import("./view.js").GraphView} view @param {HTMLElement} root */
export function linkSelection(view, root) {
  let last = "";
  let taking = false;
  let ofError = false; // whether it has said an error last
  const before = view.onLines;
  view.onLines = (lines) => {
    before(lines);
    const chosen = described(view, lines[0]);
    const said = JSON.stringify(chosen);
    if (said === last) return;
    last = said;
    if (taking || !(chosen.line || chosen.op || ofError)) return;
    ofError = Boolean(view.state?.failed); // which the view chooses by itself: when another trace comes, nothing is
    selected(root, chosen);
  };
  root.addEventListener(SELECT, (event) => {
    [taking, ofError] = [true, false];
    take(view, /** @type {CustomEvent<Selection>} */ (event).detail);
    taking = false;
  });
}

/** @param {import("./view.js").GraphView} view @param {{label: string, line: number} | undefined} line @returns {Selection} */
function described(view, line) {
  const { state } = view;
  const box = view.chosen ? view.box(view.chosen) : null;
  const node = state && box?.kind === "node" ? state.graphs[box.graph].nodes[box.index] : null;
  const input = state && box?.kind === "input" ? state.graphs[box.graph].inputs[box.index].name : "";
  const tag = (box?.tags ?? []).find((one) => !one.startsWith("▶"))?.split(" ")[0] ?? "";
  return { op: node?.op ?? "", line: line ? [line.label, line.line] : null, tensor: input || tag };
}

/** @param {import("./view.js").GraphView} view @param {Selection} chosen */
function take(view, { op, line, tensor }) {
  const { state } = view;
  if (!state) return;
  const keys = line ? state.sources.flatMap(({ label }, index) => (label === line[0] ? [lineKey(index, line[1])] : [])) : [];
  const made = view.picture.boxes.filter((box) => keys.some((key) => view.isFrom(state, box, key)));
  const same = made.find((box) => box.kind === "node" && (state.graphs[box.graph].nodes[box.index].op === op || titleOf(state.graphs[box.graph].nodes[box.index]) === op));
  const of = same ?? (tensor && !made.length ? view.picture.boxes.find((box) => (box.tags ?? []).some((tag) => tag.split(" ")[0] === tensor)) : null);
  if (of) view.choose(of.name);
  else if (made.length) {
    const known = keys.find((key) => view.side?.source.lines.has(key)) ?? keys[0];
    if (view.line !== known) view.chooseLine(known);
  }
}
