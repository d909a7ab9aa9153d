// Finding nodes: `matmul`, `op:matmul`, `dtype:f32`, `line:7`, `dev:gpu`, `fused:2`, `was:shared`, and several of them
// together.

import { callLabel } from "./visible-boxes.js";

/**
 * @typedef {import("./visible-boxes.js").GraphNode} GraphNode
 * @typedef {import("./box-text.js").GraphState} GraphState
 */

/** @type {Record<string, (node: GraphNode, text: string) => boolean>} */
const FIELDS = {
  op: (node, text) => node.op.toLowerCase().includes(text),
  dtype: (node, text) => (node.out ?? []).some((spec) => spec.toLowerCase().startsWith(text)),
  line: (node, text) => (node.stack ?? []).some(([, line]) => String(line) === text),
  dev: (node, text) => (node.device ?? "").toLowerCase().includes(text),
  fused: (node, text) => String(node.fused ?? "") === text,
  was: (node, text) => (node.became?.[0] ?? node.came ?? "").toLowerCase().includes(text),
};

/**
 * @param {string} query @returns {((node: GraphNode) => boolean) | null} null for an empty query
 */
export function matcher(query) {
  const tests = query.toLowerCase().split(/\s+/).filter(Boolean).map(testOf);
  return tests.length ? (node) => tests.every((test) => test(node)) : null;
}

/** @param {string} term @returns {(node: GraphNode) => boolean} */
function testOf(term) {
  const [, field, text] = /^(\w+):(.+)$/.exec(term) ?? [];
  if (field in FIELDS) return (node) => FIELDS[field](node, text);
  return (node) => textOf(node).includes(term);
}

/** @param {GraphNode} node */
function textOf(node) {
  const attributes = Object.entries(node.attrs ?? {}).flat();
  const called = node.calls ? callLabel(node) : node.op + (node.operands ?? "");
  return [called, ...node.names, ...(node.out ?? []), ...attributes].join(" ").toLowerCase();
}

/**
 * Whether a node matches, or anything in the functions that it calls.
 * @param {GraphState} state @param {string} query @returns {((node: GraphNode) => boolean) | null}
 */
export function deepMatcher(state, query) {
  const matches = matcher(query);
  if (!matches) return null;
  /** @type {Map<GraphNode, boolean>} */
  const known = new Map();
  return (node) => {
    let found = known.get(node);
    if (found === undefined) {
      found = !node.inline && (matches(node) || reachable(state, node).some((graph) => state.graphs[graph].nodes.some(matches)));
      known.set(node, found);
    }
    return found;
  };
}

/** The graphs that a node calls, and that these call in turn. @param {GraphState} state @param {GraphNode} node */
function reachable(state, node) {
  const graphs = new Set((node.calls ?? []).map(([graph]) => graph));
  for (const graph of graphs) {
    for (const inner of state.graphs[graph].nodes) inner.calls?.forEach(([callee]) => graphs.add(callee));
  }
  return [...graphs];
}

/**
 * Indices of the nodes of a graph that match, or that call something that does, in execution order.
 * @param {GraphState} state @param {number} graph @param {string} query
 */
export function find(state, graph, query) {
  const matches = deepMatcher(state, query);
  return matches ? state.graphs[graph].nodes.flatMap((node, index) => (matches(node) ? [index] : [])) : [];
}
