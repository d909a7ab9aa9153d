// The bar between the graph's pane and the other one: dragged, or moved by the arrow keys, it gives one more room.

import { h } from "../dom.js";

const USUAL = 60; // per cent for the graph
const [LEAST, MOST, STEP] = [25, 80, 5];

export class Splitter {
  /** @param {HTMLElement} body the grid of both panes @param {() => void} moved @param {(share: number) => void} settled told what is to be remembered @param {number} [share] per cent for the first pane */
  constructor(body, moved, settled, share) {
    this.body = body;
    this.moved = moved;
    this.settled = settled;
    this.beside = true;
    this.share = USUAL;
    this.bar = h("div", { class: "ll-dash-split", role: "separator", tabindex: "0", "aria-label": "Room for the graph", "aria-valuemin": LEAST, "aria-valuemax": MOST });
    this.bar.addEventListener("pointerdown", (event) => this.onDown(event));
    this.bar.addEventListener("pointermove", (event) => this.bar.hasPointerCapture(event.pointerId) && this.set(this.at(event)));
    this.bar.addEventListener("pointerup", () => this.settled(this.share));
    this.bar.addEventListener("dblclick", () => this.keep(USUAL));
    this.bar.addEventListener("keydown", (event) => this.onKey(event));
    this.set(share);
  }

  /** @param {number} [share] per cent for the first pane; the usual, where it is none */
  set(share) {
    const given = Number(share);
    this.share = Number.isFinite(given) && given > 0 ? Math.round(Math.min(Math.max(given, LEAST), MOST)) : USUAL;
    this.body.style.setProperty("--ll-first", `${this.share}fr`);
    this.body.style.setProperty("--ll-rest", `${100 - this.share}fr`);
    this.bar.setAttribute("aria-valuenow", String(this.share));
    this.moved();
  }

  /** @param {number} share */
  keep(share) {
    this.set(share);
    this.settled(this.share);
  }

  /** The panes stand side by side, or one below the other. @param {boolean} beside */
  lie(beside) {
    this.beside = beside;
    this.bar.setAttribute("aria-orientation", beside ? "vertical" : "horizontal");
  }

  /** Where a pointer is, in per cent of the body. @param {PointerEvent} event */
  at(event) {
    const { left, top, width, height } = this.body.getBoundingClientRect();
    return (100 * (this.beside ? event.clientX - left : event.clientY - top)) / Math.max(this.beside ? width : height, 1);
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    this.bar.setPointerCapture(event.pointerId);
    event.preventDefault(); // selects no text
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const to = /** @type {Record<string, number>} */ ({
      ArrowLeft: this.share - STEP, ArrowUp: this.share - STEP, ArrowRight: this.share + STEP, ArrowDown: this.share + STEP, Home: LEAST, End: MOST,
    })[event.key];
    if (to === undefined) return;
    this.keep(to);
    event.preventDefault();
    event.stopPropagation();
  }
}
