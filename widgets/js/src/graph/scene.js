// The picture as SVG elements.

import { s } from "../dom.js";
import { shortened } from "../format.js";
import { GLYPHS, KINDS } from "./words.js";

/**
 * @typedef {import("./frames.js").Drawing} Drawing
 * @typedef {import("./frames.js").Rectangle} Rectangle
 * @typedef {import("./visible.js").Picture} Picture
 * @typedef {import("./visible.js").Box} Box
 * @typedef {import("./words.js").Words} Words
 *
 * @typedef {object} Actions
 * @property {(name: string) => void} select @property {(name: string) => void} toggle
 * @property {(box: Box) => string} where the line of code behind a box, "" if it is not known
 */

/**
 * @param {Picture} picture @param {Drawing} drawing @param {Map<string, Words>} words @param {Actions} actions
 * @param {string} arrow the id of the marker that edges end in
 */
export function scene(picture, drawing, words, actions, arrow) {
  const frames = picture.frames.flatMap(({ name, label }) => {
    const place = drawing.frames.get(name);
    return place ? [frameElement(name, label, place, actions)] : [];
  });
  const edges = [...picture.edges].flatMap(([key, { source, target, count }]) => {
    const path = drawing.edges.get(key);
    return path ? [edgeElement(path, source, target, count)] : [];
  });
  const boxes = picture.boxes.flatMap((box) => {
    const [place, text] = [drawing.boxes.get(box.name), words.get(box.name)];
    return place && text ? [boxElement(box, text, place, actions)] : [];
  });
  return s("g", {}, s("g", {}, ...frames), s("g", { "aria-hidden": "true", "marker-end": `url(#${arrow})` }, ...edges), s("g", {}, ...boxes));
}

/** @param {string} name @param {string} label @param {Rectangle} place @param {Actions} actions */
function frameElement(name, label, { x, y, width, height }, actions) {
  const close = s(
    "g",
    { class: "ll-close", role: "button", "aria-label": `Close ${label}`, onclick: () => actions.toggle(name) },
    s("rect", { x, y, width: Math.min(width, 7 * label.length + 34), height: 20, rx: 6 }),
    s("text", { x: x + 9, y: y + 14 }, `⊟ ${shortened(label, 48)}`),
  );
  const outline = s("rect", { class: "ll-frame-outline", x, y, width, height, rx: 8 });
  return s("g", { class: "ll-frame", dataset: { frame: name } }, outline, close);
}

/** @param {string} path @param {string} source @param {string} target @param {number} count */
function edgeElement(path, source, target, count) {
  const title = count > 1 ? s("title", {}, `${count} values`) : null;
  const line = s("path", { d: path });
  return s("g", { class: count > 1 ? "ll-edge ll-several" : "ll-edge", dataset: { source, target } }, title, line);
}

/** @param {Box} box @param {Words} words @param {Rectangle} place @param {Actions} actions */
function boxElement(box, { title, detail, kind }, { x, y, width, height }, actions) {
  const round = kind === "input" || kind === "output" || kind === "constant";
  const { opens } = box;
  const label = [kind === "op" ? "" : KINDS[kind], title, detail, actions.where(box), opens ? "closed, Enter opens it" : ""];
  const element = s(
    "g",
    {
      class: `ll-box ll-${kind}`, role: "button", tabindex: -1, "aria-label": label.filter(Boolean).join(", "),
      dataset: { box: box.name }, transform: `translate(${x},${y})`, onclick: () => actions.select(box.name),
      ondblclick: opens ? () => actions.toggle(box.name) : null,
    },
    s("rect", { class: "ll-outline", width, height, rx: round ? height / 2 : 5 }),
    s("text", { class: "ll-name", x: width / 2, y: detail ? 16 : 16 }, `${GLYPHS[kind]} ${title}`.trim()),
    detail ? s("text", { class: "ll-detail", x: width / 2, y: 30 }, detail) : null,
  );
  if (opens) element.append(opener(box.name, width, actions));
  return element;
}

/** The little plus at a box's corner. @param {string} name @param {number} width @param {Actions} actions */
function opener(name, width, actions) {
  const open = (/** @type {Event} */ event) => {
    event.stopPropagation();
    actions.toggle(name);
  };
  return s(
    "g",
    { class: "ll-opener", "aria-hidden": "true", onclick: open, transform: `translate(${width - 3},1)` },
    s("circle", { r: 8 }),
    s("path", { d: "M-4,0 H4 M0,-4 V4" }),
    s("title", {}, "Open"),
  );
}

/** The arrow head that edges end in. @param {string} id */
export function arrowMarker(id) {
  const marker = { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
  const head = s("path", { class: "ll-arrow", d: "M0,0.5 L8,4 L0,7.5 z" });
  return s("defs", {}, s("marker", { ...marker, markerUnits: "userSpaceOnUse" }, head));
}
