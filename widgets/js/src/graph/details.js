// All that is known about the chosen box.

import { button, h } from "../dom.js";
import { counted } from "../format.js";
import { lineKey } from "./source.js";
import { KINDS, placeOf, titleOf, valuesOf } from "./words.js";

/**
 * @typedef {import("./visible.js").Box} Box
 * @typedef {import("./words.js").GraphState} GraphState
 * @typedef {import("./words.js").Position} Position
 *
 * @typedef {object} Links
 * @property {(key: string) => void} chooseLine @property {(name: string) => void} toggle
 * @property {(variant: string, node: number) => void} goTo shows a node of another version of the graph
 */

/** @param {GraphState} state @param {Box | null} box @param {Links} links @returns {HTMLElement[]} */
export function details(state, box, links) {
  if (!box) return overview(state);
  const graph = state.graphs[box.graph];
  if (box.kind === "input") {
    const { name, spec, captured } = graph.inputs[box.index];
    const role = captured ? "captured from the surrounding code" : "argument";
    return [heading(name, "input"), list([["value", spec], ["role", role]])];
  }
  if (box.kind === "output") {
    const { name, spec } = valuesOf(graph)[graph.outputs[box.index]];
    return [heading("output", "output"), list([["value", `${name}  ${spec}`]])];
  }
  if (box.kind === "group") {
    const { label, size, kind } = graph.groups[box.index];
    const what = { scope: "name scope", line: "ops of one line", block: "consecutive ops" }[kind] ?? kind;
    return [heading(label, "group"), list([["holds", `${counted(size, "op")} (${what})`]]), opener(box, links)];
  }
  return nodeDetails(state, box, links);
}

/** @param {GraphState} state @param {Box} box @param {Links} links */
function nodeDetails(state, box, links) {
  const graph = state.graphs[box.graph];
  const node = graph.nodes[box.index];
  const values = valuesOf(graph);
  /** @type {[string, Node | string][]} */
  const facts = [
    ["gives", (node.out ?? []).map((spec, k) => `${node.names[k]}  ${spec}`).join("\n") || "nothing"],
    ["of", (node.in ?? []).map((value) => `${values[value].name}  ${values[value].spec}`).join("\n") || "no inputs"],
    ["device", node.device || "where its inputs are"],
  ];
  for (const [name, text] of Object.entries(node.attrs ?? {})) facts.push([name, text]);
  if (node.stack?.length) facts.push(["line", breadcrumb(state, node.stack, links)]);
  if (node.became) facts.push(["optimised", fate(state, "optimised", node.became[1], node.became[0], links)]);
  if (node.was) facts.push(["traced as", fate(state, "traced", node.was, "", links)]);
  if (node.fused) facts.push(["fused", `in group ${node.fused}`]);
  const rule = state.rules[node.op];
  if (rule) facts.push(["gradient", h("code", { class: "ll-rule" }, rule)]);
  return [heading(titleOf(node), node.kind), list(facts), ...(box.opens ? [opener(box, links)] : [])];
}

/** The call stack, innermost first: each place can be chosen. @param {GraphState} state @param {Position[]} stack @param {Links} links */
function breadcrumb(state, stack, links) {
  const places = stack.flatMap((position, i) => {
    const text = `${placeOf(state, position)}${position[2] && position[2] !== "<module>" ? ` in ${position[2]}` : ""}`;
    const link = button(`Show ${text}`, () => links.chooseLine(lineKey(position[0], position[1])), { class: "ll-link" }, text);
    return i ? [" ← ", link] : [link];
  });
  return h("span", {}, ...places);
}

/** What happened to a node, with links to those that stand for it in another version of the graph.
 * @param {GraphState} state @param {string} variant @param {number[]} nodes @param {string} text @param {Links} links
 */
function fate(state, variant, nodes, text, links) {
  const graph = state.graphs[state.variants.find(({ key }) => key === variant)?.graph ?? 0];
  const targets = nodes.flatMap((index) => {
    const node = graph.nodes[index];
    const name = `${node.names[0] ?? ""} ${titleOf(node)}`.trim();
    return [" ", button(`Show ${name} in the ${variant} graph`, () => links.goTo(variant, index), { class: "ll-link" }, name)];
  });
  return h("span", {}, text, targets.length && text ? " →" : "", ...targets);
}

/** @param {Box} box @param {Links} links */
function opener({ name }, links) {
  return button("Open", () => links.toggle(name), { class: "ll-button" }, "⊞ Open");
}

/** What is shown while nothing is chosen: what the optimiser did, and a hint. @param {GraphState} state */
function overview(state) {
  const hint = h("p", { class: "ll-quiet" }, "Choose a box or a line of code to see what belongs to it.");
  if (!state.passes?.length) return [hint];
  const rows = state.passes.map(({ name, before, removed, added, after }) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, `${before} − ${removed} + ${added} = ${after}`)),
  );
  return [h("table", { class: "ll-passes" }, h("caption", {}, "What the optimiser did"), h("tbody", {}, ...rows)), hint];
}

/** @param {string} title @param {string} kind */
function heading(title, kind) {
  return h("h4", {}, title, h("span", { class: "ll-kind" }, KINDS[kind] ?? kind));
}

/** @param {[string, Node | string][]} facts */
function list(facts) {
  return h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
