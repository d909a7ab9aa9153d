// Forward, backward and update in lanes that mirror each other: each box beside its gradient. See figures/lanes.py, which
// does the same in Python; the tests hold both to the same examples. The loss has the end of the forward lane to itself.

import { sum } from "../format.js";
import { ANY_SIZE, bandStarts, Drawing, exceeds, ranksOf, TURN } from "./layered-layout.js";

/**
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./layered-layout.js").Point} Point
 * @typedef {import("./layered-layout.js").Layout} Layout
 */

export const LANES = ["forward", "backward", "update"];
const NUMBER = /** @type {Record<string, number>} */ ({ forward: 0, loss: 0, backward: 1, update: 2 });
const RANK_GAP = 20;
const LANE_GAP = 10;
const COLUMN_GAP = 42; // between lanes that stand side by side: what is kept is written there
const BAND_GAP = 18;
const TITLE = 19; // room for the name of a lane
const MARGIN = 7;
const LOSS_TITLE = 18; // room for the name of the loss above its first box, within the gap
const LOSS_INSET = 14; // the same before it, where the picture runs from left to right
const TITLE_CHARACTER = 6.7; // width of one of the name of a lane
const APART = 4; // from edges of the forward pass, which turn round to the next band, to those of the other lanes

/**
 * The lane of each box and frame that stands by itself, and the box of the forward lane whose gradient it is; null where
 * there is only one lane.
 * @param {Picture} picture @param {boolean} [joined] whether the update stands at the end of the backward lane
 */
export function lanesOf(picture, joined = false) {
  const { boxes, frames, edges } = picture;
  const outermost = [...boxes, ...frames].filter(({ parent }) => !parent);
  if (!outermost.some(({ lane }) => NUMBER[lane ?? ""] > 0)) return null;
  const number = (/** @type {string | undefined} */ lane) => Math.min(NUMBER[lane ?? ""] ?? 0, joined ? 1 : 2);
  const of = new Map(outermost.map(({ name, lane }) => [name, number(lane)]));
  const root = outermostOf(picture);
  const outputs = new Set(boxes.filter(({ kind }) => kind === "output").map(({ name }) => name));
  for (const { source, target } of edges.values()) if (outputs.has(target)) of.set(target, of.get(root(source)) ?? 0);
  /** @type {Map<string, string>} */
  const forward = new Map();
  for (const { name, path, lane } of outermost) if (path && (NUMBER[lane ?? ""] ?? 0) === 0) forward.set(path, name);
  /** @type {Map<string, string>} */
  const partners = new Map();
  for (const { name, path, lane } of outermost) {
    const partner = path && lane === "backward" ? forward.get(path) : undefined;
    if (partner) partners.set(name, partner);
  }
  const updates = new Set(outermost.flatMap(({ name, lane }) => (lane === "update" ? [name] : [])));
  const losses = new Set(outermost.flatMap(({ name, lane }) => (lane === "loss" ? [name] : [])));
  for (const { source, target } of edges.values()) if (outputs.has(target) && losses.has(root(source))) losses.add(target);
  return { of, partners, updates, losses };
}

/** For each box and frame the outermost frame around it, or itself. @param {Picture} picture */
export function outermostOf({ boxes, frames }) {
  const parent = new Map([...boxes, ...frames].map((one) => [one.name, one.parent]));
  return (/** @type {string} */ name) => {
    let at = name;
    for (let up = parent.get(at); up; up = parent.get(at)) at = up;
    return at;
  };
}

/**
 * What is kept of each forward box for the backward pass, most first: each value once, although several gradients may read it.
 * @typedef {{forward: string, backward: string, bytes: number}} Saved
 * @param {Picture} picture @returns {Saved[]}
 */
export function saved(picture) {
  const lanes = lanesOf(picture);
  if (!lanes) return [];
  const root = outermostOf(picture);
  /** @type {Map<string, Map<string, number>>} */
  const kept = new Map();
  for (const [key, { source, target }] of picture.edges) {
    const [from, to] = [root(source), root(target)];
    if (lanes.of.get(from) !== 0 || lanes.of.get(to) !== 1) continue;
    if (!kept.has(from)) kept.set(from, new Map());
    for (const [value, bytes] of picture.carried?.get(key) ?? []) kept.get(from)?.set(value, bytes);
  }
  const pairs = [...lanes.partners].map(([backward, forward]) => ({ forward, backward, bytes: sum([...(kept.get(forward)?.values() ?? [])]) }));
  return pairs.filter(({ bytes }) => bytes).sort((a, b) => b.bytes - a.bytes);
}

