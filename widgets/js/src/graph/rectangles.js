// How places on the picture lie to one another.

/** @typedef {import("./nested-layout.js").Rectangle} Rectangle */

/** @param {Rectangle} place @param {number} by of its size, on each side @returns {Rectangle} */
export function grown({ x, y, width, height }, by) {
  return { x: x - by * width, y: y - by * height, width: (1 + 2 * by) * width, height: (1 + 2 * by) * height };
}

/** Whether one place lies within another. @param {Rectangle} outer @param {Rectangle} inner */
export function holds(outer, inner) {
  const ends = inner.x + inner.width <= outer.x + outer.width && inner.y + inner.height <= outer.y + outer.height;
  return outer.x <= inner.x && outer.y <= inner.y && ends;
}

/** @param {Rectangle} a @param {Rectangle} b */
export function meet(a, b) {
  return a.x <= b.x + b.width && b.x <= a.x + a.width && a.y <= b.y + b.height && b.y <= a.y + a.height;
}

/** What two that meet have in common. @param {Rectangle} a @param {Rectangle} b @returns {Rectangle} */
export function common(a, b) {
  const [x, y] = [Math.max(a.x, b.x), Math.max(a.y, b.y)];
  return { x, y, width: Math.min(a.x + a.width, b.x + b.width) - x, height: Math.min(a.y + a.height, b.y + b.height) - y };
}
