// Drawings with frames: every open group is laid out by itself, and is one box in what is around it. See
// figures/nested_layout.py; the tests hold both to the same examples.

import { inLanes, lanesOf } from "./lanes.js";
import { ANY_SIZE, layered } from "./layered-layout.js";

const PADDING = 12;
export const TITLE_HEIGHT = 20;
const CHARACTER = 6.7;

/**
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./layered-layout.js").Point} Point
 * @typedef {{x: number, y: number, width: number, height: number}} Rectangle top left corner and size
 * @typedef {object} Drawing
 * @property {Map<string, Rectangle>} boxes @property {Map<string, Rectangle>} frames
 * @property {Map<string, string>} edges the path of each edge, by the edge's key
 * @property {number} width @property {number} height
 * @property {import("./layered-layout.js").Strip[]} [strips] the room of each lane
 */

/**
 * @typedef {object} Manner how a picture is laid out
 * @property {boolean} [across] whether it runs from left to right, not from top to bottom
 * @property {number} [limit] the extent beyond which a chain of boxes goes on in another row, or column
 * @property {number} [cross] the extent beyond which what stands side by side goes on in a row, or column, of its own
 * @property {boolean} [lanes] whether forward, backward and update have a row each
 * @property {boolean} [joined] whether the update has none of its own, to save room
 * @property {boolean} [terse] whether boxes bear their titles alone
 */

/** @param {Picture} picture @param {Map<string, Point>} sizes @param {Manner} [manner] @returns {Drawing} */
export function draw(picture, sizes, manner = {}) {
  return /** @type {Drawing} */ (drawWithin(picture, sizes, manner, ANY_SIZE));
}

/**
 * The same; null where the drawing would be wider or higher than `most`, which is mostly known before all is placed.
 * @param {Picture} picture @param {Map<string, Point>} sizes @param {Manner} manner @param {Point} most @returns {Drawing | null}
 */
export function drawWithin(picture, sizes, manner, most) {
  const plan = new Plan(picture, sizes, manner);
  return plan.layOut(most) ? plan.drawing() : null;
}

/** @template {Point | undefined} T @param {T} point @param {boolean} across @returns {T} */
const turned = (point, across) => /** @type {T} */ (across && point ? [point[1], point[0]] : point);

class Plan {
  /** @param {Picture} picture @param {Map<string, Point>} sizes @param {Manner} manner */
  constructor(picture, sizes, { across = false, limit = Infinity, cross = Infinity, lanes = false, joined = false }) {
    this.picture = picture;
    this.across = across;
    this.limit = limit;
    this.cross = cross;
    this.lanes = lanes ? lanesOf(picture, joined) : null;
    this.sizes = new Map(sizes);
    this.parent = new Map([...picture.boxes, ...picture.frames].map(({ name, parent }) => [name, parent]));
    this.label = new Map(picture.frames.map(({ name, label }) => [name, label]));
    /** @type {Map<string, string[]>} */
    this.members = new Map([["", []], ...picture.frames.map(({ name }) => /** @type {[string, string[]]} */ ([name, []]))]);
    this.gather();
    /** @type {Map<string, Map<string, [string, string]>>} for each frame the edges between its members */
    this.inner = new Map();
    /** @type {Map<string, [string, string]>} for each edge its frame, and its key there */
    this.lifted = new Map();
    /** @type {Map<string, number>} the place of each member in its frame */
    this.place = new Map([...this.members.values()].flatMap((names) => names.map((name, i) => /** @type {[string, number]} */ ([name, i]))));
    /** @type {Map<string, Set<number>>[]} for each frame the members that edges lead out of, and into */
    this.ways = [new Map(), new Map()];
    /** @type {Map<string, string[][]>} for each edge the members that it leaves, and those that it enters */
    this.crossed = new Map();
    for (const [key, { source, target }] of picture.edges) this.lift(key, source, target);
    /** @type {Map<string, import("./layered-layout.js").Layout>} */
    this.layouts = new Map();
  }

  /** Members in execution order: a frame stands where its first box does, a fusion group where its last does. */
  gather() {
    const placed = new Set();
    const fused = new Set(this.picture.frames.filter((frame) => frame.fused).map(({ name }) => name));
    const last = new Map(this.picture.boxes.map(({ name, parent }) => [parent, name]));
    for (const box of this.picture.boxes) {
      for (let name = box.name; name && !placed.has(name); name = this.parent.get(name) ?? "") {
        if (fused.has(name) && last.get(name) !== box.name) break;
        placed.add(name);
        this.members.get(this.parent.get(name) ?? "")?.push(name);
      }
    }
  }

  /** @param {string} name */
  around(name) {
    const chain = [];
    for (let at = name; at; at = this.parent.get(at) ?? "") chain.push(at);
    return chain.reverse();
  }