/**
 * @param {Point[]} sizes @param {[number, number][]} edges @param {number[]} lanes of each box
 * @param {number[]} partners for each box that whose gradient it is, -1 for none
 * @param {boolean[]} updates whether each box is of the update: edges into it are not drawn
 * @param {boolean[]} losses whether each box is of the loss @param {number} limit
 * @param {boolean} across @param {Point} [most] width and height
 * @returns {Layout | null} null where the layout would be larger than `most`
 */
export function inLanes(sizes, edges, lanes, partners, updates, losses, limit, across, most = ANY_SIZE) {
  const drawn = edges.map(([a, b]) => updates[a] === updates[b]);
  const found = ranksInLanes(edges.filter((_, e) => drawn[e]), edges, lanes, partners, updates, losses);
  const once = arranged(sizes, edges, drawn, lanes, found, limit);
  const late = updates.map((update, box) => update || lanes[box] === 2);
  const again = once.starts.length > 1 && late.includes(true);
  const ranks = again ? updateLast(found, edges, late) : found;
  const { parts, heights, starts } = again ? arranged(sizes, edges, drawn, lanes, ranks, limit) : once;
  if (exceeds(least(parts, heights, starts, across), most)) return null;
  for (const { drawing } of parts) {
    drawing.order();
    drawing.place(RANK_GAP);
  }
  const loss = ranks.reduce((first, rank, box) => (losses[box] ? Math.min(first, rank) : first), heights.length);
  return stacked(sizes, edges, parts, starts, heights, updates, loss, across, most);
}

/**
 * The lanes by themselves, not in order yet, as high as one another, and the ranks with which bands begin.
 * @param {Point[]} sizes @param {[number, number][]} edges @param {boolean[]} drawn @param {number[]} lanes
 * @param {number[]} ranks @param {number} limit
 */
function arranged(sizes, edges, drawn, lanes, ranks, limit) {
  const count = Math.max(...ranks) + 1;
  const parts = LANES.map((_, lane) => new Part(sizes, edges, drawn, lanes, ranks, lane, count)).filter(({ members }) => members.length);
  const heights = Array.from({ length: count }, (_, rank) => Math.max(...parts.map(({ drawing }) => drawing.heights[rank])));
  for (const { drawing } of parts) drawing.heights = [...heights];
  return { parts, heights, starts: bandStarts(heights, limit - TITLE - MARGIN - 2 * TURN, RANK_GAP) };
}

/**
 * A width and a height that the lanes have at least, as `Drawing.least` has them of one.
 * @param {Part[]} parts @param {number[]} heights @param {number[]} starts @param {boolean} across @returns {Point}
 */
function least(parts, heights, starts, across) {
  const widths = parts.map(({ drawing }) => drawing.rowWidths());
  let [width, height] = [BAND_GAP * (starts.length - 1), 0];
  starts.forEach((start, at) => {
    const end = starts[at + 1] ?? heights.length;
    const there = widths.filter((_, k) => parts[k].drawing.rows.slice(start, end).some((row) => row.length));
    width += sum(there.map((rows) => Math.max(...rows.slice(start, end)) + 2 * MARGIN)) + (across ? LANE_GAP : COLUMN_GAP) * (there.length - 1);
    height = Math.max(height, sum(heights.slice(start, end)) + RANK_GAP * (end - start - 1));
  });
  return [width, height + (across ? MARGIN : TITLE) + MARGIN + (starts.length > 1 ? 2 * TURN : 0)];
}

/**
 * How many boxes of the update come after each, at most.
 * @param {number} count @param {[number, number][]} edges between boxes of the update
 */
function ends(count, edges) {
  /** @type {number[]} */
  const after = new Array(count).fill(0);
  const backwards = edges.filter(([a, b]) => a < b).sort((x, y) => y[0] - x[0]);
  for (const [a, b] of backwards) after[a] = Math.max(after[a], after[b] + 1);
  return after;
}

/**
 * The same ranks, but those of the update: in the last of several bands, in no earlier one.
 * @param {number[]} ranks @param {[number, number][]} edges @param {boolean[]} late whether each box is of the update
 */
function updateLast(ranks, edges, late) {
  const after = ends(ranks.length, edges.filter(([a, b]) => late[a] && late[b]));
  const distinct = [...new Set(ranks.filter((_, box) => !late[box]))].sort((a, b) => a - b);
  const place = new Map(distinct.map((rank, i) => [rank, i]));
  const first = Math.max(distinct.length - 1 - Math.max(...after), 0);
  return ranks.map((rank, box) => (late[box] ? first + after[box] : place.get(rank) ?? 0));
}

