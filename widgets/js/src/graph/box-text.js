// What is written on the boxes of a graph, and what is known about them. figures/box_text.py writes the same words; the
// tests hold both to the same examples.

import { bytes, counted, number, shortened } from "../format.js";
import { lanesOf, outermostOf } from "./lanes.js";
import { callLabel } from "./visible-boxes.js";

/**
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./visible-boxes.js").Graph} Graph
 * @typedef {import("./visible-boxes.js").GraphNode} GraphNode
 * @typedef {[number, number, string]} Position index of a source, line, function
 *
 * @typedef {object} GraphState what a graph fold says
 * @property {string} title @property {string} which @property {string} [empty]
 * @property {boolean} [staged_cell] whether it is called by its name alone
 * @property {string} [label] which trace it is @property {string} [newer] which is newer
 * @property {string} [described] the same in states with the same graphs @property {string} [signature]
 * @property {string} [completes] the state of the shown version alone that it follows on @property {boolean} [soon] whether such a one is
 *   to be followed by the whole as soon as it is drawn
 * @property {{key: string, graph: number}[]} variants @property {string} [waiting] a version that the kernel describes when asked @property {Graph[]} graphs
 * @property {{label: string, first: number, text: string[]}[]} sources
 * @property {Record<string, string>} rules
 * @property {Pass[]} [passes]
 * @property {import("./pass-slider.js").History} [history] the graph through the passes
 * @property {string} [revision] the same for the same state, when it is sent again
 * @property {string} [overlay] what is told on the boxes at first @property {boolean} [running] whether it is of a trace that runs
 * @property {import("./at-first.js").Begin} [begin] what else the view begins with
 * @property {{node: number, error: string}} [failed] the node that stands for what failed, of a trace that did
 *
 * @typedef {object} Pass
 * @property {string} name @property {number} before @property {number} removed @property {number} added
 * @property {number} after @property {[number, string][]} [changed] nodes of the traced graph, and what was done to each
 *
 * @typedef {object} Words
 * @property {string} title @property {string} detail @property {string} kind
 * @property {string} full title and detail, however long they are
 * @property {string} [mark] what passes did to the op, in a word
 * @property {string} [tags] the variables that it uses
 */

const TITLE_WIDTH = 28; // characters; the whole name is in the tooltip, the details and the listing
const RULES_WIDTH = 40; // of an optimiser: its kind, how many variables, how many rules
const DETAIL_WIDTH = 34;
const TITLE_CHARACTER = 7.4;
const DETAIL_CHARACTER = 6.7;
const MANY = 30; // ops of a layer from which on they are counted on its box
const TAG_WIDTH = 26; // characters of all variables of a box together; beyond, they are counted
const RANDOM_STATE = "random state";
const GRADIENT = "∇"; // before the title of what a gradient computes

export const GLYPHS = /** @type {Record<string, string>} */ ({
  input: "▷", output: "▶", constant: "◆", variable: "▣", call: "ƒ", group: "⊞", random: "⚂", effect: "↯", op: "", fused: "◉",
  decision: "◇", error: "✗",
});

export const KINDS = /** @type {Record<string, string>} */ ({
  input: "input", output: "output", constant: "constant", variable: "variable access", call: "nested function",
  group: "group of ops", decision: "decision", random: "random op", effect: "op with an effect", op: "op",
  error: "error",
});

/**
 * The words on all boxes of a picture that is drawn in that manner: where no lane says it, gradients do. Closed gradients
 * that stand below no box of their own tell what is kept for them: no line does.
 * @param {GraphState} state @param {import("./visible-boxes.js").Picture} picture @param {import("./nested-layout.js").Manner} manner
 * @returns {Map<string, Words>}
 */
export function wordsIn(state, picture, { lanes, terse }) {
  const kept = keptFor(picture, lanes ? lanesOf(picture) : null);
  return new Map(
    picture.boxes.map((box) => {
      const { title, detail, ...said } = wordsOf(state, box);
      const told = kept.has(box.name) ? ` · ${bytes(kept.get(box.name))} kept` : "";
      const marked = { ...said, detail: detail + told, full: said.full + told, title: box.lane === "backward" && !lanes ? `${GRADIENT} ${title}` : title };
      return [box.name, terse ? { ...marked, detail: "", tags: "" } : marked];
    }),
  );
}

/**
 * By closed gradient, the bytes of the forward pass that it reads, but for those that a dotted line tells.
 * @param {import("./visible-boxes.js").Picture} picture @param {ReturnType<typeof lanesOf>} lanes
 */
