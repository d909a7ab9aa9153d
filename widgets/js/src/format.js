// Numbers as people read them; the same words as limelight_widgets/format.py writes. The tests hold both to the
// same examples.

/** Counts for a value of unknown size: a sum with one in it is no whole number, and so is told as "at least". */
export const UNSIZED = 2 ** -16;
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** @param {number | null | undefined} count @returns {string} bytes with a decimal unit, "31.4 kB" */
export function bytes(count) {
  if (count === null || count === undefined) return "–";
  if (count % 1) return count > 1 ? `≥ ${bytes(Math.floor(count))}` : "? B";
  let size = count;
  for (const unit of UNITS.slice(0, -1)) {
    if (Math.abs(size) < 999.5) return `${threeDigits(size)} ${unit}`;
    size /= 1000;
  }
  return `${threeDigits(size)} ${UNITS.at(-1)}`;
}

/** @param {number | null | undefined} time @returns {string} seconds with a fitting unit, "38.1 ms" */
export function seconds(time) {
  if (time === null || time === undefined) return "–";
  if (time < 999.5e-6) return `${threeDigits(time * 1e6)} µs`;
  if (time < 0.9995) return `${threeDigits(time * 1e3)} ms`;
  return `${threeDigits(time)} s`;
}

/**
 * With commas between thousands; not by the browser, which takes tens of milliseconds to load what it knows of languages.
 * @param {number} value a whole one @returns {string}
 */
export function number(value) {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** @param {number} count @param {string} noun @param {string} [plural] @returns {string} "1 entry", "1,200 entries" */
export function counted(count, noun, plural) {
  return `${number(count)} ${count === 1 ? noun : (plural ?? `${noun}s`)}`;
}

/** @param {string} text @param {number} width @returns {string} at most `width` characters, with an ellipsis */
export function shortened(text, width) {
  return text.length <= width ? text : `${text.slice(0, Math.max(width - 1, 0)).trimEnd()}…`;
}

/** @param {[string, number, string] | null | undefined} line @returns {string} "In[3]:4" */
export function lineText(line) {
  return line ? `${line[0]}:${line[1]}` : "";
}

/** @param {number} value */
function threeDigits(value) {
  return value.toFixed(Math.abs(value) >= 99.95 ? 0 : 1).replace(/\.0$/, "");
}

/** @param {number[]} numbers */
export function sum(numbers) {
  return numbers.reduce((all, one) => all + one, 0);
}

/** Prose with arrows that stay on one line with what they connect; that of an annotation is code. @param {string} text */
export const joinedArrows = (text) => text.replace(/(?<!\)) -> | -> (?!\S*:)/g, "\u00a0→\u00a0");
