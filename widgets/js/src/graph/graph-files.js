// A graph as text: Graphviz's DOT, JSON, Model Explorer's JSON, and a listing. figures/graph_files.py writes the same; the
// tests hold both to the same examples.

import { placeOf, titleOf, valuesOf } from "./box-text.js";
import { places } from "./box-paths.js";

/**
 * @typedef {import("./visible-boxes.js").Graph} Graph
 * @typedef {import("./visible-boxes.js").GraphNode} GraphNode
 * @typedef {import("./box-text.js").GraphState} GraphState
 */

const SCHEMA = "limelight-graph/1";

/** All that the view knows. @param {GraphState} state @param {string} version */
export function asJson(state, version) {
  return `${JSON.stringify({ schema: SCHEMA, version, ...state, revision: undefined, described: undefined })}\n`;
}

/** @param {GraphState} state @param {number} root */
export function listing(state, root) {
  const lines = [...reached(state, root)].flatMap((index) => {
    const graph = state.graphs[index];
    const values = valuesOf(graph);
    const rows = graph.nodes.map((node) => rowOf(state, node, values));
    return index === root ? rows : ["", `in ${graph.name}:`, ...rows];
  });
  return `${[state.title, ...lines].join("\n")}\n`;
}

/** @param {GraphState} state @param {GraphNode} node @param {{name: string}[]} values */
function rowOf(state, node, values) {
  const of = node.kind === "constant" ? titleOf(node) : (node.in ?? []).map((value) => values[value].name).join(", ");
  const named = node.names.length ? `${node.names.join(", ")} = ` : "";
  const op = node.calls ? titleOf(node) : node.op;
  return [`${named}${op}(${of})`, (node.out ?? []).join(", "), placeOf(state, node.stack?.[0])].filter(Boolean).join("  ");
}

/** A graph collection of Model Explorer. @param {GraphState} state @param {number} root */
export function modelExplorer(state, root) {
  const graphs = reached(state, root).map((index) => explored(state, index));
  return `${JSON.stringify({ label: state.title, graphs })}\n`;
}

/** @param {GraphState} state @param {number} index */
function explored(state, index) {
  const graph = state.graphs[index];
  const producers = producersOf(graph);
  const edge = (/** @type {number} */ value, /** @type {number} */ place) => ({
    sourceNodeId: producers[value][0], sourceNodeOutputId: String(producers[value][1]), targetNodeInputId: String(place),
  });
  const inputs = graph.inputs.map(({ name, spec }, k) => ({
    id: `i${k}`, label: name, namespace: "", attrs: pairs({ kind: "input" }), outputsMetadata: [metadata(spec, 0)],
  }));
  const nodes = graph.nodes.map((node, k) => ({
    id: `n${k}`, label: node.op, namespace: namespaceOf(graph, node),
    subgraphIds: (node.calls ?? []).map(([callee]) => graphId(state, callee)),
    attrs: pairs({ ...node.attrs, lane: node.lane ?? "", line: placeOf(state, node.stack?.[0]), device: node.device ?? "" }),
    incomingEdges: (node.in ?? []).map(edge),
    outputsMetadata: (node.out ?? []).map(metadata),
  }));
  const outputs = graph.outputs.map((value, k) => ({ id: `o${k}`, label: `output ${k}`, namespace: "", incomingEdges: [edge(value, 0)] }));
  return { id: graphId(state, index), nodes: [...inputs, ...nodes, ...outputs] };
}

/** @param {GraphState} state @param {number} index */
function graphId(state, index) {
  return `${index}: ${state.graphs[index].name}`;
}

/** @param {Record<string, string>} facts */
function pairs(facts) {
  return Object.entries(facts).flatMap(([key, value]) => (value ? [{ key, value }] : []));
}

/** @param {string} spec @param {number} place */
function metadata(spec, place) {
  return { id: String(place), attrs: [{ key: "tensor_shape", value: spec }] };
}

/** The lane, and the groups around a node. @param {Graph} graph @param {GraphNode} node */
function namespaceOf(graph, node) {
  const names = [];
  for (let at = node.group ?? -1; at >= 0; at = graph.groups[at].parent) names.unshift(graph.groups[at].label.replaceAll("/", "|"));
  return [...(node.lane ? [node.lane] : []), ...names].join("/");
}

/** For each value the id of what makes it, and its place among that one's outputs. @param {Graph} graph @returns {[string, number][]} */
function producersOf({ inputs, nodes }) {
  return [
    ...inputs.map((_, k) => /** @type {[string, number]} */ ([`i${k}`, 0])),
    ...nodes.flatMap(({ out = [] }, k) => out.map((_, i) => /** @type {[string, number]} */ ([`n${k}`, i]))),
  ];
}

/** A graph and all that it calls, each once. @param {GraphState} state @param {number} root */
function reached({ graphs }, root) {
  return [...places(graphs, root).keys()];
}

/** Graphviz's language. @param {GraphState} state @param {number} root */
export function dot(state, root) {
  const lines = [`digraph ${quoted(state.title)} {`, '  node [shape=box, fontname="sans-serif"];'];
  for (const index of reached(state, root)) {
    const called = index !== root;
    if (called) lines.push(`  subgraph cluster_g${index} {`, `    label=${quoted(state.graphs[index].name)};`);
    lines.push(...drawn(state, index));
    if (called) lines.push("  }");
  }
  return [...lines, "}", ""].join("\n");
}

/** @param {GraphState} state @param {number} index @returns {string[]} */
function drawn(state, index) {
  const graph = state.graphs[index];
  const [prefix, values, producers] = [`g${index}_`, valuesOf(graph), producersOf(graph)];
  const edge = (/** @type {number} */ value, /** @type {string} */ to) => `  ${prefix}${producers[value][0]} -> ${prefix}${to} [label=${quoted(values[value].spec)}];`;
  return [
    ...graph.inputs.map(({ name, spec }, k) => `  ${prefix}i${k} [label=${quoted(name, spec)}, shape=ellipse];`),
    ...clusters(state, index, -1, prefix),
    ...graph.nodes.flatMap((node, k) => (node.in ?? []).map((value) => edge(value, `n${k}`))),
    ...graph.outputs.flatMap((value, k) => [`  ${prefix}o${k} [label="output ${k}", shape=ellipse, style=bold];`, edge(value, `o${k}`)]),
  ];
}

/** @param {GraphState} state @param {number} index @param {number} parent @param {string} prefix @returns {string[]} */
function clusters(state, index, parent, prefix) {
  const { nodes, groups } = state.graphs[index];
  const own = nodes.flatMap((node, k) => {
    if ((node.group ?? -1) !== parent) return [];
    const label = [node.op, ...Object.entries(node.attrs ?? {}).map(([name, text]) => `${name}=${text}`)];
    return [`  ${prefix}n${k} [label=${quoted(...label)}, tooltip=${quoted(placeOf(state, node.stack?.[0]))}];`];
  });
  const inner = groups.flatMap((group, k) =>
    group.parent === parent
      ? [`  subgraph cluster_${prefix}${k} {`, `    label=${quoted(group.label)};`, ...clusters(state, index, k, prefix), "  }"]
      : [],
  );
  return [...own, ...inner];
}

/** @param {...string} lines */
function quoted(...lines) {
  return `"${lines.map((line) => line.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")).join("\\n")}"`;
}
