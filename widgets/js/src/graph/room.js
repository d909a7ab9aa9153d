// The room that a picture may take: the view's width, and a height that its window, its reader or a dashboard sets.

import { MARGIN } from "./camera.js";

/** @typedef {import("./view.js").GraphView} GraphView */

const SIDE = [260, 0.36]; // pixels, and the share of the view's width, of the code beside a picture; as in the style sheet
export const BELOW = [130, 0.3]; // the same of its height, for the code below it
const NARROW = 620; // pixels of width up to which it is below
const TALLEST = [720, 0.8]; // pixels that the view grows to by itself, and the share of the window
const AROUND = 84; // pixels of a view's bar and foot, above and below the picture, but for the last of their padding
const LEAST_SHOWN = 400; // pixels of height that a picture may have, however little of it a scrolled page shows at once
const DRAWER = [520, 0.45]; // pixels of width up to which the code comes over a share of a picture's height, as in the style sheet
const FEW_OPS = 32; // of a graph that is looked at in a low room first
export const READ = 0.95; // the least scale at which all that is written can be read

/** Whether code is below a picture, not beside it. @param {GraphView} view */
export function isNarrow({ body }) {
  return widthOf(body) <= NARROW;
}

/** @param {HTMLElement | undefined} body */
const widthOf = (body) => body?.clientWidth || 900;

/** By which it is known whether the room is another one. @param {GraphView} view */
export function roomOf(view) {
  return `${widthOf(view.body)} ${tallest(view)}`;
}

/**
 * The room of a picture that has the whole view, and of one with its code.
 * @param {GraphView} view @returns {[import("./first-sight.js").Room, import("./first-sight.js").Room]}
 */
export function rooms(view) {
  const [width, height] = [widthOf(view.body), tallest(view)];
  const whole = { width: width - 2 * MARGIN, height: height - 2 * MARGIN };
  const beside = { ...whole, width: whole.width - Math.max(SIDE[0], SIDE[1] * width) };
  const below = { ...whole, height: whole.height - Math.max(BELOW[0], BELOW[1] * height) };
  const free = width > DRAWER[0] ? beside : { ...whole, height: whole.height - DRAWER[1] * height };
  return [view.state?.failed ? free : whole, isNarrow(view) ? below : beside]; // what is said of an error comes over the picture
}

/** Whether a picture of that scale is worth a view that is higher than a low window. @param {GraphView} view @param {number} scale */
export function needsMore(view, scale) {
  return scale < READ && !view.high && tallest(view) < TALLEST[0] && !isSized(view);
}

/** Whether the reader, or a dashboard, has given it a height: the browser notes `height` of what is resized. @param {GraphView} view */
export function isSized({ body, height }) {
  return Boolean(body) && body?.style.height !== height;
}

/** The height that the style sheet keeps a view to, below a cell on a low screen. @param {GraphView} view */
export function keptTo({ body }) {
  return (body && parseFloat(getComputedStyle(body).maxBlockSize)) || Infinity;
}

/** The height below a cell on a low screen, if a graph is so small that it may open there as a whole; else Infinity. @param {GraphView} view */
export function lowRoom(view) {
  const few = (view.state?.graphs[view.graph]?.nodes.length ?? 0) <= FEW_OPS;
  return few && !isSized(view) ? keptTo(view) : Infinity;
}

/** The height that the view may take, in its own pixels. @param {GraphView} view */
export function tallest(view) {
  if (view.body && isSized(view)) return view.body.clientHeight;
  if (view.low < Infinity) return view.low;
  if (view.high) return TALLEST[0];
  const enlarged = Math.round(100 * (view.camera?.enlarged() ?? 1)) / 100; // widths of part of a pixel would make it another room, and all be found out again
  return Math.floor(Math.min(TALLEST[0], (TALLEST[1] * window.innerHeight) / enlarged, shownAtOnce(view, enlarged)));
}

/**
 * The height of a picture that is seen with the view's bar and foot, without scrolling: JupyterLab's own bars take some of the
 * window. What scrolls within what scrolls, as an output, may be as high as the view itself.
 * @param {GraphView} view @param {number} enlarged
 */
function shownAtOnce({ root }, enlarged) {
  let height = Infinity;
  for (let around = root?.parentElement; around && around !== document.body; around = around.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(around).overflowY) && around.clientHeight) height = around.clientHeight;
  }
  return Math.max(height / enlarged - AROUND, LEAST_SHOWN / enlarged);
}
