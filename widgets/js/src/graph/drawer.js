// The code over a large picture: on which side it opens, and how the picture makes room for it.

/**
 * @typedef {import("./view.js").GraphView} GraphView
 * @typedef {import("./camera.js").Rectangle} Rectangle
 */

/** Shows the code where it does not cover a box. @param {GraphView} view @param {string} [name] of that box */
export function openDrawer(view, name = "") {
  const { body, camera } = view;
  if (!body || !camera) return;
  if (!body.classList.contains("ll-drawer")) {
    const place = view.placeOf(name);
    const [middle, level] = place ? [camera.x + (place.x + place.width / 2) * camera.scale, camera.y + (place.y + place.height / 2) * camera.scale] : [0, 0];
    body.classList.toggle("ll-drawer-left", middle > body.clientWidth / 2);
    body.classList.toggle("ll-drawer-above", level > body.clientHeight / 2); // where the view is narrow, see the style sheet
  }
  turnDrawer(view, true);
}

const LEAST = 0.8; // below this scale most boxes have no room for their titles

/**
 * Opens or closes it. All is in sight then, if it can be read, unless the reader has made the picture their own.
 * @param {GraphView} view @param {boolean} [open]
 */
export function turnDrawer(view, open) {
  const { body } = view;
  const before = body?.classList.contains("ll-drawer");
  if (body?.classList.toggle("ll-drawer", open) === before || !body?.classList.contains("ll-large")) return;
  const { camera } = view;
  if (!camera || !view.fitted || camera.touched || view.opened.size) return;
  if (camera.scaleOf(view.drawing) >= Math.min(LEAST, camera.scale)) view.fit();
}

/**
 * The part of the picture's room that the code does not cover.
 * @param {SVGElement} svg @param {HTMLElement} body @param {HTMLElement} side @returns {Rectangle}
 */
export function uncovered(svg, body, side) {
  const { clientWidth: width, clientHeight: height } = svg;
  if (!body.classList.contains("ll-large") || !body.classList.contains("ll-drawer")) return { x: 0, y: 0, width, height };
  const { offsetWidth, offsetHeight } = side;
  if (offsetWidth < width - 1) return { x: body.classList.contains("ll-drawer-left") ? offsetWidth : 0, y: 0, width: width - offsetWidth, height };
  return { x: 0, y: body.classList.contains("ll-drawer-above") ? offsetHeight : 0, width, height: height - offsetHeight };
}
