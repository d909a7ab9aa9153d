// The rows of a tape: how they grow, and which of them are asked for.

import { lineText } from "../format.js";

/**
 * Index, op, line (label, number, text), input specs, output specs, saved bytes, rule.
 * @typedef {[number, string, [string, number, string] | null, string[], string[], number, string]} Row
 */

/** Rows are only ever added: an update brings those from number `from` on. @param {any} state @param {any} change */
export function extend(state, change) {
  if (change.from === 0) return change;
  if (!state || change.from > state.rows.length) return null;
  return { ...change, rows: [...state.rows.slice(0, change.from), ...change.rows] };
}

/** @param {Row[]} rows @param {string} query @returns {Row[]} rows in which every word occurs */
export function filtered(rows, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return rows;
  return rows.filter(([, op, line, inputs, outputs, , rule]) => {
    const text = [op, lineText(line), line?.[2] ?? "", ...inputs, ...outputs, rule].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const REST = 64 + 86 + 76 + 16; // pixels of line and saved bytes, of gaps, and of what scrolls

/** Whether the columns have room beside one another, the rule as the last. @param {number[]} widths @param {number} room in pixels */
export const oneLine = (widths, room) => widths.reduce((all, width) => all + width, REST) <= room;
