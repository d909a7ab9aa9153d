// What is told on the boxes of a graph besides: time, bytes, device, NaN and infinity, the norm of gradients. See
// figures/overlays.py, which does the same; the tests hold both to the same examples.

import { s } from "../dom.js";
import { bytes, counted, seconds, sum } from "../format.js";
import { nodesOf } from "./kept-tensors.js";
import { bytesOf } from "./visible-boxes.js";

/**
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./visible-boxes.js").GraphNode} GraphNode
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {{text: string, share: number | null}} Told
 */

/** @type {Record<string, [string, string]>} the name in the menu, and what it shows */
export const OVERLAYS = {
  time: ["Time", "seconds of each op, run by itself: the least of three runs"],
  bytes: ["Bytes", "bytes of what each op gives"],
  device: ["Device", "where each op was asked to run"],
  nan: ["NaN, ∞", "numbers that are NaN or infinite in what each op gave"],
  grad: ["Gradients", "L2 norm of what each op of the backward pass gave"],
};
const MEASURED = ["time", "nan", "grad"];
const NOT_MEASURED = "not measured";
const ARGUMENTS = "‹arguments›"; // no Python: copied as it is, it is an error at once
const ELSEWHERE = "where its inputs are";
const MOST_DEVICES = 2;
const LINE = 20; // pixels that a line of two may grow to
export const BAR = 4; // pixels, at the foot of a box

/** What an overlay tells on each box that stands for ops. @param {GraphState} state @param {Box[]} boxes @param {string} overlay @returns {Map<string, Told>} */
export function told(state, boxes, overlay) {
  const shown = boxes.filter(({ kind }) => kind === "node" || kind === "group");
  const found = shown.map((box) => /** @type {const} */ ([box.name, valueOf(state, box, overlay)]));
  if (overlay === "device") return new Map(found.map(([name, value]) => [name, { text: String(value), share: null }]));
  const most = Math.max(0, ...found.flatMap(([, value]) => (typeof value === "number" && Number.isFinite(value) ? [value] : [])));
  return new Map(found.map(([name, value]) => [name, { text: textOf(overlay, value), share: shareOf(value, most) }]));
}

/**
 * What an overlay shows, in what unit, and how much it is all in all.
 * @param {GraphState} state @param {number} graph @param {string} overlay
 * @param {Map<string, Told>} [overlaid] the boxes, where their numbers may go while their bars stay, as the picture gets smaller
 */
export function legend(state, graph, overlay, overlaid = new Map()) {
  const { nodes } = state.graphs[graph];
  if (MEASURED.includes(overlay) && !nodes.some(({ cost }) => cost)) {
    const [what, call, hint] = state.staged_cell ? ["the cell", "", ""] : ["a call", `(${ARGUMENTS})`, `, with the call's own for ${ARGUMENTS}`];
    return `${overlay}: ${NOT_MEASURED}. To run ${what} and measure its ops, write %graph ${state.title}${call} --overlay ${overlay}${hint}`;
  }
  const said = `${overlay}: ${OVERLAYS[overlay][1]}`;
  if (overlay === "device") return said;
  const heaviest = [...overlaid.values()].find(({ share }) => share === 1)?.text ?? "";
  return `${said}; all in all ${textOf(overlay, sumOf(nodes, overlay))}. The bar is the share of the heaviest box${heaviest && `, ${heaviest}`}.`;
}

/** @param {GraphState} state @param {Box} box @param {string} overlay */
function valueOf(state, box, overlay) {
  const graph = state.graphs[box.graph];
  const nodes = nodesOf(graph, box).map((index) => graph.nodes[index]);
  if (overlay !== "device") return sumOf(nodes, overlay);
  const devices = [...new Set(nodes.map(({ device }) => device ?? ELSEWHERE))];
  const more = devices.length - MOST_DEVICES;
  return devices.slice(0, MOST_DEVICES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** The sum over some nodes, null where nothing was measured; for norms the root of the sum of squares. @param {GraphNode[]} nodes @param {string} overlay */
function sumOf(nodes, overlay) {
  if (overlay === "bytes") return sum(nodes.flatMap(({ inline, out = [], cost }) => (inline ? [] : cost ? cost[4] : out.map(bytesOf))));
  const costs = nodes.flatMap(({ cost, lane }) => (cost ? [{ cost, lane }] : []));
  if (overlay !== "grad") return costs.length ? sum(costs.map(({ cost }) => (overlay === "time" ? cost[0] : cost[1] + cost[2]))) : null;
  /** @type {(number | string | null)[]} */
  const norms = costs.flatMap(({ cost, lane }) => (lane === "backward" && cost[3] !== null ? [cost[3]] : []));
  if (norms.some((norm) => typeof norm === "string")) return Infinity;
  return norms.length ? Math.sqrt(sum(norms.map((norm) => Number(norm) ** 2))) : null;
}

/** @param {string} overlay @param {number | string | null} value */
function textOf(overlay, value) {
  if (value === null) return overlay === "grad" ? "" : NOT_MEASURED;
  const number = Number(value);
  if (overlay === "time") return seconds(number);
  if (overlay === "bytes") return bytes(number);
  if (overlay === "nan") return number ? `⚠ ${counted(number, "number")} not finite` : "✓ all finite";
  return `norm ${Number.isFinite(number) ? figure(number) : "∞"}`;
}

/** Three digits, with a power of ten where they would be far from the point. @param {number} value */
const figure = (value) => (!value || (value >= 1e-3 && value < 1e4) ? String(Number(value.toPrecision(3))) : value.toExponential(2));

/** @param {number | string | null} value @param {number} most */
function shareOf(value, most) {
  if (typeof value !== "number") return null;
  if (!Number.isFinite(value)) return 1;
  return most ? value / most : 0;
}

/** The share of a box, at its foot; nothing where none was measured. @param {Told | undefined} one @param {import("./nested-layout.js").Rectangle} place */
export function shareElement(one, { width, height }) {
  if (!one || one.share === null) return null;
  const long = Math.max(one.share * (width - 6), one.share ? 1 : 0);
  return s("rect", { class: "ll-share", x: 3, y: height - BAR - 1, width: long, height: BAR, rx: 2, "aria-hidden": "true" });
}

/** The label of what is told, which has room to grow while the picture gets smaller: a bar has its number beside it. @param {string} text @param {number} width of the box */
export const toldLabel = (text, width) => ({ size: 11, full: text, short: text.replace(/^norm /, ""), width: width - 4, height: LINE });

/** Whether a box has a measure, but none was taken. @param {Told | undefined} one */
export function isUnmeasured(one) {
  return one?.share === null && one.text === NOT_MEASURED;
}
