// All that is known about the chosen box.

import { button, h } from "../dom.js";
import { bytes, counted, number } from "../format.js";
import { crossingsList, keptList, nodeLink } from "./kept-tensors.js";
import { passSummary } from "./passes.js";
import { across, stepsTo } from "./box-paths.js";
import { lineKey } from "./line-key.js";
import { decisionTitle, KINDS, placeOf, titleOf, valuesOf } from "./box-text.js";

/**
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {import("./box-text.js").Position} Position
 *
 * @typedef {object} Links
 * @property {(key: string) => void} chooseLine @property {(name: string) => void} toggle
 * @property {(variant: string, name: string) => void} goTo shows a node of a version of the graph
 * @property {(box: Box) => string} fusedFrame the frame of the fusion group that a box is in, "" where none is drawn
 * @property {(name: string) => void} choose
 */

const FUSION = /** @type {Record<string, string>} */ ({
  elementwise: "elementwise ops of one shape", product: "a product and the elementwise ops after it",
});
const MOST_CHANGES = 100;
const MOST_OPS = 6; // of a group that are named

/**
 * @param {GraphState} state @param {string} variant the version that is shown @param {Box | null} box @param {Links} links
 * @returns {HTMLElement[]}
 */
export function details(state, variant, box, links) {
  if (!box) return overview(state, variant, links);
  const graph = state.graphs[box.graph];
  if (box.kind === "input") {
    const { name, spec, captured } = graph.inputs[box.index];
    const role = captured ? "captured from the surrounding code" : "argument";
    return [heading(name, "input"), list([["value", spec], ["role", role]])];
  }
  if (box.kind === "output") {
    const { name, spec } = valuesOf(graph)[graph.outputs[box.index]];
    return [heading(graph.output_names?.[box.index] ?? "output", "output"), list([["value", `${name}  ${spec}`]])];
  }
  if (box.kind === "decision") {
    const { op, in: inputs = [], calls = [] } = graph.nodes[box.index];
    const { name, spec } = valuesOf(graph)[inputs[box.position ?? 0]];
    const among = calls.map(([, label]) => label).join(", ");
    return [heading(decisionTitle(op), "decision"), list([["value", `${name}  ${spec}`], ["chooses", among]])];
  }
  if (box.kind === "group") {
    return [...groupDetails(state, graph.groups[box.index], box, links), ...keptList(state, variant, box, links)];
  }
  return [...nodeDetails(state, variant, box, links), ...keptList(state, variant, box, links)];
}

/** @param {GraphState} state @param {import("./visible-boxes.js").Group} group @param {Box} box @param {Links} links */
function groupDetails(state, { label, size, kind, cls, path, lane, saved: kept, bytes: made, repeat, tags, at }, box, links) {
  const what = { scope: "name scope", line: "ops of one line", block: "consecutive ops" }[kind] ?? kind;
  /** @type {[string, Node | string][]} */
  const facts = [["holds", [size && counted(size, "op"), what, cls].filter(Boolean).join(" ")]];
  if (path) facts.push(["path", path]);
  if (lane) facts.push(["pass", lane]);
  if (made) facts.push(["makes", bytes(made)]);
  if (kept) facts.push(["keeps", `${bytes(kept)} for the backward pass`]);
  if (at) facts.push(["line", breadcrumb(state, [[at[0], at[1], ""]], links)]);
  const used = tags ?? (box.tags ?? []).filter((tag) => !tag.startsWith("▶"));
  if (used.length) facts.push(["variables", used.join("\n")]);
  if (repeat) facts.push(["times", number(repeat.count)], ["differ in", (repeat.differs ?? []).join("\n") || "nothing that is drawn"]);
  return [heading(label, "group"), list(facts), ...(box.opens ? [opener(box, links)] : [])];
}

/**
 * All that is known about a fusion group.
 * @param {GraphState} state @param {string} variant @param {import("./visible-boxes.js").Frame} frame @param {Links} links
 * @returns {HTMLElement[]}
 */
