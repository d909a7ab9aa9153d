// Panning and zooming: a transformation of the whole picture.

import { meet } from "./rectangles.js";

/**
 * @typedef {{x: number, y: number, width: number, height: number}} Rectangle
 * @typedef {{x?: number, y?: number, width: number, height: number}} Room where a picture is seen, at 0, 0 unless it says where
 */

const LEAST = 0.02;
const MOST = 4;
const AROUND = 0.25; // of the room, that is left on each side of what is brought into sight
const MOST_AT_FIRST = 1.15;
export const MARGIN = 12;
const REST = 250; // milliseconds after the last step of a movement until a large picture is drawn anew
const STRETCHED = 8; // how many times larger than it was drawn, or smaller, a picture may be shown meanwhile, however coarse
const READABLE = 0.75; // of what is opened: it is made smaller for all of it to be in sight, but not below this

/**
 * Where a drawing is to be shown, and how large, for all of it to be seen, or for its beginning, where that is too small.
 * @param {Room} view @param {{width: number, height: number}} drawing @param {number} [least] how large it is made at least
 */
export function fitted(view, { width, height }, least = LEAST) {
  const whole = Math.min((view.width - 2 * MARGIN) / width, (view.height - 2 * MARGIN) / height, MOST_AT_FIRST);
  const scale = Math.max(whole, least);
  return {
    x: (view.x ?? 0) + Math.max((view.width - width * scale) / 2, MARGIN),
    y: (view.y ?? 0) + Math.max((view.height - height * scale) / 2, MARGIN),
    scale,
  };
}

/**
 * How a drawing is to be shown after something in it was opened or closed: a corner of that does not move. If it is not in
 * sight, all is made smaller about this corner, as long as it can be read.
 * @param {{x: number, y: number, scale: number}} now the upper left corner is where it was @param {Room} view @param {Rectangle} opened
 * @param {{width: number, height: number}} [was] how large it was when it was closed: then that corner stays which shows most
 */
export function settled(now, view, opened, was) {
  const corners = was ? [[0, 0], [1, 0], [0, 1], [1, 1]] : [[0, 0]];
  const ways = corners.map((corner) => about(corner, now, view, opened, was ?? opened));
  return ways.reduce((best, way) => (shareSeen(way, view, opened) > shareSeen(best, view, opened) + 0.01 ? way : best));
}

/**
 * The same about one corner of what is opened, 0 and 0 for the upper left one.
 * @param {number[]} corner @param {{x: number, y: number, scale: number}} now @param {Room} view @param {Rectangle} opened
 * @param {{width: number, height: number}} was
 */
function about([right, bottom], now, view, opened, was) {
  const x = now.x + (opened.x + right * was.width) * now.scale;
  const y = now.y + (opened.y + bottom * was.height) * now.scale;
  const [left, top] = [view.x ?? 0, view.y ?? 0];
  const wide = right ? x - left : left + view.width - x;
  const high = bottom ? y - top : top + view.height - y;
  const wanted = Math.min((wide - MARGIN) / opened.width, (high - MARGIN) / opened.height);
  const scale = Math.min(now.scale, Math.max(wanted, Math.min(READABLE, now.scale)));
  return { x: x - (opened.x + right * opened.width) * scale, y: y - (opened.y + bottom * opened.height) * scale, scale };
}

/** How much of a place is in sight. @param {{x: number, y: number, scale: number}} way @param {Room} view @param {Rectangle} place */
function shareSeen({ x, y, scale }, view, place) {
  const inside = (/** @type {number} */ from, /** @type {number} */ size, /** @type {number} */ start, /** @type {number} */ room) =>
    Math.max(Math.min(from + size, start + room) - Math.max(from, start), 0) / size;
  return inside(x + place.x * scale, place.width * scale, view.x ?? 0, view.width) * inside(y + place.y * scale, place.height * scale, view.y ?? 0, view.height);
}

/**
 * How a picture is to be shown for a place in it to be in sight: as it is, if it is; else with some room around that place,
 * so that what comes next in each direction is seen, too. What lies below a sign is not in sight.
 * @param {{x: number, y: number, scale: number}} now @param {Room} view @param {Rectangle} place
 * @param {Rectangle[]} [signs] what covers the picture, where it is seen
 */
