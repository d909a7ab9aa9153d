// How many ops each line of code made: every op counts once in a file, at the innermost of its lines that led to it.

import { counted } from "../format.js";
import { lineKey } from "./line-key.js";
import { places } from "./box-paths.js";

/**
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {{own: number, inside: number}} Count ops of the graph itself, and of the functions that it calls
 * @typedef {{traced: Count | null, shown: Count}} LineCount as traced, where that is not what is shown
 */

const NONE = { own: 0, inside: 0 };

/** @param {GraphState} state @param {number} root @returns {Map<string, Count>} by `lineKey` */
function countsOf(state, root) {
  /** @type {Map<string, Count>} */
  const found = new Map();
  for (const graph of places(state.graphs, root).keys()) {
    for (const { stack, times } of stacksOf(state.graphs[graph])) {
      const seen = new Set();
      for (const [source, line] of stack) {
        if (seen.has(source)) continue;
        seen.add(source);
        const key = lineKey(source, line);
        const count = found.get(key) ?? { ...NONE };
        count[graph === root ? "own" : "inside"] += times;
        found.set(key, count);
      }
    }
  }
  return found;
}

/** The different ways to the nodes of a graph: many nodes come from one line. @param {import("./visible-boxes.js").Graph} graph */
function stacksOf({ nodes }) {
  /** @type {Map<number, {stack: import("./box-text.js").Position[], times: number}[]>} by the innermost line */
  const found = new Map();
  for (const { stack } of nodes) {
    if (!stack?.length) continue;
    const alike = found.get(stack[0][1]);
    const same = alike?.find((one) => one.stack === stack || equal(one.stack, stack));
    if (same) same.times += 1;
    else if (alike) alike.push({ stack, times: 1 });
    else found.set(stack[0][1], [{ stack, times: 1 }]);
  }
  return [...found.values()].flat();
}

/** @param {import("./box-text.js").Position[]} a @param {import("./box-text.js").Position[]} b */
function equal(a, b) {
  return a.length === b.length && a.every(([source, line], i) => source === b[i][0] && line === b[i][1]);
}

/** @param {GraphState} state @param {string} variant @returns {Map<string, LineCount>} by `lineKey` */
export function lineCounts(state, variant) {
  const root = (/** @type {string} */ wanted) => state.variants.find(({ key }) => key === wanted)?.graph ?? -1;
  const shown = countsOf(state, root(variant));
  const traced = variant === "traced" || root("traced") < 0 ? null : countsOf(state, root("traced"));
  const keys = new Set([...shown.keys(), ...(traced?.keys() ?? [])]);
  const pair = (/** @type {string} */ key) => ({ traced: traced && (traced.get(key) ?? NONE), shown: shown.get(key) ?? NONE });
  return new Map([...keys].map((key) => [key, pair(key)]));
}

/** "13→5" @param {LineCount} count @param {"own" | "inside"} part @returns {string} "" for none */
export function short({ traced, shown }, part) {
  const before = traced?.[part] ?? shown[part];
  if (!before && !shown[part]) return "";
  return before === shown[part] ? String(before) : `${before}→${shown[part]}`;
}

/** "13 ops as traced, 5 as they run; 4 in functions that the graph calls" @param {LineCount} count */
export function sentence(count) {
  const parts = [said(count, "own"), said(count, "inside")];
  return [parts[0], parts[1] && `${parts[1]} in functions that the graph calls`].filter(Boolean).join("; ");
}

/** @param {LineCount} count @param {"own" | "inside"} part */
function said({ traced, shown }, part) {
  const before = traced?.[part] ?? shown[part];
  if (!before && !shown[part]) return "";
  return before === shown[part] ? counted(before, "op") : `${counted(before, "op")} as traced, ${shown[part]} as they run`;
}
