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

/**
 * @typedef {object} Label a text of the picture, the room it has, and what is written now
 * @property {SVGElement} element @property {number} size @property {string} full @property {string} [short]
 * @property {number} width @property {number} height @property {string} [said] @property {number} [type]
 */

/** Thins the labels of a picture out as it gets smaller. */
export class Labels {
  /** @param {Element} stage */
  constructor(stage) {
    this.stage = stage;
    this.level = 0;
    /** @type {Label[]} */
    this.all = [];
  }

  /** Forgets the labels of the last picture. */
  forget() {
    this.all = [];
  }

  /** Takes a label in, before it is on the page: text takes most of the time there. @param {Label} label */
  add(label) {
    this.all.push(label);
    this.write(label);
    return label.element;
  }

  /** @param {number} scale */
  draw(scale) {
    const next = level(scale);
    if (next === this.level) return;
    this.level = next;
    this.stage.classList.toggle("ll-far", this.scale < 0.45);
    this.stage.classList.toggle("ll-dense", this.scale < 0.2);
    for (const label of this.all) this.write(label);
  }

  get scale() {
    return this.level === 0 ? 1 : 2 ** this.level;
  }

  /** @param {Label} label */
  write(label) {
    const { element, size, full, said = full, type: before = size } = label;
    const { text, type } = written(label, this.scale);
    if (text !== said) element.textContent = text;
    if (type !== before) {
      if (type) element.style.fontSize = type === size ? "" : `${type.toFixed(1)}px`;
      if (type) element.removeAttribute("display");
      else element.setAttribute("display", "none");
    }
    [label.said, label.type] = [text, type];
  }
}
