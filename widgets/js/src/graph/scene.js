// The picture as SVG elements.

import { s } from "../dom.js";
import { bytes, shortened } from "../format.js";
import { GLYPHS, KINDS } from "./box-text.js";
import { saved } from "./lanes.js";

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
 * @param {string} arrow the id of the marker that edges end in @param {() => Promise<void> | undefined} breathe
 */
export async function scene(picture, drawing, words, actions, arrow, breathe) {
  const frames = outsideIn(picture.frames).flatMap((frame) => {
    const place = drawing.frames.get(frame.name);
    return place ? [{ outline: frameOutline(frame, place), title: frameTitle(frame, place, actions) }] : [];
  });
  const lane = laneNumbers(picture, drawing);
  const updates = new Set(picture.boxes.filter((box) => box.lane === "update").map(({ name }) => name));
  const edges = [];
  for (const [key, edge] of picture.edges) {
    const path = drawing.edges.get(key);
    const across = lane(edge.source) !== lane(edge.target) || (drawing.strips && updates.has(edge.target) && !updates.has(edge.source));
    if (path) edges.push(edgeElement(path, edge, Boolean(across)));
    const pause = breathe();
    if (pause) await pause;
  }
  const boxes = [];
  for (const box of picture.boxes) {
    const [place, text] = [drawing.boxes.get(box.name), words.get(box.name)];
    if (place && text) boxes.push(boxElement(box, text, place, actions));
    const pause = breathe();
    if (pause) await pause;
  }
  return s(
    "g",
    {},
    s("g", {}, ...(drawing.strips ?? []).map((one, _, all) => strip(one, joined(one, all, picture) ? "backward, update" : one.lane))),
    s("g", {}, ...frames.map(({ outline }) => outline)),
    s("g", { "aria-hidden": "true", "marker-end": `url(#${arrow})` }, ...edges),
    s("g", { "aria-hidden": "true" }, ...(drawing.strips ? saved(picture) : []).flatMap((one) => savedElement(one, drawing))), // behind the boxes, which it may pass
    s("g", {}, ...frames.map(({ title }) => title)), // above the edges, which may cross them
    s("g", {}, ...boxes),
  );
}

/** In which strip a box lies; all in none where there are no lanes. @param {Picture} picture @param {Drawing} drawing */
function laneNumbers(picture, { strips, boxes }) {
  return (/** @type {string} */ name) => {
    const lane = stripAt(boxes.get(name) ?? {}, strips)?.lane ?? "";
    return lane === "loss" ? "forward" : lane; // the end of the forward lane
  };
}

/** The strip that a place is in. @param {{x?: number, y?: number}} place @param {import("./layered-layout.js").Strip[]} [strips] */
function stripAt({ x = 0, y = 0 }, strips = []) {
  return strips.find((one) => one.x <= x && x <= one.x + one.width && one.y <= y && y <= one.y + one.height);
}

/** Whether the update stands in the lane of the backward pass. @param {import("./layered-layout.js").Strip} strip @param {import("./layered-layout.js").Strip[]} strips @param {Picture} picture */
function joined({ lane }, strips, { boxes }) {
  return lane === "backward" && !strips.some((one) => one.lane === "update") && boxes.some((box) => box.lane === "update");
}

/** @param {import("./layered-layout.js").Strip} place @param {string} said */
function strip({ lane, named, x, y, width, height }, said) {
  const title = named ? s("text", { x: x + 8, y: y + 13 }, said) : null;
  return s("g", { class: `ll-strip ll-strip-${lane}` }, s("rect", { x, y, width, height, rx: 6 }), title);
}

/** The dotted line from a box to its gradient, with what is kept for it. @param {import("./lanes.js").Saved} saved @param {Drawing} drawing */
function savedElement({ forward, backward, bytes: kept }, drawing) {
  const place = (/** @type {string} */ name) => drawing.boxes.get(name) ?? drawing.frames.get(name);
  const [from, to] = [place(forward), place(backward)];
  if (!from || !to) return [];
  const down = to.y > from.y + from.height;
  const [x, y] = down ? [from.x + from.width / 2, from.y + from.height] : [from.x + from.width, from.y + from.height / 2];
  const [toX, toY] = down ? [to.x + to.width / 2, to.y] : [to.x, to.y + to.height / 2];
  const text = bytes(kept);
  const [middleX, middleY] = [down ? (x + toX) / 2 : gapBefore(to, drawing) ?? (x + toX) / 2, (y + toY) / 2];
  const width = 6.7 * text.length + 6;
  const room = down ? toY - y >= 14 : toX - x >= width - 8;
  return [
    s(
      "g",
      { class: "ll-saved", dataset: { forward, backward } },
      s("title", {}, `${text} kept for the backward pass`),
      s("path", { d: `M${x},${y} L${toX},${toY}`, "stroke-width": 1 + Math.log10(1 + kept / 1000) }),
      room && s("rect", { x: middleX - width / 2, y: middleY - 8, width, height: 15, rx: 4 }),
      room && s("text", { x: middleX, y: middleY + 4, "text-anchor": "middle", dataset: { width: 0, size: 11 } }, text),
    ),
  ];
}

