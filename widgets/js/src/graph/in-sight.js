// What of a large picture is on the page: what is in sight, and a little around it. The page styles, measures and paints
// anew all that is there whenever the view's size or scale changes, and a thousand boxes take it a tenth of a second.

import { sum } from "../format.js";
import { breather, turnOfThePage } from "../turns.js";

/**
 * @typedef {import("./nested-layout.js").Rectangle} Rectangle
 * @typedef {{place: Rectangle, make: () => SVGElement, element?: SVGElement}} Part a box, or an edge
 * @typedef {{group: SVGElement, parts: Part[]}} Parts and where they go, in their order
 */

const FEW = 400; // parts of a picture all of which are there always
const MOST_AT_ONCE = 250; // parts of another that are made in one go
const AROUND = 0.25; // of the view on each side, so that a movement does not lead into the void

export class InSight {
  /** @param {() => Rectangle} sight the part of the picture that is seen @param {(come: SVGElement[]) => void} mark told which parts have come */
  constructor(sight, mark) {
    this.sight = sight;
    this.mark = mark;
    /** @type {Parts[]} those first that say most */
    this.all = [];
    /** @type {SVGElement[]} what has come and is not marked yet */
    this.come = [];
    /** @type {Rectangle | null} where all is there, null for nowhere */
    this.covered = null;
    this.few = true;
    this.turn = 0;
  }

  /** Has another picture, at its place by now. @param {Parts[]} all */
  take(all) {
    [this.all, this.covered] = [all, null];
    this.few = sum(all.map(({ parts }) => parts.length)) <= FEW;
    return this.follow();
  }

  /** The picture goes. */
  leave() {
    this.turn += 1;
    this.all = [];
  }

  /**
   * Has there what is in sight, and soon what is around that; the rest goes.
   * @param {boolean} [moving] whether the picture is under way: then nothing goes, and nothing comes while there is all that is seen
   * @returns {Promise<void>} until all has come, or the picture has moved again
   */
  async follow(moving = false) {
    const seen = this.sight();
    if (moving && this.covered && holds(this.covered, seen)) return;
    const turn = (this.turn += 1);
    this.covered = null;
    if (!this.few && !moving) this.drop(grown(seen, 2 * AROUND));
    const first = this.coming(this.few ? null : seen);
    let made = 0;
    while ((this.few || made < MOST_AT_ONCE) && !first.next().done) made += 1;
    this.marked();
    if (this.few) return;
    if (made) await turnOfThePage();
    const breathe = breather();
    for (const steps of [first, this.coming(grown(seen, AROUND))]) {
      if (turn !== this.turn) return;
      for (const _ of steps) {
        const pause = breathe();
        if (!pause) continue;
        this.marked();
        await pause;
        if (turn !== this.turn) return;
      }
    }
    this.marked();
    this.covered = grown(seen, AROUND);
  }

  /** Has all there, as to save the picture; until the next movement. */
  whole() {
    this.turn += 1;
    for (const _ of this.coming(null)); // each step makes one
    this.marked();
  }

  /** Has what came marked, each once: to mark all that is there takes longer than a frame. */
  marked() {
    this.mark(this.come.splice(0));
  }

  /** Makes one after another of what is in a region and not there yet. @param {Rectangle | null} region null for everywhere */
  *coming(region) {
    for (const { group, parts } of this.all) {
      const after = following(parts);
      for (const [k, part] of parts.entries()) {
        if (isThere(part) || (region && !meet(part.place, region))) continue;
        this.come.push(group.insertBefore((part.element ??= part.make()), after[k]));
        yield;
      }
    }
  }

  /** @param {Rectangle} region beyond which nothing stays, but for what has the focus */
  drop(region) {
    for (const part of this.all.flatMap(({ parts }) => parts)) {
      if (isThere(part) && !meet(part.place, region) && part.element !== document.activeElement) part.element?.remove();
    }
  }
}

/** @param {Part} part */
function isThere({ element }) {
  return Boolean(element?.parentNode);
}

/** For each part the next one that is there already. @param {Part[]} parts */
function following(parts) {
  /** @type {(SVGElement | null)[]} */
  const after = new Array(parts.length);
  /** @type {SVGElement | null} */
  let next = null;
  for (let k = parts.length - 1; k >= 0; k--) {
    after[k] = next;
    if (isThere(parts[k])) next = parts[k].element ?? null;
  }
  return after;
}

/** @param {Rectangle} place @param {number} by of its size, on each side @returns {Rectangle} */
function grown({ x, y, width, height }, by) {
  return { x: x - by * width, y: y - by * height, width: (1 + 2 * by) * width, height: (1 + 2 * by) * height };
}

/** Whether one place lies within another. @param {Rectangle} outer @param {Rectangle} inner */
function holds(outer, inner) {
  const ends = inner.x + inner.width <= outer.x + outer.width && inner.y + inner.height <= outer.y + outer.height;
  return outer.x <= inner.x && outer.y <= inner.y && ends;
}

/** @param {Rectangle} a @param {Rectangle} b */
function meet(a, b) {
  return a.x <= b.x + b.width && b.x <= a.x + a.width && a.y <= b.y + b.height && b.y <= a.y + a.height;
}