export function revealed({ x, y, scale }, view, place, signs = []) {
  const [left, top] = [x + place.x * scale, y + place.y * scale];
  const seen = { x: left, y: top, width: place.width * scale, height: place.height * scale };
  const below = signs.filter((sign) => meet(sign, seen));
  const across = below.some(({ y: at, height }) => at - (view.y ?? 0) > MARGIN && (view.y ?? 0) + view.height - at - height > MARGIN); // at the left or right
  const byX = shift(left - (view.x ?? 0), seen.width, view.width, across);
  return { x: x + byX, y: y + shift(top - (view.y ?? 0), seen.height, view.height, below.length > 0 && !across), scale };
}

/**
 * How a drawing is to be shown for no part of the room to be empty while some of the drawing is not seen.
 * @param {{x: number, y: number, scale: number}} now @param {Room} view @param {{width: number, height: number}} drawing
 */
export function filled({ x, y, scale }, view, { width, height }) {
  const along = (/** @type {number} */ at, /** @type {number} */ size, /** @type {number} */ start, /** @type {number} */ room) => {
    const ends = [start + MARGIN, start + room - MARGIN - size];
    return Math.min(Math.max(at, Math.min(...ends)), Math.max(...ends));
  };
  return { x: along(x, width * scale, view.x ?? 0, view.width), y: along(y, height * scale, view.y ?? 0, view.height), scale };
}

export class Camera {
  /**
   * @param {SVGElement} svg @param {SVGElement} stage what is moved when all is drawn anew @param {HTMLElement} layer around
   *   the picture, and moved with what is painted on it @param {AbortSignal} signal
   */
  constructor(svg, stage, layer, signal) {
    this.svg = svg;
    this.layer = layer;
    this.stage = stage;
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.size = { width: 0, height: 0 };
    this.dragged = false;
    this.touched = false; // by the reader
    this.large = false; // whether the picture takes too long to be drawn anew for every step of a movement
    this.drawn = { x: 0, y: 0, scale: 1 }; // how it was drawn last; until it is again, what is painted is moved as a whole
    this.resting = 0;
    /** @type {(moving: boolean) => void} told of each movement, and whether it goes on */
    this.onMove = () => {};
    /** @type {() => Room} what of the room nothing covers */
    this.free = () => ({ width: svg.clientWidth, height: svg.clientHeight });
    /** @type {() => Rectangle[]} what lies over the picture */
    this.signs = () => [];
    this.listen(signal);
  }

  /** Draws the picture at its place. */
  apply() {
    clearTimeout(this.resting);
    this.drawn = { x: this.x, y: this.y, scale: this.scale };
    this.layer.classList.remove("ll-sliding", "ll-zooming");
    this.layer.style.transform = "";
    this.onMove(false);
    this.stage.setAttribute("transform", `translate(${this.x},${this.y}) scale(${this.scale})`);
  }

  /** Moves what is painted, which costs the same however much it is. */
  glide() {
    const { x, y, scale } = this.drawn;
    const by = this.scale / scale;
    this.layer.classList.add("ll-sliding", ...(by === 1 ? [] : ["ll-zooming"]));
    this.layer.style.transform = `translate(${this.x - by * x}px,${this.y - by * y}px) scale(${by})`;
    this.onMove(true);
  }