/** The middle of the gap before the lane that a place is in, where the lanes stand side by side. @param {Rectangle} place @param {Drawing} drawing */
function gapBefore(place, { strips = [] }) {
  const strip = stripAt(place, strips);
  const before = strips.filter((one) => strip && one.x + one.width <= strip.x);
  return strip && before.length ? (Math.max(...before.map((one) => one.x + one.width)) + strip.x) / 2 : null;
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
  const short = `${text.split(" ", fused ? 3 : 2).join(" ")}`.replace(/:$/, ""); // "◉ fused 1"
  const act = fused ? () => actions.select(name) : () => actions.toggle(name);
  return s(
    "g",
    { class: `ll-close${fused ? " ll-fused-title" : ""}`, role: "button", "aria-label": fused ? label : `Close ${label}`, onclick: act, dataset: { title: name } },
    s("rect", { x: x + 4, y: y + 3, width: Math.min(width - 8, 6.7 * text.length + 10), height: 16, rx: 4 }), // edges pass behind it
    s("text", { x: x + 9, y: y + 14, dataset: { width: width - 10, height: 60, size: 11, full: text, short } }, text),
    s("title", {}, fused ? label : `Close ${label}`),
  );
}

/** @param {string} path @param {import("./visible-boxes.js").Edge} edge @param {boolean} across whether it leads into another lane */
function edgeElement(path, { source, target, count, again, bytes: carried }, across) {
  const said = [count > 1 ? `${count} values` : "", carried ? bytes(carried) : "", again ? "into the next round" : ""].filter(Boolean).join(", ");
  const title = said ? s("title", {}, said) : null;
  const width = carried ? Math.min(1.2 + Math.log10(1 + carried / 1000) * 0.8, 5) : null;
  const line = s("path", { d: path, style: width && { "stroke-width": `${width.toFixed(1)}px` } || {} });
  const of = { "ll-several": count > 1 && !carried, "ll-again": again, "ll-across": across };
  const classes = Object.entries(of).filter(([, has]) => has).map(([name]) => ` ${name}`);
  return s("g", { class: `ll-edge${classes.join("")}`, dataset: { source, target } }, title, line);
}

/** @param {Box} box @param {Words} words @param {Rectangle} place @param {Actions} actions */
function boxElement(box, { title, detail, kind, full, mark, tags }, { x, y, width, height }, actions) {
  const round = kind === "input" || kind === "decision" || kind === "output" || kind === "constant";
  const { opens } = box;
  const where = actions.where(box);
  const name = `${GLYPHS[kind]} ${title}`.trim();
  const label = [kind === "op" ? "" : KINDS[kind], full, where, opens ? "closed, Enter opens it" : ""];
  const element = s(
    "g",
    {
      class: `ll-box ll-${kind}${mark ? ` ll-${mark === "pruned" ? "gone" : "changed"}` : ""}`, role: "button", tabindex: -1, "aria-label": label.filter(Boolean).join(", "),
      dataset: { box: box.name }, transform: `translate(${x},${y})`, onclick: () => actions.select(box.name),
      ondblclick: opens ? () => actions.toggle(box.name) : null,
    },
    s("rect", { class: "ll-outline", width, height, rx: round ? height / 2 : 5 }),
    s("text", { class: "ll-name", x: width / 2, y: 16, dataset: { width: width - 4, height: height - 6, size: 12, full: name } }, name),
    detail ? s("text", { class: "ll-detail", x: width / 2, y: 30, dataset: { width: 0, size: 11 } }, detail) : null,
    tags ? s("text", { class: "ll-tags", x: width / 2, y: detail ? 44 : 30, dataset: { width: 0, size: 11 } }, tags) : null,
    s("title", {}, [full, where, ...(box.tags ?? []).slice(0, 20)].filter(Boolean).join("\n")),
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
    { class: "ll-opener", "aria-hidden": "true", onclick: open, transform: `translate(${width + 1},-1)` }, // beside the title, which may be as wide as the box
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
