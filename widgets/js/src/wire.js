// States from the wire: compressed JSON, then the buffers of numbers that it refers to.

/**
 * @param {ArrayLike<DataView | ArrayBuffer>} parts what `limelight_widgets.live.wire.pack` made
 * @returns {Promise<any>} the state; arrays of numbers are Float32Array
 */
export async function unpack(parts) {
  const [json, ...buffers] = Array.from(parts, bytesOf);
  const stream = new Blob([/** @type {any} */ (json)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const text = await new Response(stream).text();
  if (!buffers.length) return JSON.parse(text); // looking at every value takes ten times as long
  return JSON.parse(text, (_key, value) => {
    const index = value?.buffer;
    return typeof index === "number" && Object.keys(value).length === 1 ? floats(buffers[index - 1]) : value;
  });
}

/** @param {DataView | ArrayBuffer} part */
function bytesOf(part) {
  return ArrayBuffer.isView(part) ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength) : new Uint8Array(part);
}

/** @param {Uint8Array} bytes copied, since a view of floats must begin at a multiple of four */
function floats(bytes) {
  return new Float32Array(bytes.slice().buffer);
}