export function fusionDetails(state, variant, { fused }, links) {
  if (!fused) return [];
  const { nodes } = state.graphs[fused.graph];
  const group = state.graphs[fused.graph].fusions?.[fused.number - 1] ?? { kind: "", nodes: [] };
  const ops = group.nodes.map((index) => nodeLink(state.graphs[fused.graph], index, variant, `${fused.path}n${index}`, links));
  const was = group.nodes.flatMap((index) => nodes[index].was ?? []);
  return [
    heading(`fused ${fused.number}`, `${counted(group.nodes.length, "op")} in one go`),
    list([
      ["ops", spread(ops)],
      ["why", `${FUSION[group.kind] ?? group.kind}: only the last result is used elsewhere`],
      ...(was.length > nodes.length ? [/** @type {[string, string]} */ (["traced as", counted(was.length, "op")])] : []),
    ]),
  ];
}

/** @param {GraphState} state @param {string} variant @param {Box} box @param {Links} links */
function nodeDetails(state, variant, box, links) {
  const graph = state.graphs[box.graph];
  const node = graph.nodes[box.index];
  const values = valuesOf(graph);
  if (node.kind === "error") return errorDetails(state, node, values, links);
  /** @type {[string, Node | string][]} */
  const facts = [
    ["gives", (node.out ?? []).map((spec, k) => `${node.names[k]}  ${spec}`).join("\n") || "nothing"],
    ["of", (node.in ?? []).map((value) => `${values[value].name}  ${values[value].spec}`).join("\n") || "no inputs"],
    ["device", node.device || "where its inputs are"],
  ];
  for (const called of callsOf(state, node)) facts.push(["calls", called]);
  for (const [name, text] of Object.entries(node.attrs ?? {})) facts.push([name, text]);
  if (node.stack?.length) facts.push(["line", breadcrumb(state, node.stack, links)]);
  if (node.became) facts.push(["optimised", fate(state, [variant, "optimised"], box.name, node.became[1], node.became[0], links)]);
  if (node.was) facts.push(["traced as", fate(state, [variant, "traced"], box.name, node.was, "", links)]);
  if (node.came) facts.push(["comes from", node.came]);
  if (node.fused) facts.push(["fused", fusionLink(graph, node.fused, links.fusedFrame(box), links)]);
  const rule = state.rules[node.op];
  if (rule) facts.push(["gradient", h("code", { class: "ll-rule" }, rule)]);
  return [heading(titleOf(node), node.kind), list(facts), ...(box.opens ? [opener(box, links)] : [])];
}

/**
 * What ended a trace: the error, of what, and where.
 * @param {GraphState} state @param {import("./visible-boxes.js").GraphNode} node @param {{name: string, spec: string}[]} values
 * @param {Links} links
 */
function errorDetails(state, node, values, links) {
  /** @type {[string, Node | string][]} */
  const facts = [["error", h("span", { class: "ll-error-text" }, state.failed?.error ?? "")]];
  if (node.in) facts.push(["of", node.in.map((value) => `${values[value].name}  ${values[value].spec}`).join("\n")]);
  if (node.stack?.length) facts.push(["line", breadcrumb(state, node.stack, links)]);
  return [heading(node.op, "error"), list(facts)];
}

