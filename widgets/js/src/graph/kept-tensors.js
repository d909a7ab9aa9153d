// What is kept of the forward pass for the backward pass, tensor by tensor, heaviest first.

import { button, h } from "../dom.js";
import { bytes, counted, sum } from "../format.js";
import { membersOf, titleOf, valuesOf } from "./box-text.js";
import { bytesOf } from "./visible-boxes.js";

/**
 * @typedef {import("./visible-boxes.js").Graph} Graph
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {{name: string, spec: string, bytes: number, node: number, readers: number[]}} Kept
 */

const MOST = 12; // that are listed

/** The nodes behind a box. @param {Graph} graph @param {Box} box */
export function nodesOf(graph, box) {
  return box.kind === "node" ? [box.index] : box.kind === "group" ? membersOf(graph, box.index) : [];
}

/**
 * The tensors that some nodes of the forward pass or the loss make and the backward pass reads.
 * @param {Graph} graph @param {number[]} nodes @returns {Kept[]}
 */
export function keptOf(graph, nodes) {
  if (graph.versions) return []; // of which some reads are of one, some of another
  const [values, wanted] = [valuesOf(graph), new Set(nodes)];
  /** @type {Map<number, number[]>} */
  const readers = new Map();
  graph.nodes.forEach((node, index) => {
    if (node.lane === "backward") for (const value of new Set(node.in ?? [])) readers.set(value, [...(readers.get(value) ?? []), index]);
  });
  const kept = [...readers].flatMap(([value, by]) => {
    const { name, spec, node } = values[value];
    const made = node < 0 ? null : graph.nodes[node];
    const counts = made && wanted.has(node) && !made.inline && (made.lane === "forward" || made.lane === "loss");
    return counts ? [{ name, spec, bytes: bytesOf(spec), node, readers: by }] : [];
  });
  return kept.sort((a, b) => b.bytes - a.bytes || a.node - b.node);
}

/**
 * The list for a box; empty where nothing of it is kept.
 * @param {GraphState} state @param {string} variant @param {Box} box @param {import("./details.js").Links} links
 */
export function keptList(state, variant, box, links) {
  const graph = state.graphs[box.graph];
  const kept = keptOf(graph, nodesOf(graph, box));
  if (!kept.length) return [];
  const path = box.name.slice(0, box.name.lastIndexOf("/") + 1);
  const rows = kept.slice(0, MOST).map((one) =>
    h("li", {}, `${bytes(one.bytes)}  `, nodeLink(graph, one.node, variant, `${path}n${one.node}`, links), ` ${one.spec}, read by `, ...by(graph, one, variant, path, links)),
  );
  const more = kept.length > MOST ? [h("p", { class: "ll-quiet" }, `and ${counted(kept.length - MOST, "tensor")} more`)] : [];
  return [h("h4", {}, `Kept for the backward pass: ${bytes(sum(kept.map((one) => one.bytes)))}`), h("ul", { class: "ll-kept" }, ...rows), ...more];
}

/** The heaviest of what crosses from forward to backward, by groups. @param {GraphState} state @param {string} variant @param {number} root @param {import("./details.js").Links} links */
export function crossingsList(state, variant, root, links) {
  const graph = state.graphs[root];
  const crossings = graph.crossings ?? [];
  if (!crossings.length) return [];
  const rows = crossings.slice(0, MOST).map(({ from, bytes: kept, values, spec }) => {
    const label = from < 0 ? "ops in no group" : graph.groups[from].label;
    const first = graph.nodes.findIndex((node) => (node.group ?? -1) === from && node.lane !== "backward");
    const link = button(`Show ${label}`, () => links.goTo(variant, `n${first}`), { class: "ll-link" }, label);
    return h("li", {}, `${bytes(kept)}  `, first < 0 ? label : link, ` ${spec ?? counted(values, "tensor")}`);
  });
  return [h("h4", {}, `Kept for the backward pass: ${bytes(sum(crossings.map((one) => one.bytes)))}`), h("ul", { class: "ll-kept" }, ...rows)];
}

/** @param {Graph} graph @param {Kept} kept @param {string} variant @param {string} path @param {import("./details.js").Links} links */
function by(graph, { readers }, variant, path, links) {
  const more = readers.length > 2 ? ` and ${readers.length - 2} more` : "";
  return [...readers.slice(0, 2).flatMap((index, i) => [i ? ", " : "", nodeLink(graph, index, variant, `${path}n${index}`, links)]), more];
}

/** @param {Graph} graph @param {number} index @param {string} variant @param {string} name @param {import("./details.js").Links} links */
export function nodeLink(graph, index, variant, name, links) {
  const text = `${graph.nodes[index].names[0] ?? ""} ${titleOf(graph.nodes[index])}`.trim();
  return button(`Show ${text} in the ${variant} graph`, () => links.goTo(variant, name), { class: "ll-link" }, text);
}
