// A line of code as a key: the index of its source and its number.

/** @typedef {import("./box-text.js").GraphState} GraphState */

/** @param {number} source @param {number} line */
export const lineKey = (source, line) => `${source}:${line}`;

/** @param {GraphState} state @param {string} key */
export function placeOfKey(state, key) {
  const [source, line] = key.split(":").map(Number);
  return { label: state.sources[source].label, line };
}