/** Each function that a node calls: "dense(x f32[8,16]) → f32[8,4], 7 ops". @param {GraphState} state @param {import("./visible-boxes.js").GraphNode} node */
function callsOf(state, node) {
  return (node.calls ?? []).map(([index, name]) => {
    const { inputs, outputs, nodes } = state.graphs[index];
    const values = valuesOf(state.graphs[index]);
    const given = inputs.map((input) => `${input.name} ${input.spec}`).join(", ");
    return `${name}(${given}) → ${outputs.map((value) => values[value].spec).join(", ") || "nothing"}, ${counted(nodes.length, "op")}`;
  });
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

/**
 * What happened to a node, with links to those that stand for it in another version of the graph.
 * @param {GraphState} state @param {[string, string]} variants that which is shown, and the other
 * @param {string} name @param {number[]} nodes @param {string} text @param {Links} links
 */
function fate(state, [shown, other], name, nodes, text, links) {
  const names = across(state, shown, name, nodes);
  const root = state.variants.find(({ key }) => key === other)?.graph ?? 0;
  const graph = names.length ? stepsTo(state.graphs, root, names[0]).graph : -1;
  const targets = names.map((target, i) => nodeLink(state.graphs[graph], nodes[i], other, target, links));
  return h("span", {}, text, targets.length && text ? " → " : "", spread(targets));
}

/** @param {import("./visible-boxes.js").Graph} graph @param {number} number @param {string} frame @param {Links} links */
function fusionLink(graph, number, frame, links) {
  const size = graph.fusions?.[number - 1].nodes.length ?? 0;
  const text = `in group ${number}: ${counted(size, "op")} in one go`;
  return frame ? button(`Show fusion group ${number}`, () => links.choose(frame), { class: "ll-link" }, text) : text;
}

/** @param {HTMLElement[]} parts */
function spread(parts) {
  return h("span", {}, ...parts.flatMap((part, i) => (i ? [", ", part] : [part])));
}

/** @param {Box} box @param {Links} links */
function opener({ name }, links) {
  return button("Open", () => links.toggle(name), {}, "⊞ Open");
}

/** What is shown while nothing is chosen: what the optimiser did, what is kept, and a hint. @param {GraphState} state @param {string} variant @param {Links} links */
function overview(state, variant, links) {
  const shown = state.variants.find(({ key }) => key === variant)?.graph ?? 0;
  const kept = crossingsList(state, variant, shown, links);
  const hint = h("p", { class: "ll-quiet" }, "Choose a box or a line of code to see what belongs to it.");
  const passes = state.passes ?? [];
  if (!passes.length) return [hint, ...kept];
  const root = state.variants.find(({ key }) => key === "optimised")?.graph ?? 0;
  const optimised = state.graphs[root];
  const fusions = optimised.fusions?.length ?? 0;
  const { busy, others, inside, called } = passSummary(state, root);
  return [
    h("h4", {}, "What the optimiser did"),
    h("div", { class: "ll-passes" }, ...busy.map((one) => passRow(state, one, links))),
    ...(fusions ? [fusionRow(optimised, links)] : []),
    ...(inside ? [h("div", { class: "ll-pass" }, h("code", {}, "fuse"), ` ${counted(inside, "group")} in functions that it calls`)] : []),
    ...(others.length ? [h("p", { class: "ll-quiet" }, `nothing to do for ${others.join(", ")}${called ? " in the graph itself" : ""}`)] : []),
    hint,
    ...kept,
  ];
}

/** A pass: its arithmetic, which unfolds to what it changed. @param {GraphState} state @param {import("./box-text.js").Pass} pass @param {Links} links */
function passRow(state, { name, before, removed, added, after, changed = [] }, links) {
  const root = state.variants.find(({ key }) => key === "traced")?.graph ?? 0;
  const sum = [h("code", {}, name), ` ${before} − ${removed} + ${added} = ${after}`];
  if (!changed.length) return h("div", { class: "ll-pass" }, ...sum);
  const rows = changed.slice(0, MOST_CHANGES).map(([index, said]) =>
    h("li", {}, nodeLink(state.graphs[root], index, "traced", `n${index}`, links), `: ${said}`),
  );
  return h("details", { class: "ll-pass" }, h("summary", {}, ...sum), h("ul", {}, ...rows));
}

/** The fusion groups, folded away. @param {import("./visible-boxes.js").Graph} graph @param {Links} links */
function fusionRow({ nodes, fusions = [] }, links) {
  const rows = fusions.slice(0, MOST_CHANGES).map(({ nodes: members }, i) => {
    const ops = members.slice(0, MOST_OPS).map((index) => nodes[index].op).join(", ");
    const text = `fused ${i + 1}: ${ops}${members.length > MOST_OPS ? ` and ${members.length - MOST_OPS} more` : ""}`;
    const last = members[members.length - 1];
    return h("li", {}, button(`Show ${text}`, () => links.goTo("optimised", `n${last}`), { class: "ll-link" }, text));
  });
  const summary = h("summary", {}, h("code", {}, "fuse"), ` ${counted(fusions.length, "group")}`);
  return h("details", { class: "ll-pass" }, summary, h("ul", {}, ...rows));
}

/** @param {string} title @param {string} kind */
function heading(title, kind) {
  return h("h4", {}, title, h("span", { class: "ll-kind" }, KINDS[kind] ?? kind));
}

/** @param {[string, Node | string][]} facts */
function list(facts) {
  return h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