/** The boxes of one lane, drawn by themselves. */
class Part {
  /**
   * @param {Point[]} sizes @param {[number, number][]} edges @param {boolean[]} drawn @param {number[]} lanes
   * @param {number[]} ranks @param {number} lane @param {number} count
   */
  constructor(sizes, edges, drawn, lanes, ranks, lane, count) {
    this.lane = lane;
    this.members = [...sizes.keys()].filter((box) => lanes[box] === lane);
    const place = new Map(this.members.map((box, i) => [box, i]));
    this.edges = [...edges.keys()].filter((e) => drawn[e] && place.has(edges[e][0]) && place.has(edges[e][1]));
    const own = this.edges.map((e) => /** @type {Point} */ ([place.get(edges[e][0]), place.get(edges[e][1])]));
    this.drawing = new Drawing(this.members.map((box) => sizes[box]), own, this.members.map((box) => ranks[box]), [], [], count);
  }
}

/**
 * @param {[number, number][]} drawn @param {[number, number][]} edges @param {number[]} lanes @param {number[]} partners
 * @param {boolean[]} updates @param {boolean[]} losses @returns {number[]}
 */
function ranksInLanes(drawn, edges, lanes, partners, updates, losses) {
  const count = lanes.length;
  const own = (/** @type {number} */ lane) => edges.filter(([a, b]) => a !== b && lanes[a] === lane && lanes[b] === lane);
  const ranks = ranksOf(count, own(0));
  const model = ranks.reduce((most, rank, box) => (lanes[box] === 0 && !losses[box] ? Math.max(most, rank) : most), -1);
  const first = ranks.reduce((least, rank, box) => (losses[box] ? Math.min(least, rank) : least), Infinity);
  losses.forEach((loss, box) => loss && (ranks[box] += Math.max(model + 1 - first, 0)));
  const turns = edges.filter(([a, b]) => lanes[a] === 0 && lanes[b] === 1).map(([a]) => ranks[a]);
  const last = turns.reduce((most, rank) => Math.max(most, rank), 0);
  const backward = drawn.filter(([a, b]) => a !== b && lanes[a] === 1 && lanes[b] === 1 && !updates[a]);
  for (let box = 0; box < count; box++) if (lanes[box] === 1 && partners[box] >= 0) ranks[box] = ranks[partners[box]];
  const after = ends(count, drawn.filter(([a]) => updates[a]));
  for (let box = count - 1; box >= 0; box--) {
    if (lanes[box] === 1 && updates[box]) ranks[box] = after[box]; // joined: where the backward pass ends
    else if (lanes[box] === 1 && partners[box] < 0) ranks[box] = between(box, backward, ranks, partners, last);
  }
  const sources = new Map();
  for (const [a, b] of edges) if (lanes[b] === 2 && lanes[a] !== 2) sources.set(b, [...(sources.get(b) ?? []), ranks[a]]);
  const backwards = own(2);
  for (let box = 0; box < count; box++) {
    if (lanes[box] !== 2) continue;
    const from = sources.get(box) ?? [];
    const given = backwards.filter(([a, b]) => b === box && a < box).map(([a]) => ranks[a] - 0.5);
    ranks[box] = given.length ? Math.min(...given) : from.length ? sum(from) / from.length : 0;
    ranks[box] = Math.round(ranks[box] * 2) / 2;
  }
  const distinct = [...new Set(ranks)].sort((a, b) => a - b);
  const place = new Map(distinct.map((rank, i) => [rank, i]));
  return ranks.map((rank) => place.get(rank) ?? 0);
}

/**
 * The rank of a backward box that has no partner: before those that read it, after those that it reads.
 * @param {number} box @param {[number, number][]} edges @param {number[]} ranks @param {number[]} partners @param {number} last
 */
function between(box, edges, ranks, partners, last) {
  const after = edges.filter(([a, b]) => a === box && b > box).map(([, b]) => ranks[b]);
  const before = edges.filter(([a, b]) => b === box && a < box && partners[a] >= 0).map(([a]) => ranks[a]);
  const [low, high] = [Math.max(...after, -1), Math.min(...before, Infinity)];
  if (!after.length) return before.length ? high - 0.5 : last;
  if (low + 1 < high) return low + 1;
  return high > low ? (low + high) / 2 : low + 0.5;
}

/**
 * The lanes side by side in every band.
 * @param {Point[]} sizes @param {[number, number][]} edges @param {Part[]} parts @param {number[]} starts
 * @param {number[]} heights @param {boolean[]} updates @param {number} loss the first rank of the loss @param {boolean} across @param {Point} most
 * @returns {Layout | null}
 */
