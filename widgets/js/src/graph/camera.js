// Panning and zooming: a transformation of the whole picture.

/** @typedef {{x: number, y: number, width: number, height: number}} Rectangle */

const LEAST = 0.02;
const MOST = 4;
const MOST_AT_FIRST = 1.15;
const READABLE = 0.55; // below this scale text cannot be read: a picture that is too tall for it is fitted by width only at first
/** @type {number} the smallest scale at which a picture is shown unasked: half of it in sight says more than all of it unread */
export const LEGIBLE = 0.5;
const MARGIN = 12;

/**
 * Whether the code is to stand below a picture, not beside it: where the view is narrow, and the picture wide.
 * @param {number} room width of the view @param {{width: number, height: number}} drawing
 */
export function stacked(room, { width, height }) {
  const beside = Math.min(room * 0.64, room - 260) - 2 * MARGIN;
  return room <= 620 || (room <= 1100 && width > 1.25 * height && beside / width < READABLE);
}

/**
 * Where a drawing is to be shown, and how large.
 * @param {{width: number, height: number}} view @param {{width: number, height: number}} drawing
 * @param {boolean} all whether everything must be seen, be it too small to read
 */
export function fitted(view, { width, height }, all) {
  const [byWidth, byHeight] = [(view.width - 2 * MARGIN) / width, (view.height - 2 * MARGIN) / height];
  const whole = Math.min(byWidth, byHeight, MOST_AT_FIRST);
  const scale = all ? Math.max(whole, LEAST) : whole >= READABLE ? whole : Math.max(Math.min(byWidth, 1), LEGIBLE);
  const middle = (view.width - width * scale) / 2;
  const x = all ? Math.max(middle, MARGIN) : middle;
  return { x, y: Math.max((view.height - height * scale) / 2, MARGIN), scale };
}

/**
 * How a drawing is to be shown after something in it was opened or closed: where it is if all of it is in sight, moved if
 * that is enough, smaller if it can still be read; else so that what was opened is in sight.
 * @param {{x: number, y: number, scale: number}} now @param {{width: number, height: number}} view
 * @param {{width: number, height: number}} drawing @param {Rectangle | null} opened
 */
export function settled(now, view, drawing, opened) {
  const whole = { x: 0, y: 0, ...drawing };
  const inSight = (/** @type {number} */ scale, /** @type {{width: number, height: number}} */ { width, height }) =>
    width * scale <= view.width - 2 * MARGIN + 1 && height * scale <= view.height - 2 * MARGIN + 1;
  const grows = inSight(now.scale / 0.9, whole) && now.scale < 1; // it was made smaller for what is closed now
  if (!grows && inSight(now.scale, whole)) return moved(now, view, whole);
  const all = fitted(view, drawing, true);
  if (all.scale >= READABLE || !opened) return all.scale >= READABLE ? all : moved(now, view, whole);
  const scale = Math.min(now.scale, Math.max(fitted(view, opened, true).scale, READABLE));
  const kept = { x: now.x + opened.x * (now.scale - scale), y: now.y + opened.y * (now.scale - scale), scale };
  return moved(kept, view, opened);
}

/** As little as is needed for a place to be in sight. @param {{x: number, y: number, scale: number}} now
 * @param {{width: number, height: number}} view @param {Rectangle} place
 */
function moved({ x, y, scale }, view, place) {
  const [left, top] = [x + place.x * scale, y + place.y * scale];
  const byX = shift(left, left + place.width * scale, view.width);
  return { x: x + byX, y: y + shift(top, top + place.height * scale, view.height), scale };
}

export class Camera {
  /** @param {SVGElement} svg @param {SVGElement} stage what is moved @param {AbortSignal} signal */
  constructor(svg, stage, signal) {
    this.svg = svg;
    this.stage = stage;
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.dragged = false;
    this.onMove = () => {};
    this.listen(signal);
  }

  apply() {
    this.onMove();
    this.stage.setAttribute("transform", `translate(${this.x},${this.y}) scale(${this.scale})`);
  }

  /** @param {{width: number, height: number}} drawing @param {boolean} all whether everything must be seen */
  fit(drawing, all) {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (!width || !height || !drawing.width) return;
    Object.assign(this, fitted({ width, height }, drawing, all));
    this.apply();
  }

  /** @param {number} factor @param {number} [atX] @param {number} [atY] the point that stays where it is */
  zoom(factor, atX = this.svg.clientWidth / 2, atY = this.svg.clientHeight / 2) {
    const scale = Math.min(Math.max(this.scale * factor, LEAST), MOST);
    this.x = atX - ((atX - this.x) * scale) / this.scale;
    this.y = atY - ((atY - this.y) * scale) / this.scale;
    this.scale = scale;
    this.apply();
  }

  /** @param {number} byX @param {number} byY */
  pan(byX, byY) {
    this.x += byX;
    this.y += byY;
    this.apply();
  }

  /** Moves as little as is needed to show a place of the picture. @param {Rectangle} place */
  reveal(place) {
    Object.assign(this, moved(this, this.view(), place));
    this.apply();
  }

  /** After something was opened or closed. @param {{width: number, height: number}} drawing @param {Rectangle | null} opened */
  settle(drawing, opened) {
    if (!this.svg.clientWidth || !drawing.width) return;
    Object.assign(this, settled(this, this.view(), drawing, opened));
    this.apply();
  }

  view() {
    return { width: this.svg.clientWidth, height: this.svg.clientHeight };
  }

  /** Moves so that a place which was at `before` does not move on the screen. @param {Rectangle} before @param {Rectangle} now */
  keep(before, now) {
    this.pan((before.x - now.x) * this.scale, (before.y - now.y) * this.scale);
  }

  /** Dragging pans; Ctrl and the wheel zoom. The wheel alone scrolls the page, as everywhere. @param {AbortSignal} signal */
  listen(signal) {
    const { svg } = this;
    svg.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const { left, top } = svg.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY * 0.002), event.clientX - left, event.clientY - top);
      }, { signal, passive: false });
    svg.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        this.dragged = false;
        let [x, y] = [event.clientX, event.clientY];
        const stop = new AbortController();
        const options = { signal: AbortSignal.any([signal, stop.signal]) };
        window.addEventListener("pointermove", (move) => {
            if (!this.dragged && Math.hypot(move.clientX - x, move.clientY - y) < 4) return;
            this.dragged = true;
            this.pan(move.clientX - x, move.clientY - y);
            [x, y] = [move.clientX, move.clientY];
          }, options);
        for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => stop.abort(), options);
      }, { signal });
  }
}

/** @param {number} low @param {number} high @param {number} size how far to move for low..high to be in 0..size */
function shift(low, high, size) {
  if (low < MARGIN) return MARGIN - low;
  return high > size - MARGIN ? Math.max(size - MARGIN - high, MARGIN - low) : 0;
}
