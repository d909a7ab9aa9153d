// The line of a sparkline, and the moments of the time that it shows.

import { bytes, seconds } from "../format.js";

export const [WIDTH, HEIGHT] = [180, 36];

/** Steps through the values, the greatest at the top. @param {ArrayLike<number>} values */
export function line(values) {
  const numbers = Array.from(values);
  const most = numbers.reduce((a, b) => Math.max(a, b), 1);
  const step = WIDTH / Math.max(numbers.length, 1);
  const y = (/** @type {number} */ value) => (HEIGHT - 2 - (HEIGHT - 4) * (value / most)).toFixed(1);
  return numbers.map((value, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)},${y(value)} H${((i + 1) * step).toFixed(1)}`).join(" ");
}

/**
 * The moment that is pointed at, as a place among the values, with its words: now what lives now, before the most that there
 * was in a step.
 * @param {{live: number, history: ArrayLike<number>, history_seconds: number}} device @param {number} [pointed] from 0, the oldest, to 1
 */
export function momentAt({ live, history, history_seconds }, pointed = 1) {
  const last = Math.max(history.length - 1, 0);
  const at = Math.round(pointed * last);
  const ago = last ? (1 - at / last) * history_seconds : 0;
  return { last, at, ago, words: at === last ? `now: ${bytes(live)}` : `${seconds(ago)} ago: ${bytes(history[at])}` };
}
