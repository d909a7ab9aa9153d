// What a graph shows at first: as much of it as can be read at once in the room there is. figures/first_sight.py does the
// same for the static pictures; the tests hold both to the same examples.

import { sizeOf, wordsIn } from "./box-text.js";
import { drawWithin } from "./nested-layout.js";
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
 * @property {Set<string>} dissolved those of them that are drawn without a frame
 * @property {boolean} folded whether variables are told on the boxes that use them
 * @property {Manner} manner
 * @property {Picture} picture
 * @property {number} scale the largest at which all of it is in the room, 1 at most
 * @property {Drawing} [drawing] the picture, laid out
 */

export const MOST_BOXES = 40;
const MOST_EDGES = 120; // of a picture that is tried: nobody can follow more, and to lay them out takes most of the time
const WRAPS = 0.7; // of a lane's nodes that a group holds for its frame to be left out
const FEW = 4;
const FEW_BOXES = 14; // a picture of fewer says too little
const MOST_TRIALS = 24;
const MOST_NODES = 250_000; // walked over in all trials
const ROUNDED = 1 + 1e-9;

/**
 * Begins with the closed graph and opens the group that is worth most, as long as the picture can be read.
 * @param {GraphState} state @param {number} graph @param {Room} room in which text has its natural size
 * @param {Room} [small] the same for a graph that is seen whole
 * @returns {Sight}
 */
export function firstSight(state, graph, room, small = room) {
  const trials = sights(state, graph, room, small);
  for (;;) {
    const { value, done } = trials.next();
    if (done) return value;
  }
}

/**
 * The same in steps, each of which takes about as long as to look at all ops once.
 * @param {GraphState} state @param {number} graph @param {Room} room @param {Room} [small]
 * @returns {Generator<void, Sight, void>}
 */
export function* sights(state, graph, room, small = room) {
  const whole = wholeOf(state, graph);
  const sight = whole ? laidOut(state, whole, small, null, false, { least: 1 }) : null;
  return sight?.scale === 1 ? sight : yield* opened(state, graph, room);
}

/** The picture of all ops, if these are few. @param {GraphState} state @param {number} graph */
function wholeOf({ graphs }, graph) {
  if (graphs[graph].nodes.filter(({ inline }) => !inline).length > MOST_BOXES) return null; // and no group that is closed hides some of them
  const byDefault = (/** @type {string} */ _, /** @type {boolean} */ open) => open;
  const { boxes, ...rest } = visible(graphs, graph, byDefault, false, new Set(), MOST_BOXES);
  return boxes.length <= MOST_BOXES && boxes.every(({ kind }) => kind !== "group") ? { boxes, ...rest } : null;
}

/** @param {GraphState} state @param {number} graph @param {Room} room @returns {Generator<void, Sight, void>} */
function* opened(state, graph, room) {
  const [all, most] = [wrappers(state.graphs[graph]), MOST_TRIALS];
  const trial = (/** @type {Set<string>} */ open, /** @type {Set<string>} */ dissolved, /** @type {number} */ least, terse = false) =>
    laidOut(state, visible(state.graphs, graph, (name) => open.has(name), true, dissolved, MOST_BOXES), room, open, true, { dissolved, limit: MOST_BOXES, least, terse });
  const none = new Set();
  yield;
  const closed = laidOut(state, visible(state.graphs, graph, () => false, true), room, none, true, { closed: true });
  const row = allSteps(state.graphs[graph], all);
  const ahead = [row, all].map((names) => butGradients(state.graphs[graph], names)).filter((names) => names.size !== all.size || [...names].some((name) => !all.has(name)));
  let best = closed;
  const tried = [row, all, ...ahead];
  const tersely = closed.picture.boxes.length < FEW_BOXES ? tried : []; // the names of layers say more than the shapes of what is around them
  for (const [at, dissolved] of [...tried, ...tersely].entries()) {
    yield;
    const one = trial(new Set(dissolved), dissolved, closed.scale, at >= tried.length);
    if (better(one, closed)) {
      best = one;
      break;
    }
  }
  const refused = new Set();
  const { nodes } = state.graphs[graph];
  for (let left = Math.min(most, Math.ceil(MOST_NODES / (nodes.length + 1))); left > 0; ) {
    const next = worthMost(state, best.picture, refused);
    if (!next) break;
    const before = best;
    for (const { open, dissolved } of ways(next, before.picture.boxes.length < FEW_BOXES)) {
      yield;
      const more = trial(new Set([...(before.open ?? []), ...open]), new Set([...before.dissolved, ...dissolved]), before.scale);
      left -= 1;
      if (better(more, before)) best = more;
      if (best !== before) break;
    }
    if (best === before) next.open.forEach((name) => refused.add(name));
  }
  return best;
}