function keptFor(picture, lanes) {
  const [root, of] = [outermostOf(picture), new Map(picture.boxes.map((box) => [box.name, box]))];
  const lined = new Set(lanes?.partners.values());
  /** @type {Map<string, number>} */
  const kept = new Map();
  for (const { source, target, bytes: size } of picture.edges.values()) {
    const [from, to] = [of.get(source), of.get(target)];
    if (!size || to?.kind !== "group" || to.lane !== "backward" || lanes?.partners.has(root(target)) || lined.has(root(source))) continue;
    if (from?.lane === "forward" || from?.lane === "loss") kept.set(target, (kept.get(target) ?? 0) + size);
  }
  return kept;
}

/** @param {GraphState} state @param {Box} box @returns {Words} */
export function wordsOf(state, box) {
  const graph = state.graphs[box.graph];
  if (box.kind === "input") {
    const { name, spec, captured } = graph.inputs[box.index];
    return words(name, spec === "generator" ? RANDOM_STATE : (captured ? "captured " : "") + spec, "input"); // a model may be a generator, too
  }
  if (box.kind === "output") {
    const title = graph.output_names?.[box.index] ?? (graph.outputs.length === 1 ? "output" : `output ${box.index}`);
    return words(title, valuesOf(graph)[graph.outputs[box.index]].spec, "output");
  }
  if (box.kind === "decision") {
    const { op, in: inputs = [] } = graph.nodes[box.index];
    return words(decisionTitle(op), valuesOf(graph)[inputs[box.position ?? 0]].spec, "decision");
  }
  if (box.kind === "group") return groupWords(graph.groups[box.index], box);
  const node = graph.nodes[box.index];
  if (node.kind === "error") return words(node.op, node.said ?? "", "error");
  const mark = node.became?.[2] ?? "";
  const said = words(titleOf(node), (node.out ?? []).join(", "), node.kind, [node.device, mark]);
  return { ...said, ...(mark ? { mark } : {}), ...tagsOf(box.tags, box, node.kind === "variable") };
}

/** @param {import("./visible-boxes.js").Group} group @param {Box} box @returns {Words} */
function groupWords({ label, size, ops = size, repeat, tags, at, cls, kind }, box) {
  if (box.more) return words(`${number(box.more)} more`, "equal to these", "group");
  const forward = (box.lane ?? "forward") === "forward"; // kind and line are said once for a layer and its gradient
  const told = label.endsWith(`: ${cls}`); // of a layer of a sequence
  const of = forward && (kind === "module" || kind === "repeat") && cls && !told ? cls : "";
  const line = (forward || kind === "optimiser") && at ? `line ${at[1]}` : "";
  const joined = (/** @type {string[]} */ ...parts) => parts.filter(Boolean).join(" · ");
  const all = joined(of, (of && ops < MANY) || !ops ? "" : counted(ops, "op"), line);
  const said = words(label, all.length > DETAIL_WIDTH ? joined(of, line) : all, "group"); // the details count the ops, too
  if (kind === "optimiser") said.title = shortened(label, RULES_WIDTH);
  return { ...said, ...tagsOf(allTags(repeat ? [] : tags ?? [], box.tags ?? []), box) };
}

/**
 * What a group's own nodes use, with shapes, then what groups inside it use; a constant says nothing of a whole group.
 * @param {string[]} tags its own @param {string[]} others
 */
function allTags(tags, others) {
  const own = tags.filter((tag) => !tag.startsWith("constant "));
  const named = new Set(own.map((tag) => tag.split(" ")[0]));
  return [...own, ...others.filter((tag) => !named.has(tag.split(" ")[0]) || tag.startsWith("▶"))];
}

/**
 * The variables that a box of the forward pass uses, and any that an op writes to: by name where there is room.
 * @param {string[] | undefined} tags @param {Box} box @param {boolean} [writes] @returns {{tags?: string}}
 */
function tagsOf(tags, { lane }, writes = false) {
  const results = (tags ?? []).filter((tag) => tag.startsWith("▶")).join(" ");
  const used = (lane === "backward" || lane === "update") && !writes ? [] : (tags ?? []).filter((tag) => !tag.startsWith("▶"));
  const named = used.map((tag) => tag.split(" ")[0]).join(" ");
  const short = named.length <= TAG_WIDTH || used.length === 1;
  const variables = short ? `▣ ${shortened(named, TAG_WIDTH)}` : `▣ ${counted(used.length, used.some((tag) => tag.split(" ")[0].endsWith("]")) ? "value" : "variable")}`;
  const text = [used.length ? variables : "", results.length <= TAG_WIDTH ? results : "▶ outputs"].filter(Boolean).join("  ");
  return text ? { tags: text } : {};
}

