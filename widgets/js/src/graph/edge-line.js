// Where the line of an edge passes, and how it looks there: many lie on one another for a part of their way.

import { common, meet } from "./rectangles.js";

/** @typedef {import("./nested-layout.js").Rectangle} Rectangle */

export class EdgeLine {
  /** @param {string} path @param {string[]} ends the boxes that it joins @param {string} stroke how it is drawn */
  constructor(path, ends, stroke) {
    this.path = path;
    this.ends = ends;
    this.stroke = stroke;
    /** @type {ReturnType<typeof piecesOf> | null} once somebody asks */
    this.pieces = null;
  }

  /** How it looks in a region, "" where it does not pass. @param {Rectangle} region */
  within(region) {
    this.pieces ??= piecesOf(this.path);
    const seen = this.pieces.filter((piece) => meet(piece, region)).map(({ text, ...piece }) => text || Object.values(common(piece, region)).join(" "));
    return seen.length ? [this.stroke, ...seen].join() : "";
  }
}

/** From bend to bend. @param {string} path "M0,0 L9,0 C..." @returns {(Rectangle & {text: string})[]} without a text where it is straight */
function piecesOf(path) {
  const corners = path.split(/ (?=[LC])/).map((step) => step.slice(1).split(/[ ,]/).slice(-2).map(Number));
  return corners.slice(1).map(([x, y], k) => {
    const [fromX, fromY] = corners[k];
    const text = x === fromX || y === fromY ? "" : `${fromX},${fromY} ${x},${y}`;
    return { x: Math.min(x, fromX), y: Math.min(y, fromY), width: Math.abs(x - fromX), height: Math.abs(y - fromY), text };
  });
}