/**
 * How groups may be opened: as they are; where little is shown so far, without frames, or all but the gradient.
 * @param {{open: string[], dissolved: string[]}} groups @param {boolean} few
 */
function ways({ open, dissolved }, few) {
  const first = open.slice(0, 1);
  const ahead = open.length > 1 ? [{ open: first, dissolved: first }] : [];
  return [{ open, dissolved }, ...(few ? [{ open, dissolved: open }, ...ahead] : [])];
}

/** Whether a picture with more in it can be read as well. @param {Sight} more @param {Sight} best */
function better(more, best) {
  return more.picture.boxes.length <= MOST_BOXES && more.scale >= best.scale;
}

/**
 * Modules and functions around nearly all there is in a lane: what is in them says more than their frames do. So are
 * their gradients, whatever else there is in that lane.
 * @param {import("./visible-boxes.js").Graph} graph
 */
function wrappers({ groups, nodes }) {
  /** @type {Map<string, number>} */
  const lanes = new Map();
  for (const { lane = "" } of nodes) lanes.set(lane, (lanes.get(lane) ?? 0) + 1);
  /** @type {Set<string>} */
  const found = new Set();
  const paths = new Set();
  const inside = new Set([-1]);
  groups.forEach(({ parent, kind, lane = "", size, path }, index) => {
    if (!inside.has(parent) || !["module", "function", "scope"].includes(kind)) return;
    if (size < WRAPS * (lanes.get(lane) ?? size) && !(lane === "backward" && paths.has(path))) return;
    inside.add(index);
    found.add(`g${index}`);
    if (path) paths.add(path);
  });
  return found;
}

/**
 * Those of the groups that are no gradients: where both have no room, the model says more than its gradient.
 * @param {import("./visible-boxes.js").Graph} graph @param {Set<string>} names
 */
function butGradients({ groups }, names) {
  return new Set([...names].filter((name) => groups[Number(name.slice(1))].lane !== "backward"));
}

/**
 * The group that is worth opening most, and its gradient: that with the most ops and bytes in it.
 * @param {GraphState} state @param {Picture} picture @param {Set<string>} refused
 */
function worthMost({ graphs }, { boxes }, refused) {
  let [most, best] = [0, /** @type {import("./visible-boxes.js").Box | null} */ (null)];
  const groups = boxes.filter(({ kind, graph, index }) => kind === "group" && !(graphs[graph].groups[index].repeat && !steps(graphs[graph], index).length)); // of what is alike one says it all
  for (const box of groups) {
    const { size, ops = size, bytes = 0, kind } = graphs[box.graph].groups[box.index];
    if (box.more || refused.has(box.name) || ops < 2 || kind === "optimiser" || kind === "block") continue;
    const worth = size * (1 + Math.log2(1 + bytes));
    if (worth > most) [most, best] = [worth, box];
  }
  if (!best) return null;
  const { path, lane } = best;
  const both = [best, ...groups.filter((box) => path && box.path === path && box.lane !== lane)];
  both.sort((a, b) => Number(a.lane === "backward") - Number(b.lane === "backward"));
  const dissolved = both.flatMap((box) => {
    const inside = steps(graphs[box.graph], box.index);
    return inside.length ? [box.name, ...nameless(graphs[box.graph], inside).map((group) => box.name.replace(/\d+$/, String(group)))] : [];
  });
  return { open: [...both.map(({ name }) => name), ...dissolved], dissolved };
}

/** Wrappers, and what is around the members in repeats of a few. @param {import("./visible-boxes.js").Graph} graph @param {Set<string>} wrappers */
function allSteps(graph, wrappers) {
  const found = new Set(wrappers);
  graph.groups.forEach(({ parent }, index) => {
    if (parent >= 0 && !wrappers.has(`g${parent}`)) return;
    const inside = steps(graph, index);
    if (inside.length) found.add(`g${index}`);
    for (const step of nameless(graph, inside)) found.add(`g${step}`);
  });
  return found;
}