  /** @param {string} key @param {string} source @param {string} target */
  lift(key, source, target) {
    const [a, b] = [this.around(source), this.around(target)];
    let common = 0;
    while (common < Math.min(a.length, b.length) - 1 && a[common] === b[common]) common++;
    const frame = common ? a[common - 1] : "";
    const between = this.inner.get(frame) ?? new Map();
    this.inner.set(frame, between.set(`${a[common]}>${b[common]}`, [a[common], b[common]]));
    this.lifted.set(key, [frame, `${a[common]}>${b[common]}`]);
    const forward = (this.place.get(a[common]) ?? 0) < (this.place.get(b[common]) ?? 0);
    const crossed = forward && !this.bridges(a[0], b[0]) ? [a.slice(common + 1).reverse(), b.slice(common + 1)] : [[], []];
    this.crossed.set(key, crossed);
    crossed.forEach((names, way) => {
      for (const name of names) {
        const around = this.parent.get(name) ?? "";
        this.ways[way].set(around, (this.ways[way].get(around) ?? new Set()).add(this.place.get(name) ?? 0));
      }
    });
  }

  /** Whether an edge leads straight over from one lane to another: it has no way past the others in its frames. @param {string} from @param {string} to */
  bridges(from, to) {
    const { lanes } = this;
    return lanes !== null && ((lanes.of.get(from) ?? 0) !== (lanes.of.get(to) ?? 0) || lanes.updates.has(from) !== lanes.updates.has(to));
  }

  /** Whether the whole is no larger than `most`; no frame is, then. @param {Point} size */
  layOut(size) {
    const most = turned(size, this.across);
    const byDepth = this.picture.frames.map(({ name }) => name);
    byDepth.sort((a, b) => this.around(b).length - this.around(a).length);
    for (const frame of [...byDepth, ""]) {
      const members = this.members.get(frame) ?? [];
      const sizes = members.map((name) => turned(/** @type {Point} */ (this.sizes.get(name)), this.across));
      const edges = [...(this.inner.get(frame)?.values() ?? [])].map(
        ([a, b]) => /** @type {Point} */ ([this.place.get(a), this.place.get(b)]),
      );
      const layout = this.arranged(frame, members, sizes, edges, most);
      if (!layout) return false;
      this.layouts.set(frame, layout);
      if (frame) {
        const [inWidth, inHeight] = turned([layout.width, layout.height], this.across);
        const width = Math.max(inWidth, CHARACTER * ((this.label.get(frame) ?? "").length + 2)) + 2 * PADDING;
        this.sizes.set(frame, [width, inHeight + 2 * PADDING + TITLE_HEIGHT]);
      }
    }
    return true;
  }

  /** @param {string} frame @param {string[]} members @param {Point[]} sizes @param {Point[]} edges @param {Point} most */
  arranged(frame, members, sizes, edges, most) {
    const [leaving, entering] = this.ways.map((way) => [...(way.get(frame) ?? [])].sort((a, b) => a - b));
    const limit = this.limit - this.around(frame).length * (2 * PADDING + (this.across ? 0 : TITLE_HEIGHT));
    const { lanes, cross } = this;
    if (frame || !lanes) {
      const layout = layered(sizes, edges, entering, leaving, limit, cross, most);
      return layout && frame && this.laneOf(frame) === 1 ? reversed(layout) : layout;
    }
    const of = members.map((name) => lanes.of.get(name) ?? 0);
    const partners = members.map((name) => members.indexOf(lanes.partners.get(name) ?? ""));
    const updates = members.map((name) => lanes.updates.has(name));
    const losses = members.map((name) => lanes.losses.has(name));
    return inLanes(sizes, edges, of, partners, updates, losses, limit, this.across, most);
  }

