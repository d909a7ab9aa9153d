// A list of which only the rows in view exist, so that 10,000 scroll as smoothly as ten.

const OVERSCAN = 6; // rows drawn beyond the edges

/**
 * The rows to draw.
 * @param {number} top pixels scrolled @param {number} height of the window @param {number} row height of one @param {number} count
 * @returns {[number, number]} the first, and the one after the last
 */
export function range(top, height, row, count) {
  const first = Math.max(Math.floor(top / row) - OVERSCAN, 0);
  const last = Math.min(Math.ceil((top + height) / row) + OVERSCAN, count);
  return [Math.min(first, last), last];
}

/**
 * How far to scroll for a row to be in view.
 * @param {number} index @param {number} top @param {number} height @param {number} row
 */
export function scrolledTo(index, top, height, row) {
  if (index * row < top) return index * row;
  return Math.max(top, (index + 1) * row - height);
}

/**
 * The row that a key leads to; null for keys that do not move.
 * @param {string} key @param {number} at @param {number} page rows in a page @param {number} count
 */
export function moved(key, at, page, count) {
  const steps = /** @type {Record<string, number>} */ ({
    ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1,
  });
  return key in steps ? Math.min(Math.max(steps[key], 0), count - 1) : null;
}