/**
 * The members of a repeat of a few that are not alike, as layers that differ in width, or heads: all of them say more. Rounds
 * that hold a gradient each are steps of a descent, and one of them says it all; so does one of their gradients.
 * @param {import("./visible-boxes.js").Graph} graph @param {number} group @returns {number[]}
 */
function steps({ groups }, group) {
  const { count = 0, members = [] } = groups[group].repeat ?? {};
  const names = new Set(members.map((member) => (groups[member].title ?? "").replace(/\d+/g, "")));
  const unlike = members.every((member) => groups[member].kind === "step") || (members.length > 1 && names.size === members.length);
  return count > FEW || !unlike || groups.some(({ kind, parent }) => kind === "gradient" && (groups[group].lane === "backward" || members.includes(parent))) ? [] : members;
}

/** Those of the members that are rounds of a loop: a frame around one would say less than what is in it. @param {import("./visible-boxes.js").Graph} graph @param {number[]} steps */
function nameless({ groups }, steps) {
  return steps.filter((step) => groups[step].kind === "step");
}

/**
 * The picture in the manner that fits best.
 * @param {GraphState} state @param {Picture} picture @param {Room} room @param {Set<string> | null} open @param {boolean} folded
 * @param {object} asked
 * @param {Set<string>} [asked.dissolved] @param {number} [asked.limit] boxes of a picture that is looked at: to lay out takes most of the time
 * @param {number} [asked.least] scale that it is worth to be known for: most of what is tried is larger, which is known before it is laid out
 * @param {boolean} [asked.closed] whether nothing less can be shown: it is drawn without lanes, or with titles alone, where it fits so alone
 * @param {boolean} [asked.terse] whether it is drawn with titles alone in any case
 * @returns {Sight} of scale 0 where it is not worth it
 */
function laidOut(state, picture, room, open, folded, { dissolved = new Set(), limit = Infinity, least = 0, closed = false, terse = false }) {
  /** @type {Sight} */
  let best = { open, dissolved, folded, manner: {}, picture, scale: 0 };
  if (picture.boxes.length > limit || (limit < Infinity && picture.edges.size > MOST_EDGES)) return best;
  const far = picture.boxes.length > 4 * MOST_BOXES;
  /** @type {Map<string, Map<string, [number, number]>>} */
  const known = new Map();
  for (const one of far ? [{}] : manners(picture, room, folded, closed)) {
    const manner = terse ? { ...one, terse } : one;
    const key = `${manner.lanes} ${manner.terse}`; // which is all that words depend on
    const sizes = known.get(key) ?? new Map([...wordsIn(state, picture, manner)].map(([name, words]) => [name, sizeOf(words)]));
    known.set(key, sizes);
    const drawing = drawWithin(picture, sizes, manner, atScale(room, Math.max(least, best.scale)));
    if (!drawing) continue;
    const scale = Math.min(room.width / drawing.width, room.height / drawing.height, 1);
    if (scale > best.scale) best = { ...best, manner, scale, drawing };
    if (scale === 1) break;
  }
  return best;
}

/** How large a picture may be that has that scale in a room, and a little more: sums differ by their order. @param {Room} room @param {number} scale @returns {[number, number]} */
const atScale = ({ width, height }, scale) => [(width / scale) * ROUNDED, (height / scale) * ROUNDED];

/** In the order in which they are tried. @param {Picture} picture @param {Room} room @param {boolean} folded @param {boolean} closed @returns {Manner[]} */
function manners({ boxes, frames }, { width, height }, folded, closed) {
  const lanes = folded && [...boxes, ...frames].some(({ lane }) => lane === "backward" || lane === "update");
  const plain = [{}, { limit: height }, { across: true, limit: width }];
  const [across, down] = [{ across: true, lanes, limit: width }, { lanes, limit: height }];
  const inLanes = lanes ? [across, { ...across, joined: true }, down, { ...down, joined: true }] : [];
  if (!closed) return lanes ? inLanes : plain;
  const long = lanes ? [{ lanes, joined: true }] : []; // another band takes twice the room of what does not fit by a little
  const all = [...inLanes, ...long, ...plain]; // type that can be read is worth more than lanes
  return [...all, ...all.map((manner) => ({ ...manner, terse: true }))]; // and than shapes
}