  /** A step of a movement: a large picture is drawn anew when the movement rests. */
  step() {
    const by = this.scale / this.drawn.scale;
    if (!this.large || Math.max(by, 1 / by) > STRETCHED) return this.apply();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.apply(), REST);
    this.glide();
  }

  /** Shows all of a drawing, at that scale at least. @param {{width: number, height: number}} drawing @param {number} [least] */
  fit(drawing, least) {
    const view = this.view();
    if (!view.width || !view.height || !drawing.width) return;
    Object.assign(this, fitted(view, drawing, least));
    this.touched = false;
    this.apply();
  }

  /** The scale at which all of a drawing is seen. @param {{width: number, height: number}} drawing */
  scaleOf(drawing) {
    const view = this.view();
    return view.width && drawing.width ? fitted(view, drawing).scale : this.scale;
  }

  /** @param {number} factor @param {number} [atX] @param {number} [atY] the point that stays where it is */
  zoom(factor, atX = this.svg.clientWidth / 2, atY = this.svg.clientHeight / 2) {
    const scale = Math.min(Math.max(this.scale * factor, LEAST), MOST);
    this.x = atX - ((atX - this.x) * scale) / this.scale;
    this.y = atY - ((atY - this.y) * scale) / this.scale;
    this.scale = scale;
    this.touched = true;
    this.step();
  }

  /** @param {number} byX @param {number} byY */
  pan(byX, byY) {
    this.x += byX;
    this.y += byY;
    this.touched = true;
    this.step();
  }

  /** The same while dragging: nothing is drawn anew until the end. @param {number} byX @param {number} byY */
  slide(byX, byY) {
    clearTimeout(this.resting);
    this.x += byX;
    this.y += byY;
    this.touched = true;
    this.glide();
  }

  /** Shows a place of the picture, if it is not in sight. @param {Rectangle} place */
  reveal(place) {
    Object.assign(this, revealed(this, this.view(), place, this.signs()));
    this.apply();
  }

  /** Leaves no room empty that some of the drawing could have. @param {{width: number, height: number}} drawing */
  fill(drawing) {
    if (!this.svg.clientWidth || !drawing.width) return;
    Object.assign(this, filled(this, this.view(), drawing));
    this.apply();
  }

  /** After something was opened or closed. @param {Rectangle | null} opened @param {Rectangle | null} [was] as it was when it was closed */
  settle(opened, was) {
    if (!this.svg.clientWidth || !opened) return;
    Object.assign(this, settled(this, this.view(), opened, was ?? undefined));
    this.apply();
  }

  /** How many pixels of the screen one of the picture's is, where the page or the view is enlarged. */
  enlarged() {
    return this.svg.clientWidth ? this.place().width / this.svg.clientWidth : 1;
  }

  /** Where the picture is on the screen, wherever what is painted of it has been moved to. */
  place() {
    return (this.layer.parentElement ?? this.svg).getBoundingClientRect();
  }

  view() {
    this.measure();
    return this.free();
  }

  /**
   * Takes note of how large the view is: to ask at each movement would have the page lay itself out. While it is off the page
   * it is as large as it was: no observer tells when it is back.
   */
  measure() {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (width) this.size = { width, height };
  }

  /** The part of the picture that is in sight, of no size where it has no place on the page. @returns {Rectangle} */
  sight() {
    const { x, y, scale, size } = this;
    return { x: -x / scale, y: -y / scale, width: size.width / scale, height: size.height / scale };
  }

  /** Moves so that a place which was at `before` does not move on the screen. @param {Rectangle} before @param {Rectangle} now */
  keep(before, now) {
    this.x += (before.x - now.x) * this.scale;
    this.y += (before.y - now.y) * this.scale;
    this.touched = true;
    this.apply();
  }

  /** Dragging pans; Ctrl and the wheel zoom. The wheel alone scrolls the page, as everywhere. @param {AbortSignal} signal */
  listen(signal) {
    const { svg } = this;
    svg.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const { left, top } = this.place();
        const by = this.enlarged();
        this.zoom(Math.exp(-event.deltaY * 0.002), (event.clientX - left) / by, (event.clientY - top) / by);
      }, { signal, passive: false });
    svg.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        this.dragged = false;
        let [x, y] = [event.clientX, event.clientY];
        const by = this.enlarged(); // asked once: each time the page must lay itself out
        const stop = new AbortController();
        const options = { signal: AbortSignal.any([signal, stop.signal]) };
        window.addEventListener("pointermove", (move) => {
            if (!this.dragged && Math.hypot(move.clientX - x, move.clientY - y) < 4) return;
            this.dragged = true;
            this.slide((move.clientX - x) / by, (move.clientY - y) / by);
            [x, y] = [move.clientX, move.clientY];
          }, options);
        const drop = () => {
          stop.abort();
          if (this.dragged) this.apply();
        };
        for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, drop, options);
      }, { signal });
  }
}

/** How far to move what is at `low` to be in 0..room, with something around it if it must move. @param {number} low @param {number} size @param {number} room @param {boolean} must */
function shift(low, size, room, must) {
  if (!must && low >= MARGIN && low + size <= room - MARGIN) return 0;
  const around = Math.max(Math.min(AROUND * room, (room - size) / 2), MARGIN); // of what is larger than the room the beginning is seen
  return low + size / 2 < room / 2 || size > room - 2 * MARGIN ? around - low : room - around - size - low;
}
