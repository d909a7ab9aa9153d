// What the line that opened a graph view asks for, besides the version: what is sought, how deep groups are open, a pass.

import { openable } from "./open-all.js";
import { visible } from "./visible-boxes.js";

/**
 * @typedef {import("./view.js").GraphView} GraphView
 * @typedef {import("./first-sight.js").Sight} Sight
 * @typedef {{find?: string, depth?: number, stop?: number}} Begin
 */

/** Before the first picture is drawn. @param {GraphView} view @param {Begin} begin */
export function prepare(view, { find, depth }) {
  if (view.bar && find) view.bar.search.value = find;
  view.depth = depth;
}

/** Once it is drawn. @param {GraphView} view @param {Begin} begin */
export async function arrive(view, { find, stop }) {
  if (stop !== undefined) view.slider?.go(stop);
  if (!find) return;
  view.results.seek();
  await view.results.next(1);
}

/** What is shown at first where groups are open so many levels deep. @param {GraphView} view @param {Sight} sight @returns {Sight} */
export function deep(view, sight) {
  if (view.depth === undefined || !view.state) return sight;
  const { graphs } = view.state;
  const open = new Set(openable(graphs, view.graph, undefined, view.depth).names);
  view.spread = true;
  const picture = visible(graphs, view.graph, (name) => open.has(name), sight.folded);
  return { ...sight, open, dissolved: new Set(), picture };
}
