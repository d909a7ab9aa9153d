// What "open all" opens: groups and nested functions from the outside in, as long as the picture stays drawable.

/**
 * @typedef {import("./visible-boxes.js").Graph} Graph
 * @typedef {{path: string, graph: number, chain: number[], above: number}} Place a graph where it would stand in the picture
 */

export const MOST_BOXES = 1000;
const GAPS = [16, 34]; // around a box, in a layered drawing
const STRETCHED = 1.5; // times wider than the room, for its height, or higher, that a drawing may be

/**
 * The names of all groups and calls, outermost first, whose opening leaves at most `most` boxes.
 * @param {Graph[]} graphs @param {number} root @param {number} [most] @param {number} [deepest] the levels that are opened
 * @returns {{names: string[], complete: boolean}} complete: whether nothing was left closed for want of room
 */
export function openable(graphs, root, most = MOST_BOXES, deepest = Infinity) {
  /** @type {string[]} */
  const names = [];
  let complete = true;
  let left = most - atFirst(graphs[root]) - graphs[root].outputs.length;
  const opens = (/** @type {string} */ name, /** @type {number} */ cost) => {
    if (cost > left) return (complete = false);
    left -= cost;
    names.push(name);
    return true;
  };
  /** @type {Place[]} */
  const waiting = [{ path: "", graph: root, chain: [root], above: 0 }];
  for (const { path, graph, chain, above } of waiting) {
    const { groups, nodes } = graphs[graph];
    const children = childrenOf(graphs[graph]);
    const open = new Set([-1]);
    const depth = depths(groups);
    const level = (/** @type {number} */ group) => above + (group < 0 ? 0 : depth[group] + 1); // of what is in it
    for (const group of byDepth(groups)) {
      if (open.has(groups[group].parent) && level(groups[group].parent) < deepest && opens(`${path}g${group}`, children[group] - 1)) open.add(group);
    }
    nodes.forEach((node, index) => {
      const calls = node.calls ?? [];
      if (!calls.length || !open.has(node.group ?? -1) || calls.some(([callee]) => chain.includes(callee)) || level(node.group ?? -1) >= deepest) return;
      const cost = calls.reduce((sum, [callee]) => sum + atFirst(graphs[callee]), -1);
      if (!opens(`${path}n${index}`, cost)) return;
      waiting.push(...calls.map(([callee], k) => ({ path: `${path}n${index}.${k}/`, graph: callee, chain: [...chain, callee], above: level(node.group ?? -1) + 1 })));
    });
  }
  return { names, complete };
}

/**
 * The manner in which many boxes come out about as wide as high as the room: a long chain in columns, not as a thread.
 * @param {Iterable<[number, number]>} sizes @param {{width: number, height: number}} room @param {import("./layout.js").Manner} manner
 * @returns {import("./layout.js").Manner}
 */
export function widely(sizes, { width, height }, manner) {
  let area = 0;
  for (const [across, down] of sizes) area += (across + GAPS[0]) * (down + GAPS[1]);
  const along = manner.across ? width / height : height / width;
  return { ...manner, limit: Math.max(Math.sqrt(area * along), manner.across ? width : height) };
}

/**
 * A drawing of many boxes about as wide as high as the room. What their edges and frames take is known once they are laid out: where
 * that made another shape of it, they are laid out again.
 * @template {{width: number, height: number}} D
 * @param {(manner: import("./layout.js").Manner) => Promise<D | null>} layOut null where it is given up
 * @param {Iterable<[number, number]>} sizes @param {{width: number, height: number}} room @param {import("./layout.js").Manner} manner
 */
export async function shaped(layOut, sizes, room, manner) {
  const first = widely(sizes, room, manner);
  const drawing = await layOut(first);
  if (!drawing) return null;
  const { width, height } = drawing;
  const stretched = (width * room.height) / (height * room.width);
  if (Math.max(stretched, 1 / stretched) < STRETCHED || Math.max(width / room.width, height / room.height) < 1) return drawing;
  const along = manner.across ? room.width / room.height : room.height / room.width;
  const limit = Math.max(Math.sqrt(width * height * along), manner.across ? room.width : room.height);
  const again = await layOut({ ...first, limit, cross: limit / along });
  const scale = (/** @type {D} */ one) => Math.min(room.width / one.width, room.height / one.height);
  return again && scale(again) < scale(drawing) ? drawing : again;
}

/** The boxes of a graph all of whose groups are closed. @param {Graph} graph */
function atFirst(graph) {
  const loose = graph.nodes.filter((node) => (node.group ?? -1) < 0 && !node.inline).length;
  return graph.inputs.length + loose + graph.groups.filter(({ parent }) => parent < 0).length;
}

/** How many boxes each group has directly in it. @param {Graph} graph */
function childrenOf({ groups, nodes }) {
  const children = groups.map(() => 0);
  for (const { group = -1, inline } of nodes) if (group >= 0 && !inline) children[group] += 1;
  for (const { parent } of groups) if (parent >= 0) children[parent] += 1;
  return children;
}

/** How many groups are around each. @param {Graph["groups"]} groups */
function depths(groups) {
  return groups.map((_, index) => {
    let steps = 0;
    for (let at = groups[index].parent; at >= 0; at = groups[at].parent) steps += 1;
    return steps;
  });
}

/** Groups so that each comes after the one around it. @param {Graph["groups"]} groups */
function byDepth(groups) {
  const depth = depths(groups);
  return [...groups.keys()].sort((a, b) => depth[a] - depth[b]);
}
