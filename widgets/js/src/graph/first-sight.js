// What a graph shows at first: as much of it as can be read at once in the room there is. figures/first_sight.py does the
// same for the static pictures; the tests hold both to the same examples.

import { sizeOf, wordsOf } from "./box-text.js";
import { draw } from "./nested-layout.js";
import { visible } from "./visible-boxes.js";

/**
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./nested-layout.js").Drawing} Drawing
 * @typedef {import("./nested-layout.js").Manner} Manner
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {{width: number, height: number}} Room
 *
 * @typedef {object} Sight
 * @property {Set<string> | null} open the groups that are open; null for those that are open by default
 * @property {boolean} folded whether variables are told on the boxes that use them
 * @property {Manner} manner
 * @property {Picture} picture
 * @property {number} scale the largest at which all of it is in the room, 1 at most
 */

export const MOST_BOXES = 40;
const MOST_TRIALS = 24;
const MOST_NODES = 1_000_000; // walked over in all trials

/**
 * Begins with the closed graph and opens the group that is worth most, as long as the picture can be read.
 * @param {GraphState} state @param {number} graph @param {Room} room in which text has its natural size
 * @param {Room} [small] the same for a graph that is seen whole
 * @returns {Sight}
 */
export function firstSight(state, graph, room, small = room) {
  const byDefault = (/** @type {string} */ _, /** @type {boolean} */ open) => open;
  const whole = visible(state.graphs, graph, byDefault);
  const sight = whole.boxes.length <= MOST_BOXES ? laidOut(state, whole, small, null, false) : null;
  return sight?.scale === 1 ? sight : opened(state, graph, room);
}

/** @param {GraphState} state @param {number} graph @param {Room} room @returns {Sight} */
function opened(state, graph, room) {
  const trial = (/** @type {Set<string>} */ open) =>
    laidOut(state, visible(state.graphs, graph, (name) => open.has(name), true), room, open, true);
  let best = trial(new Set());
  const refused = new Set();
  const { nodes } = state.graphs[graph];
  for (let left = Math.min(MOST_TRIALS, Math.ceil(MOST_NODES / (nodes.length + 1))); left > 0; left--) {
    const next = worthMost(state, best.picture, refused);
    if (!next) break;
    const more = trial(new Set([...(best.open ?? []), ...next]));
    const fits = more.picture.boxes.length <= MOST_BOXES && more.scale >= Math.min(best.scale, 1);
    if (fits) best = more;
    else next.forEach((name) => refused.add(name));
  }
  return best;
}

/**
 * The group that is worth opening most, and its gradient: that with the most ops and bytes in it, not one that stands for many.
 * @param {GraphState} state @param {Picture} picture @param {Set<string>} refused
 */
function worthMost({ graphs }, { boxes }, refused) {
  let [most, best] = [0, /** @type {import("./visible-boxes.js").Box | null} */ (null)];
  for (const box of boxes) {
    if (box.kind !== "group" || refused.has(box.name)) continue;
    const { size, bytes = 0, repeat, kind } = graphs[box.graph].groups[box.index];
    if (repeat || kind === "repeat" || kind === "optimiser" || kind === "block") continue;
    const worth = size * (1 + Math.log2(1 + bytes));
    if (worth > most) [most, best] = [worth, box];
  }
  if (!best) return null;
  const { path, lane } = best;
  const partners = boxes.filter((box) => box.kind === "group" && path && box.path === path && box.lane !== lane);
  return [best, ...partners].map(({ name }) => name);
}

/**
 * The picture in the manner that fits best.
 * @param {GraphState} state @param {Picture} picture @param {Room} room @param {Set<string> | null} open @param {boolean} folded
 * @returns {Sight}
 */
function laidOut(state, picture, room, open, folded) {
  const far = picture.boxes.length > 4 * MOST_BOXES; // it will not be shown: no need to know how it would look
  const sizes = new Map(picture.boxes.map((box) => [box.name, sizeOf(wordsOf(state, box))]));
  let best = { open, folded, manner: /** @type {Manner} */ ({}), picture, scale: 0 };
  for (const manner of far ? [{}] : manners(picture, room)) {
    const { width, height } = draw(picture, sizes, manner);
    const scale = Math.min(room.width / width, room.height / height, 1);
    if (scale > best.scale) best = { open, folded, manner, picture, scale };
    if (scale === 1) break;
  }
  return best;
}

/** In the order in which they are tried. @param {Picture} picture @param {Room} room @returns {Manner[]} */
function manners({ boxes, frames }, { width, height }) {
  const lanes = [...boxes, ...frames].some(({ lane }) => lane === "backward" || lane === "update");
  const across = { across: true, limit: width, ...(lanes ? { lanes } : {}) };
  const down = { limit: height, ...(lanes ? { lanes } : {}) };
  return lanes ? [across, down] : [{}, down, across];
}