/** @param {Words} box @returns {[number, number]} width and height */
export function sizeOf({ title, detail, kind, tags = "" }) {
  const first = TITLE_CHARACTER * (title.length + (GLYPHS[kind] ? 2 : 0));
  const width = Math.max(first, DETAIL_CHARACTER * Math.max(detail.length, tags.length), 24) + 14;
  return [width, 24 + (detail ? 14 : 0) + (tags ? 14 : 0)];
}

/** @type {WeakMap<Graph, {name: string, spec: string, node: number}[]>} */
const known = new WeakMap();

/** Name, spec and producer (-1 for an input) of every numbered value. @param {Graph} graph */
export function valuesOf(graph) {
  let values = known.get(graph);
  if (!values) {
    values = graph.inputs.map(({ name, spec }) => ({ name, spec, node: -1 }));
    for (const [index, node] of graph.nodes.entries()) {
      node.out?.forEach((spec, k) => values?.push({ name: node.names[k], spec, node: index }));
    }
    known.set(graph, values);
  }
  return values;
}

/** @param {string} op what decides in a call of that op */
export function decisionTitle(op) {
  return op === "switch" ? "index" : "condition";
}

/** @param {GraphNode} node */
export function titleOf(node) {
  if (node.kind === "call") return callLabel(node);
  if (node.kind === "constant") return Object.values(node.attrs ?? {})[0] ?? "constant";
  return node.op + (node.operands ?? "");
}

/** @param {GraphState} state @param {Position | undefined} position @returns {string} "In[3]:4" */
export function placeOf(state, position) {
  return position ? `${state.sources[position[0]].label}:${position[1]}` : "";
}

/** The positions of every node that a box stands for, its callees' included. @param {GraphState} state @param {Box} box */
export function positionsOf(state, box) {
  const graph = state.graphs[box.graph];
  if (box.kind === "input" || box.kind === "output" || box.kind === "decision") return [];
  if (box.kind === "node") return deepPositions(state, box.graph, [box.index]);
  const inside = membersOf(graph, box.index);
  return deepPositions(state, box.graph, inside);
}

/** Indices of the nodes in a group and in the groups inside it. @param {Graph} graph @param {number} group */
export function membersOf(graph, group) {
  const { own, inner } = contentsOf(graph);
  /** @type {number[]} */
  const found = [];
  const waiting = [group];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const node of own[at]) found.push(node);
    waiting.push(...inner[at]);
  }
  return found.sort((a, b) => a - b);
}

/** @type {WeakMap<Graph, {own: number[][], inner: number[][]}>} */
const contents = new WeakMap();

/** What each group has directly in it: nodes, and groups. @param {Graph} graph */
function contentsOf(graph) {
  const known = contents.get(graph);
  if (known) return known;
  /** @type {{own: number[][], inner: number[][]}} */
  const made = { own: graph.groups.map(() => []), inner: graph.groups.map(() => []) };
  graph.nodes.forEach(({ group = -1 }, index) => group >= 0 && made.own[group].push(index));
  graph.groups.forEach(({ parent }, index) => parent >= 0 && made.inner[parent].push(index));
  contents.set(graph, made);
  return made;
}

/** @param {GraphState} state @param {number} graph @param {number[]} nodes @returns {Position[]} */
function deepPositions(state, graph, nodes) {
  /** @type {Position[]} */
  const found = [];
  const seen = new Set();
  /** @type {[number, number[]][]} */
  const waiting = [[graph, nodes]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    for (const index of next[1]) {
      const node = state.graphs[next[0]].nodes[index];
      found.push(...(node.stack ?? []));
      for (const [callee] of node.calls ?? []) {
        if (!seen.has(callee)) waiting.push([callee, [...state.graphs[callee].nodes.keys()]]);
        seen.add(callee);
      }
    }
  }
  return found;
}

/** @param {string} title @param {string} detail @param {string} kind @param {(string | undefined)[]} [more] @returns {Words} */
function words(title, detail, kind, more = []) {
  const added = more.filter(Boolean).join(" · ");
  const end = (detail && added ? " · " : "") + added; // however long the rest is, it is not cut off
  const full = [title, detail + end].filter(Boolean).join(", ");
  return { title: shortened(title, TITLE_WIDTH), detail: shortened(detail, DETAIL_WIDTH - end.length) + end, kind, full };
}
