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
  const keys = Object.keys(columns).map((key) => ({ key, column: columns[key], next: 0 }));
  for (let row = 0; row < length; row++) {
    if (row && row % ROWS === 0) await turnOfThePage();
    /** @type {Record<string, any>} */
    const record = (made[row] = {});
    for (const one of keys) {
      const [values, at, rows] = one.column;
      if (rows && rows[one.next] !== row) continue;
      record[one.key] = values[at ? at[one.next] : one.next];
      one.next += 1;
    }
  }
  return made;
}

/** @param {DataView | ArrayBuffer} part */
function bytesOf(part) {
  return ArrayBuffer.isView(part) ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength) : new Uint8Array(part);
}

/** @param {Uint8Array} bytes copied, since a view of floats must begin at a multiple of four */
function floats(bytes) {
  return new Float32Array(bytes.slice().buffer);
}
