// What the passes did to a graph, all in all.

import { sum } from "../format.js";
import { places } from "./box-paths.js";

/** @typedef {import("./box-text.js").GraphState} GraphState */

/**
 * The passes that did something, the names of those that did not, and what was fused in functions that the graph calls:
 * each of these has records of its own.
 * @param {GraphState} state @param {number} root the optimised graph
 */
export function passSummary({ passes = [], graphs }, root) {
  const busy = passes.filter(({ removed, added, changed }) => removed || added || changed);
  const called = [...places(graphs, root).keys()].filter((one) => one !== root);
  const inside = sum(called.map((one) => graphs[one].fusions?.length ?? 0));
  const fuses = inside || graphs[root].fusions?.length;
  const names = new Set(passes.filter((one) => !busy.includes(one)).map(({ name }) => name));
  const others = [...names].filter((name) => !busy.some((one) => one.name === name) && !(name === "fuse" && fuses));
  return { busy, others, inside, called: called.length };
}
