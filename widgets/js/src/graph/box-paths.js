// Names of boxes as paths: `n4.0/n2` is node 2 of the first function that node 4 of the graph calls.

/**
 * @typedef {import("./visible-boxes.js").Graph} Graph
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {{path: string, graph: number, node: number, call: number}} Step a call on the way to a box
 */

/**
 * The calls around a box, from the outside in, and where they end.
 * @param {Graph[]} graphs @param {number} root @param {string} name
 * @returns {{steps: Step[], path: string, graph: number}}
 */
export function stepsTo(graphs, root, name) {
  /** @type {Step[]} */
  const steps = [];
  let [path, graph] = ["", root];
  for (const part of name.split("/").slice(0, -1)) {
    const [node, call] = part.slice(1).split(".").map(Number);
    steps.push({ path, graph, node, call });
    path += `${part}/`;
    graph = graphs[graph].nodes[node].calls?.[call][0] ?? -1;
  }
  return { steps, path, graph };
}

/**
 * Every group and call that must be open for a node to be seen.
 * @param {Graph[]} graphs @param {number} root @param {string} name
 */
export function around(graphs, root, name) {
  const { steps, path, graph } = stepsTo(graphs, root, name);
  const last = Number(name.slice(path.length + 1));
  const groups = [...steps, { path, graph, node: last }].flatMap(({ path: at, graph: inside, node }) => {
    const found = [];
    const { nodes, groups: all } = graphs[inside];
    for (let group = nodes[node]?.group ?? -1; group >= 0; group = all[group].parent) found.push(`${at}g${group}`);
    return found;
  });
  return [...groups, ...steps.map(({ path: at, node }) => `${at}n${node}`)];
}

/**
 * Where nodes of the other version of a box's graph stand: the same way, by what became of the calls on it.
 * @param {GraphState} state @param {string} variant that of `name` @param {string} name @param {number[]} nodes
 * @returns {string[]} empty where the other version does not call the function
 */
export function across(state, variant, name, nodes) {
  const root = state.variants.find(({ key }) => key === variant)?.graph ?? 0;
  let path = "";
  for (const { graph, node, call } of stepsTo(state.graphs, root, name).steps) {
    const at = state.graphs[graph].nodes[node];
    const other = at.became?.[1][0] ?? at.was?.[0];
    if (other === undefined) return [];
    path += `n${other}.${call}/`;
  }
  return nodes.map((node) => `${path}n${node}`);
}

/** For each graph that is called, the path of the first place where it stands. @param {Graph[]} graphs @param {number} root */
export function places(graphs, root) {
  const found = new Map([[root, ""]]);
  for (const [graph, path] of found) {
    graphs[graph].nodes.forEach((node, index) => {
      (node.calls ?? []).forEach(([callee], k) => {
        if (!found.has(callee)) found.set(callee, `${path}n${index}.${k}/`);
      });
    });
  }
  return found;
}
