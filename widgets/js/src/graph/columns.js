// What pictures ask of all ops of a graph, in columns that are made once: a picture is tried many times.

/**
 * @typedef {import("./visible-boxes.js").Graph} Graph
 * @typedef {import("./visible-boxes.js").GraphNode} GraphNode
 *
 * @typedef {object} Columns
 * @property {Int32Array} makers for each numbered value the node that makes it, -1 for an input
 * @property {Int32Array} places its place among what that gives
 * @property {Int32Array} readers for each input of a node, one after the other, the node @property {Int32Array} reads the value
 * @property {Int32Array} positions which of the node's inputs it is
 * @property {Int32Array} groups for each node the group that it is in, -1 for none
 * @property {Uint8Array} inline whether it is written on others @property {Uint8Array} folds whether it has no box of its own in a folded picture
 */

/** @type {WeakMap<Graph, Columns>} */
const known = new WeakMap();

/** @param {Graph} graph @returns {Columns} */
export function columnsOf(graph) {
  let columns = known.get(graph);
  if (!columns) known.set(graph, (columns = makeColumns(graph)));
  return columns;
}

/** @param {Graph} graph @returns {Columns} */
function makeColumns({ inputs, nodes }) {
  let [values, all] = [inputs.length, 0];
  for (const node of nodes) {
    values += node.out?.length ?? 0;
    all += node.in?.length ?? 0;
  }
  const [makers, places] = [new Int32Array(values).fill(-1), new Int32Array(values)];
  const [readers, reads, positions] = [new Int32Array(all), new Int32Array(all), new Int32Array(all)];
  const [groups, inline, folding] = [new Int32Array(nodes.length), new Uint8Array(nodes.length), new Uint8Array(nodes.length)];
  inputs.forEach((_, k) => (places[k] = k));
  let [value, read] = [inputs.length, 0];
  nodes.forEach((node, index) => {
    groups[index] = node.group ?? -1;
    inline[index] = node.inline ? 1 : 0;
    folding[index] = folds(node) ? 1 : 0;
    node.in?.forEach((one, position) => ([readers[read], reads[read], positions[read++]] = [index, one, position]));
    for (let place = 0; place < (node.out?.length ?? 0); place++) [makers[value], places[value++]] = [index, place];
  });
  return { makers, places, readers, reads, positions, groups, inline, folds: folding };
}

/** @param {GraphNode} node */
export function isRead({ op, in: inputs }) {
  return op === "read_variable" && inputs?.length === 1;
}

/** Whether a node has no box of its own in a folded picture. @param {GraphNode} node */
function folds(node) {
  return node.folded_into !== undefined || isRead(node);
}
