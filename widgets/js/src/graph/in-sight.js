// What of a large picture is on the page: what is in sight, and a little around it. The page styles, measures and paints
// anew all that is there whenever the view's size or scale changes, and a thousand boxes take it a tenth of a second.

import { sum } from "../format.js";
import { breather, turnOfThePage } from "../turns.js";
import { grown, holds, meet } from "./rectangles.js";

/**
 * @typedef {import("./nested-layout.js").Rectangle} Rectangle
 * @typedef {object} Part a box, or an edge
 * @property {Rectangle} place @property {() => SVGElement} make @property {SVGElement} [element]
 * @property {import("./edge-line.js").EdgeLine} [line] of an edge
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
    /** @type {string | null} a box whose edges are all there, whatever lies on them */
    this.chosen = null;
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
      const isSeen = region ? this.seenOnce(region) : () => true;
      for (const part of parts) if (isThere(part)) isSeen(part);
      for (const [k, part] of parts.entries()) {
        if (isThere(part) || !isSeen(part)) continue;
        this.come.push(group.insertBefore((part.element ??= part.make()), after[k]));
        yield;
      }
    }
  }

  /** @param {Rectangle} region beyond which nothing stays, but for what has the focus */
  drop(region) {
    const isSeen = this.seenOnce(region);
    for (const part of this.all.flatMap(({ parts }) => parts)) {
      if (isThere(part) && !isSeen(part) && part.element !== document.activeElement) part.element?.remove();
    }
  }

  /**
   * Whether a part is seen in a region, and no other one before it that looks the same there: hundreds of edges may lie on
   * one another, and each takes its time to be painted.
   * @param {Rectangle} region @returns {(part: Part) => boolean}
   */
  seenOnce(region) {
    const drawn = new Set();
    return ({ place, line }) => {
      if (!meet(place, region)) return false;
      if (!line) return true;
      const look = line.within(region);
      const isNew = Boolean(look) && !drawn.has(look);
      drawn.add(look);
      return isNew || (Boolean(look) && line.ends.includes(this.chosen ?? ""));
    };
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
