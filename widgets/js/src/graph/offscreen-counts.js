// Small signs at the edges of the picture: how many boxes lie beyond them. A click moves there.

import { h } from "../dom.js";
import { counted } from "../format.js";

/**
 * @typedef {import("./camera.js").Camera} Camera
 * @typedef {import("./camera.js").Rectangle} Rectangle
 * @typedef {"above" | "below" | "left" | "right"} Side
 */

const PAUSE = 60; // milliseconds, the longer the more often it was tried in vain
const TRIES = 5;
const STEP = 0.7; // of the view that a click moves by
/** @type {Record<Side, [string, number, number]>} sign, and where to look */
const SIDES = { above: ["▴", 0, -1], below: ["▾", 0, 1], left: ["◂", -1, 0], right: ["▸", 1, 0] };

/**
 * How many boxes lie out of sight, on which side.
 * @param {Iterable<Rectangle>} boxes @param {{x: number, y: number, scale: number}} camera
 * @param {{width: number, height: number}} view @returns {Record<Side, number>}
 */
export function hidden(boxes, { x, y, scale }, { width, height }) {
  const found = { above: 0, below: 0, left: 0, right: 0 };
  for (const box of boxes) {
    const [across, down] = [x + (box.x + box.width / 2) * scale, y + (box.y + box.height / 2) * scale];
    if (down < 0) found.above += 1;
    else if (down > height) found.below += 1;
    else if (across < 0) found.left += 1;
    else if (across > width) found.right += 1;
  }
  return found;
}

export class OffscreenCounts {
  /** @param {Camera} camera */
  constructor(camera) {
    this.camera = camera;
    this.frame = 0;
    /** @type {(() => void) | null} what is to be done when the picture is on the page again */
    this.again = null;
    new IntersectionObserver(() => {
      const { again } = this;
      this.again = null;
      again?.();
    }).observe(camera.svg);
    this.signs = /** @type {Side[]} */ (Object.keys(SIDES)).map((side) => {
      const [, toX, toY] = SIDES[side];
      const sign = h("button", { type: "button", class: `ll-beyond ll-beyond-${side}`, tabindex: -1, "aria-hidden": true, hidden: true });
      sign.addEventListener("click", () => {
        const { clientWidth, clientHeight } = camera.svg;
        camera.pan(-toX * STEP * clientWidth, -toY * STEP * clientHeight);
      });
      return { side, sign };
    });
  }

  /** Where signs are seen, in the picture's room. @returns {Rectangle[]} */
  places() {
    return this.signs.flatMap(({ sign }) => {
      const { offsetLeft: x, offsetTop: y, offsetWidth: width, offsetHeight: height } = sign;
      const isCentred = sign.matches(".ll-beyond-above, .ll-beyond-below"); // by `translate`, of which offsets know nothing
      return sign.hidden ? [] : [{ x: isCentred ? x - width / 2 : x, y, width, height }];
    });
  }

  /** Counts anew, not in every frame of a movement. @param {() => Iterable<Rectangle>} boxes @param {number} [tries] */
  update(boxes, tries = 0) {
    if (this.frame) return;
    this.frame = window.setTimeout(() => {
      this.frame = 0;
      if (!this.camera.svg.clientWidth) { // off the page for now, as in a long notebook: no observer tells when it is back, if that is soon
        this.again = () => this.update(boxes);
        if (tries < TRIES) this.update(boxes, tries + 1);
        return;
      }
      const { x = 0, y = 0, ...room } = this.camera.view();
      const counts = hidden(boxes(), { x: this.camera.x - x, y: this.camera.y - y, scale: this.camera.scale }, room);
      for (const { side, sign } of this.signs) {
        const text = `${SIDES[side][0]} ${counted(counts[side], "box", "boxes")} ${side === "above" || side === "below" ? side : `to the ${side}`}`;
        if (sign.hidden !== !counts[side]) sign.hidden = !sign.hidden;
        if (sign.textContent !== text) sign.textContent = text;
      }
    }, PAUSE * 2 ** tries);
  }
}