  /** @returns {Drawing} */
  drawing() {
    const { across } = this;
    const root = /** @type {import("./layered-layout.js").Layout} */ (this.layouts.get(""));
    const [width, height] = turned([root.width, root.height], across);
    /** @type {Drawing} */
    const done = { boxes: new Map(), frames: new Map(), edges: new Map(), width, height };
    if (root.strips) {
      done.strips = root.strips.map((at) => (across ? { ...at, x: at.y, y: at.x, width: at.height, height: at.width } : at));
    }
    /** @type {Map<string, Point[]>} */
    const bends = new Map();
    /** @type {Map<string, Point>} */
    const corners = new Map();
    /** @type {[string, number, number][]} */
    const waiting = [["", 0, 0]];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [frame, left, top] = next;
      corners.set(frame, [left, top]);
      const layout = /** @type {import("./layered-layout.js").Layout} */ (this.layouts.get(frame));
      (this.members.get(frame) ?? []).forEach((name, i) => {
        const [width, height] = this.sizes.get(name) ?? [0, 0];
        const [x, y] = turned(layout.centres[i], across);
        const place = { x: left + x - width / 2, y: top + y - height / 2, width, height };
        const inside = this.layouts.get(name);
        (inside ? done.frames : done.boxes).set(name, place);
        const inWidth = inside && (across ? inside.height : inside.width);
        if (inWidth !== undefined) waiting.push([name, place.x + (width - inWidth) / 2, place.y + PADDING + TITLE_HEIGHT]);
      });
      [...(this.inner.get(frame)?.keys() ?? [])].forEach((key, i) => {
        bends.set(`${frame}|${key}`, layout.bends[i].map((point) => moved(turned(point, across), left, top)));
      });
    }
    for (const [key, { source, target }] of this.picture.edges) {
      const [from, to] = [done.boxes.get(source), done.boxes.get(target)];
      if (!from || !to) continue;
      const [outward, inward] = this.crossed.get(key) ?? [[], []];
      const way = [
        ...outward.flatMap((name) => this.way(name, corners, "leaving")),
        ...(bends.get(this.lifted.get(key)?.join("|") ?? "") ?? []),
        ...inward.flatMap((name) => this.way(name, corners, "entering")),
      ];
      const crossing = this.lanes && this.laneOf(source) !== this.laneOf(target);
      done.edges.set(key, crossing ? bridge(from, to, across) : curve(ends(from, way, to, across), across));
    }
    return done;
  }

  /** @param {string} name */
  laneOf(name) {
    return this.lanes?.of.get(this.around(name)[0] ?? "") ?? 0;
  }

  /**
   * The way past the other members of its frame, to or from one of them.
   * @param {string} name @param {Map<string, Point>} corners @param {"entering" | "leaving"} direction @returns {Point[]}
   */
  way(name, corners, direction) {
    const frame = this.parent.get(name) ?? "";
    const [left, top] = corners.get(frame) ?? [0, 0];
    const points = this.layouts.get(frame)?.[direction].get(this.place.get(name) ?? 0) ?? [];
    return points.map((point) => moved(turned(point, this.across), left, top));
  }
}

/** The same from the bottom to the top. @param {import("./layered-layout.js").Layout} layout */
function reversed(layout) {
  const over = (/** @type {Point[]} */ points) => points.map(([x, y]) => /** @type {Point} */ ([x, layout.height - y]));
  const ways = (/** @type {Map<number, Point[]>} */ all) => new Map([...all].map(([box, way]) => [box, over(way)]));
  return { ...layout, centres: over(layout.centres), bends: layout.bends.map(over), entering: ways(layout.entering), leaving: ways(layout.leaving) };
}

/** @param {Point} point @param {number} left @param {number} top @returns {Point} */
const moved = ([x, y], left, top) => [left + x, top + y];

/**
 * From the side of the source that faces the way to the side of the target that does: where the way goes on in another
 * band, the target may lie above the source and yet be entered from above.
 * @param {Rectangle} from @param {Point[]} bends @param {Rectangle} to @param {boolean} across @returns {Point[]}
 */
function ends(from, bends, to, across) {
  const [x, y, toX, toY] = [from.x + from.width / 2, from.y + from.height / 2, to.x + to.width / 2, to.y + to.height / 2];
  const [ahead, behind] = [bends[0] ?? [toX, toY], bends.at(-1) ?? [x, y]];
  if (across) {
    const end = to.x + (behind[0] <= toX ? -2 : to.width + 2);
    return [[from.x + (ahead[0] >= x ? from.width : 0), y], ...bends, [end, toY]];
  }
  const end = to.y + (behind[1] <= toY ? -2 : to.height + 2);
  return [[x, from.y + (ahead[1] >= y ? from.height : 0)], ...bends, [toX, end]];
}

/** From a box of one lane to one of another, straight over the line between them. @param {Rectangle} from @param {Rectangle} to @param {boolean} across */
function bridge(from, to, across) {
  return curve(ends(from, [], to, !across), !across);
}

/** @param {Point[]} points @param {boolean} [across] @returns {string} a path that runs along the picture at every point */
export function curve(points, across = false) {
  let [[x, y]] = points;
  let path = `M${x},${y}`;
  for (const [nextX, nextY] of straightened(points).slice(1)) {
    const [halfX, halfY] = [(x + nextX) / 2, (y + nextY) / 2];
    if (x === nextX || y === nextY) path += ` L${nextX},${nextY}`;
    else if (across) path += ` C${halfX},${y} ${halfX},${nextY} ${nextX},${nextY}`;
    else path += ` C${x},${halfY} ${nextX},${halfY} ${nextX},${nextY}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

/** Without points between two others on one level: a long edge has two for each rank that it passes. @param {Point[]} points */
function straightened(points) {
  return points.filter(([x, y], k) => {
    const [before, after] = [points[k - 1], points[k + 1]];
    if (!before || !after) return true;
    const between = (before[0] - x) * (x - after[0]) >= 0 && (before[1] - y) * (y - after[1]) >= 0;
    return !between || !((before[0] === x && x === after[0]) || (before[1] === y && y === after[1]));
  });
}