function stacked(sizes, edges, parts, starts, heights, updates, loss, across, most) {
  const band = heights.map((_, rank) => starts.findLastIndex((start) => start <= rank));
  const tops = [0];
  for (const height of heights) tops.push(tops[tops.length - 1] + height + RANK_GAP);
  const top = across ? MARGIN : TITLE;
  const between = across ? LANE_GAP : COLUMN_GAP;
  /** @type {import("./layered-layout.js").Strip[]} */
  const strips = [];
  const turn = starts.length > 1 ? TURN : 0;
  let [cross, bottom] = [0, 0];
  const gaps = [0]; // before each band
  /** @type {Map<string, number>} */
  const shifts = new Map();
  starts.forEach((start, at) => {
    const end = starts[at + 1] ?? heights.length;
    const height = tops[end] - RANK_GAP - tops[start] + top + MARGIN;
    bottom = Math.max(bottom, height);
    for (const { lane, members, drawing } of parts) {
      const cells = [...drawing.rank.keys()].filter((cell) => band[drawing.rank[cell]] === at);
      if (!cells.length) continue;
      const left = Math.min(...cells.map((cell) => drawing.x[cell] - drawing.sizes[cell][0] / 2));
      const right = Math.max(...cells.map((cell) => drawing.x[cell] + drawing.sizes[cell][0] / 2));
      const ofLoss = lane === 0 ? cells.map((cell) => drawing.rank[cell] >= loss) : [false];
      const own = ofLoss.every(Boolean) ? "loss" : LANES[lane];
      const title = own + (lane === 1 && members.some((box) => updates[box]) ? ", update" : "");
      const split = ofLoss.includes(true) && ofLoss.includes(false);
      const named = !strips.some((strip) => strip.lane === own);
      const inset = across && (named || split) ? TITLE : MARGIN;
      const needed = right - left + inset + MARGIN;
      const width = named && !across ? Math.max(needed, TITLE_CHARACTER * title.length + 2 * MARGIN) : needed;
      const strip = { lane: own, title: named ? title : "", x: cross, y: turn, width, height };
      const cut = tops[loss] - tops[start] + top - (across ? LOSS_INSET : LOSS_TITLE);
      if (split) strips.push({ ...strip, height: cut }, { ...strip, lane: "loss", title: "loss", y: turn + cut });
      else strips.push(strip);
      shifts.set(`${at} ${lane}`, cross + inset - left + (width - needed) / 2);
      cross += width + between;
    }
    cross += BAND_GAP - between;
    gaps.push(cross - BAND_GAP / 2);
  });
  const [width, height] = [cross - BAND_GAP, bottom + 2 * turn];
  if (exceeds([width, height], most)) return null;
  for (const strip of strips) {
    const goesOn = strips.some((other) => other.x === strip.x && other.y === strip.y + strip.height);
    if (!goesOn) strip.height = turn + bottom - strip.y;
  }
  /** @type {Point[]} */
  const centres = sizes.map(() => [0, 0]);
  /** @type {Point[][]} */
  const bends = edges.map(() => []);
  for (const { lane, members, edges: own, drawing } of parts) {
    const points = drawing.x.map((x, cell) => {
      const at = band[drawing.rank[cell]];
      return /** @type {Point} */ ([x + (shifts.get(`${at} ${lane}`) ?? 0), drawing.y[cell] - tops[starts[at]] + top + turn]);
    });
    members.forEach((box, i) => (centres[box] = points[i]));
    own.forEach((e, i) => {
      const [a, b] = drawing.edges[i];
      const path = drawing.paths[i];
      const up = drawing.rank[a] > drawing.rank[b];
      const [from, to] = up ? [b, a] : [a, b];
      const [first, last] = [band[drawing.rank[from]], band[drawing.rank[to]]];
      if (first === last) bends[e] = drawing.along(path, points, up);
      else {
        const cells = up ? path.toReversed() : path;
        const [before, after] = [first, last].map((at) => cells.filter((cell) => band[drawing.rank[cell]] === at));
        // Those of the other lanes turn round within the corner, and beyond it where they arrive: none crosses another.
        const [end, gap, start] = lane ? [bottom + 2 * turn - 3 - APART, gaps[last] - APART / 2, 3] : [bottom + 2 * turn - 3, gaps[last] + APART / 2, 3 + APART];
        const [x, toX] = [points[before.at(-1) ?? from][0], points[after[0] ?? to][0]];
        /** @type {Point[]} */
        const turning = [[x, end], [gap, end], [gap, start], [toX, start]];
        const way = [...drawing.along(before, points), ...turning, ...drawing.along(after, points)];
        bends[e] = up ? way.reverse() : way;
      }
    });
  }
  return { centres, bends, width, height, entering: new Map(), leaving: new Map(), strips };
}
