// Which labels are drawn at a scale: small ones grow until they can be read; those that do not fit then are cut, and left
// out where that says nothing.

import { shortened } from "../format.js";

const LEAST = 10.5; // pixels of the smallest text of the screen that is worth drawing
const CHARACTER = 0.605; // width of a character by the size of its type
const FEWEST = 5; // characters to which a label is cut
const STEPS = 4; // in which labels change while the scale halves
const LEADING = 1.05; // height of a line by the size of its type, where lines have grown
const BASE = 0.36; // how far below the middle of a line its letters stand, by the size of its type

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

/**
 * The lines of a box at a scale: where some have grown or gone, the rest in its middle. The last goes where not all have room.
 * @param {{type: number, size: number, y: number}[]} lines as they would be written, type 0 for nothing, and where at scale 1
 * @param {{top: number, height: number}} room of the lines @returns {{type: number, y: number}[]}
 */
export function stacked(lines, { top, height }) {
  if (lines.every(({ type, size }) => type === size)) return lines;
  const tall = lines.reduce((all, { type }) => all + type * LEADING, 0);
  const last = lines.findLastIndex(({ type }) => type);
  if (tall > height && lines.findIndex(({ type }) => type) < last) return stacked(lines.with(last, { ...lines[last], type: 0 }), { top, height });
  let above = top + (height - tall) / 2;
  return lines.map(({ type }) => {
    const y = above + type * (LEADING / 2 + BASE);
    above += type * LEADING;
    return { type, y };
  });
}

/** Scales that look alike. @param {number} scale */
export function level(scale) {
  return scale >= LEAST / 11 ? 0 : Math.round(Math.log2(scale) * STEPS) / STEPS;
}

/**
 * @typedef {object} Label a text of the picture, the room it has, and what is written now
 * @property {SVGElement} element @property {number} size @property {string} full @property {string} [short]
 * @property {number} width @property {number} height @property {string} [said] @property {number} [type]
 * @property {number} [y] where it is at scale 1, of a line of a box @property {number} [placed] where it is now
 */

/** Thins the labels of a picture out as it gets smaller. */
export class Labels {
  /** @param {Element} stage */
  constructor(stage) {
    this.stage = stage;
    this.level = 0;
    /** @type {{lines: Label[], room?: {top: number, height: number}}[]} each by itself, or those that have a room together */
    this.all = [];
  }

  /** Forgets the labels of the last picture. */
  forget() {
    this.all = [];
  }

  /** Takes a label in, before it is on the page: text takes most of the time there. @param {Label} label */
  add(label) {
    return this.stack([label])[0];
  }

  /** The same of lines that have a room together, in the middle of which they stay. @param {Label[]} lines @param {{top: number, height: number}} [room] */
  stack(lines, room) {
    this.all.push({ lines, room });
    this.write(lines, room);
    return lines.map(({ element }) => element);
  }

  /** @param {number} scale */
  draw(scale) {
    const next = level(scale);
    if (next === this.level) return;
    this.level = next;
    this.stage.classList.toggle("ll-far", this.scale < 0.45);
    this.stage.classList.toggle("ll-dense", this.scale < 0.2);
    for (const { lines, room } of this.all) this.write(lines, room);
  }

  get scale() {
    return this.level === 0 ? 1 : 2 ** this.level;
  }

  /** @param {Label[]} lines @param {{top: number, height: number}} [room] */
  write(lines, room) {
    const texts = lines.map((label) => written(label, this.scale));
    const places = room ? stacked(texts.map(({ type }, i) => ({ type, size: lines[i].size, y: lines[i].y ?? 0 })), room) : texts;
    lines.forEach((label, i) => apply(label, { ...texts[i], ...places[i] }));
  }
}

/** @param {Label} label @param {{text: string, type: number, y?: number}} wanted */
function apply(label, { text, type, y }) {
  const { element, size, full, said = full, type: before = size, placed = label.y } = label;
  if (text !== said) element.textContent = text;
  if (type !== before) {
    if (type) element.style.fontSize = type === size ? "" : `${type.toFixed(1)}px`;
    if (type) element.removeAttribute("display");
    else element.setAttribute("display", "none");
  }
  if (y !== undefined && y !== placed) element.setAttribute("y", y.toFixed(1));
  [label.said, label.type, label.placed] = [text, type, y];
}
