// Finding nodes: `matmul`, `op:matmul`, `dtype:f32`, `line:7`, `dev:gpu`, and several of them together.

import { callLabel } from "./visible.js";

/**
 * @typedef {import("./visible.js").GraphNode} GraphNode
 * @typedef {import("./words.js").GraphState} GraphState
 */

/** @type {Record<string, (node: GraphNode, text: string) => boolean>} */
const FIELDS = {
  op: (node, text) => node.op.toLowerCase().includes(text),
  dtype: (node, text) => (node.out ?? []).some((spec) => spec.toLowerCase().startsWith(text)),
  line: (node, text) => (node.stack ?? []).some(([, line]) => String(line) === text),
  dev: (node, text) => (node.device ?? "").toLowerCase().includes(text),
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
 * Indices of the matching nodes of a graph, in execution order.
 * @param {GraphState} state @param {number} graph @param {string} query
 */
export function find(state, graph, query) {
  const matches = matcher(query);
  return matches ? state.graphs[graph].nodes.flatMap((node, index) => (!node.inline && matches(node) ? [index] : [])) : [];
}
