// States from the wire: compressed JSON, then the buffers of numbers that it refers to.

import { turnOfThePage } from "./turns.js";

const TABLE = "=table"; // as in live/wire.py: a long list of records, as columns
const LONG = 200_000; // characters after which the page has its turn before the state is drawn
const DEPTH = 4; // of containers in which such lists are looked for
const ROWS = 5000; // that are made before the page has its turn

/**
 * @typedef {[any[], number[] | null, number[]?]} Column values, the place of each record's among them where not all differ,
 *   and the records that have one where not all do
 */

/**
 * @param {ArrayLike<DataView | ArrayBuffer>} parts what `limelight_widgets.live.wire.pack` made
 * @returns {Promise<any>} the state; arrays of numbers are Float32Array
 */
export async function unpack(parts) {
  const [json, ...buffers] = Array.from(parts, bytesOf);
  const stream = new Blob([/** @type {any} */ (json)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const text = await new Response(stream).text();
  const state = !buffers.length
    ? JSON.parse(text) // looking at every value takes ten times as long
    : JSON.parse(text, (_key, value) => {
        const index = value?.buffer;
        return typeof index === "number" && Object.keys(value).length === 1 ? floats(buffers[index - 1]) : value;
      });
  if (text.length > LONG) await turnOfThePage();
  return expanded(state, DEPTH);
}

/** Makes the records of all tables, in place. @param {any} value @param {number} depth @returns {Promise<any>} */
async function expanded(value, depth) {
  if (!depth || typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (TABLE in value) return records(value[TABLE]);
  if (Array.isArray(value) && typeof value[0] !== "object") return value;
  for (const key of Object.keys(value)) {
    const one = value[key];
    if (typeof one === "object" && one !== null) value[key] = await expanded(one, depth - 1);
  }
  return value;
}

/** @param {[number, Record<string, Column>]} table */
async function records([length, columns]) {
  /** @type {Record<string, any>[]} */
  const made = new Array(length);
  const cursors = Object.entries(columns).map(([key, column]) => ({ key, column, next: 0 }));
  for (let start = 0; start < length; start += ROWS) {
    if (start) await turnOfThePage();
    const end = Math.min(start + ROWS, length);
    for (let row = start; row < end; row++) made[row] = {};
    for (const one of cursors) one.next = fill(made, one.key, one.column, start, end, one.next); // column by column: the engine knows then what it writes
  }
  return made;
}

/**
 * Writes a column into some of the records; says how many of its values are used by then.
 * @param {Record<string, any>[]} made @param {string} key @param {Column} column @param {number} start @param {number} end @param {number} next
 */
function fill(made, key, [values, at, rows], start, end, next) {
  if (!rows) {
    for (let row = start; row < end; row++) made[row][key] = values[at ? at[row] : row];
    return end;
  }
  for (; next < rows.length && rows[next] < end; next++) made[rows[next]][key] = values[at ? at[next] : next];
  return next;
}

/** @param {DataView | ArrayBuffer} part */
function bytesOf(part) {
  return ArrayBuffer.isView(part) ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength) : new Uint8Array(part);
}

/** @param {Uint8Array} bytes copied, since a view of floats must begin at a multiple of four */
function floats(bytes) {
  return new Float32Array(bytes.slice().buffer);
}
