// Which labels are drawn at a scale: small ones grow until they can be read; those that do not fit then are cut, and left
// out where that says nothing.

import { shortened } from "../format.js";

const LEAST = 10.5; // pixels of the smallest text of the screen that is worth drawing
const CHARACTER = 0.605; // width of a character by the size of its type
const FEWEST = 5; // characters to which a label is cut
const STEPS = 4; // in which labels change while the scale halves

/**
 * The size of type of a label, 0 for none.
 * @param {{size: number, characters: number, width: number, height: number}} label as it is at scale 1, and the room it has
 * @param {number} scale
 */
export function typeSize({ size, characters, width, height }, scale) {
  const wanted = Math.max(size, LEAST / scale);
  if (wanted === size) return size;
  const most = Math.min(width / (CHARACTER * characters), height);
  return wanted <= most ? wanted : 0;
}

/**
 * What is written at a scale, and in what size: all of a label, or where that has no room the short form that it may have, or
 * as much of it as has room.
 * @param {{size: number, full: string, short?: string, width: number, height: number}} label @param {number} scale
 * @returns {{text: string, type: number}} type 0 for nothing
 */
export function written({ full, short, ...label }, scale) {
  const type = typeSize({ ...label, characters: full.length }, scale);
  if (type || !label.width) return { text: full, type };
  const most = Math.floor((label.width * scale) / (CHARACTER * LEAST));
  const text = short ?? shortened(full, most);
  return { text, type: short || most >= FEWEST ? typeSize({ ...label, characters: text.length }, scale) : 0 };
}

/** Scales that look alike. @param {number} scale */
export function level(scale) {
  return scale >= LEAST / 11 ? 0 : Math.round(Math.log2(scale) * STEPS) / STEPS;
}

/** Thins the labels of a picture out as it gets smaller. */
export class Labels {
  /** @param {Element} stage */
  constructor(stage) {
    this.stage = stage;
    this.level = 0;
  }

  /** @param {number} scale @param {boolean} [anew] whether other labels are there now */
  draw(scale, anew = false) {
    const next = level(scale);
    if (next === this.level && !(anew && next)) return;
    this.level = next;
    const at = next === 0 ? 1 : 2 ** next;
    this.stage.classList.toggle("ll-far", at < 0.45);
    this.stage.classList.toggle("ll-dense", at < 0.2);
    for (const text of /** @type {Iterable<SVGElement>} */ (this.stage.querySelectorAll("text[data-width]"))) {
      const { width = "0", height = "0", size = "12", full = text.textContent ?? "", short } = text.dataset;
      const label = { size: Number(size), full, short, width: Number(width), height: Number(height) };
      const { text: said, type } = written(label, at);
      if (said !== text.textContent) text.textContent = said;
      text.style.fontSize = type && type !== label.size ? `${type.toFixed(1)}px` : "";
      text.style.display = type ? "" : "none";
    }
  }
}
