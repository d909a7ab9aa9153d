// The picture as SVG elements.

import { s } from "../dom.js";
import { shortened } from "../format.js";
import { GLYPHS, KINDS } from "./box-text.js";

/**
 * @typedef {import("./nested-layout.js").Drawing} Drawing
 * @typedef {import("./nested-layout.js").Rectangle} Rectangle
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./visible-boxes.js").Frame} Frame
 * @typedef {import("./box-text.js").Words} Words
 *
 * @typedef {object} Actions
 * @property {(name: string) => void} select chooses a box or the frame of a fusion group @property {(name: string) => void} toggle
 * @property {(box: Box) => string} where the line of code behind a box, "" if it is not known
 */

/**
 * @param {Picture} picture @param {Drawing} drawing @param {Map<string, Words>} words @param {Actions} actions
 * @param {string} arrow the id of the marker that edges end in
 */
export function scene(picture, drawing, words, actions, arrow) {
  const frames = outsideIn(picture.frames).flatMap((frame) => {
    const place = drawing.frames.get(frame.name);
    return place ? [{ outline: frameOutline(frame, place), title: frameTitle(frame, place, actions) }] : [];
  });
  const edges = [...picture.edges].flatMap(([key, edge]) => {
    const path = drawing.edges.get(key);
    return path ? [edgeElement(path, edge)] : [];
  });
  const boxes = picture.boxes.flatMap((box) => {
    const [place, text] = [drawing.boxes.get(box.name), words.get(box.name)];
    return place && text ? [boxElement(box, text, place, actions)] : [];
  });
  return s(
    "g",
    {},
    s("g", {}, ...frames.map(({ outline }) => outline)),
    s("g", { "aria-hidden": "true", "marker-end": `url(#${arrow})` }, ...edges),
    s("g", {}, ...frames.map(({ title }) => title)), // above the edges, which may cross them
    s("g", {}, ...boxes),
  );
}

/** Frames so that what is drawn later lies within what is drawn earlier. @param {Frame[]} frames */
function outsideIn(frames) {
  const depth = new Map([["", 0]]);
  for (const { name, parent } of frames) depth.set(name, (depth.get(parent) ?? 0) + 1);
  return [...frames].sort((a, b) => (depth.get(a.name) ?? 0) - (depth.get(b.name) ?? 0));
}

/** @param {Frame} frame @param {Rectangle} place */
function frameOutline({ name, fused }, { x, y, width, height }) {
  const outline = s("rect", { class: "ll-frame-outline", x, y, width, height, rx: 8 });
  return s("g", { class: fused ? "ll-frame ll-fused" : "ll-frame", dataset: { frame: name } }, outline);
}

/** The frame's title: closes a group or a call, chooses a fusion group. @param {Frame} frame @param {Rectangle} place @param {Actions} actions */
function frameTitle({ name, label, fused }, { x, y, width }, actions) {
  const text = `${fused ? GLYPHS.fused : "⊟"} ${shortened(label, 48)}`;
  const act = fused ? () => actions.select(name) : () => actions.toggle(name);
  return s(
    "g",
    { class: `ll-close${fused ? " ll-fused-title" : ""}`, role: "button", "aria-label": fused ? label : `Close ${label}`, onclick: act, dataset: { title: name } },
    s("rect", { x: x + 4, y: y + 3, width: Math.min(width - 8, 6.7 * text.length + 10), height: 16, rx: 4 }), // edges pass behind it
    s("text", { x: x + 9, y: y + 14 }, text),
    s("title", {}, fused ? label : `Close ${label}`),
  );
}

/** @param {string} path @param {import("./visible-boxes.js").Edge} edge */
function edgeElement(path, { source, target, count, again }) {
  const said = [count > 1 ? `${count} values` : "", again ? "into the next round" : ""].filter(Boolean).join(", ");
  const title = said ? s("title", {}, said) : null;
  const line = s("path", { d: path });
  return s("g", { class: `ll-edge${count > 1 ? " ll-several" : ""}${again ? " ll-again" : ""}`, dataset: { source, target } }, title, line);
}

/** @param {Box} box @param {Words} words @param {Rectangle} place @param {Actions} actions */
function boxElement(box, { title, detail, kind, full, mark }, { x, y, width, height }, actions) {
  const round = kind === "input" || kind === "decision" || kind === "output" || kind === "constant";
  const { opens } = box;
  const where = actions.where(box);
  const label = [kind === "op" ? "" : KINDS[kind], full, where, opens ? "closed, Enter opens it" : ""];
  const element = s(
    "g",
    {
      class: `ll-box ll-${kind}${mark ? ` ll-${mark === "pruned" ? "gone" : "changed"}` : ""}`, role: "button", tabindex: -1, "aria-label": label.filter(Boolean).join(", "),
      dataset: { box: box.name }, transform: `translate(${x},${y})`, onclick: () => actions.select(box.name),
      ondblclick: opens ? () => actions.toggle(box.name) : null,
    },
    s("rect", { class: "ll-outline", width, height, rx: round ? height / 2 : 5 }),
    s("text", { class: "ll-name", x: width / 2, y: 16 }, `${GLYPHS[kind]} ${title}`.trim()),
    detail ? s("text", { class: "ll-detail", x: width / 2, y: 30 }, detail) : null,
    s("title", {}, where ? `${full}\n${where}` : full),
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
