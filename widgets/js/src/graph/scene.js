// The picture as SVG elements.

import { s } from "../dom.js";
import { bytes, shortened } from "../format.js";
import { GLYPHS, KINDS } from "./box-text.js";
import { EdgeLine } from "./edge-line.js";
import { saved } from "./lanes.js";
import { TITLE_HEIGHT } from "./nested-layout.js";
import { BAR, isUnmeasured, shareElement, toldLabel } from "./overlays.js";

/**
 * @typedef {import("./nested-layout.js").Drawing} Drawing
 * @typedef {import("./nested-layout.js").Rectangle} Rectangle
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./visible-boxes.js").Frame} Frame
 * @typedef {import("./box-text.js").Words} Words
 *
 * @typedef {import("./labels.js").Labels} Labels
 * @typedef {{words: Map<string, Words>, overlaid: Map<string, import("./overlays.js").Told>}} Said what is told on the boxes
 *
 * @typedef {object} Actions
 * @property {(name: string) => void} select chooses a box or the frame of a fusion group @property {(name: string) => void} toggle
 * @property {(box: Box) => string} where the line of code behind a box, "" if it is not known
 */

/**
 * The picture without what is in it, and how that is made.
 * @param {Picture} picture @param {Drawing} drawing @param {Said} said @param {Actions} actions
 * @param {Labels} labels @param {string} arrow the id of the marker that edges end in
 */
export function scene(picture, drawing, said, actions, labels, arrow) {
  const strips = (drawing.strips ?? []).map((one) => strip(one, labels));
  const [outlines, edges, kept, titles, boxes] = [s("g"), s("g", { "aria-hidden": "true", "marker-end": `url(#${arrow})` }), s("g", { "aria-hidden": "true" }), s("g"), s("g")];
  const element = s("g", {}, s("g", {}, ...strips), outlines, edges, kept, titles, boxes); // titles above the edges, which may cross them; boxes above what is kept
  /** @type {import("./in-sight.js").Parts[]} those first that say most */
  const parts = [
    { group: boxes, parts: boxParts(picture, drawing, said, actions, labels) },
    { group: outlines, parts: frameParts(picture, drawing, (frame, place) => frameOutline(frame, place)) },
    { group: titles, parts: frameParts(picture, drawing, (frame, place) => frameTitle(frame, place, actions, labels)) },
    { group: edges, parts: edgeParts(picture, drawing) },
    { group: kept, parts: drawing.strips ? savedParts(picture, drawing, labels) : [] },
  ];
  return { element, parts };
}

/** @param {Picture} picture @param {Drawing} drawing @param {(frame: Frame, place: Rectangle) => SVGElement} make @returns {import("./in-sight.js").Part[]} */
function frameParts({ frames }, drawing, make) {
  return outsideIn(frames).flatMap((frame) => {
    const place = drawing.frames.get(frame.name);
    return place ? [{ place, make: () => make(frame, place) }] : [];
  });
}

/** @param {Picture} picture @param {Drawing} drawing @param {Labels} labels @returns {import("./in-sight.js").Part[]} */
function savedParts(picture, drawing, labels) {
  const place = (/** @type {string} */ name) => drawing.boxes.get(name) ?? drawing.frames.get(name);
  return saved(picture).flatMap((one) => {
    const [from, to] = [place(one.forward), place(one.backward)];
    return from && to ? [{ place: around(from, to), make: () => savedElement(one, from, to, drawing, labels) }] : [];
  });
}

/** @param {Picture} picture @param {Drawing} drawing @param {Said} said @param {Actions} actions @param {Labels} labels @returns {import("./in-sight.js").Part[]} */
function boxParts({ boxes }, drawing, { words, overlaid }, actions, labels) {
  return boxes.flatMap((box) => {
    const [place, text] = [drawing.boxes.get(box.name), words.get(box.name)];
    return place && text ? [{ place, make: () => boxElement(box, text, overlaid.get(box.name), place, actions, labels) }] : [];
  });
}

/** @param {Picture} picture @param {Drawing} drawing @returns {import("./in-sight.js").Part[]} */
function edgeParts(picture, drawing) {
  const lane = laneNumbers(picture, drawing);
  const updates = new Set(picture.boxes.filter((box) => box.lane === "update").map(({ name }) => name));
  return [...picture.edges].flatMap(([key, edge]) => {
    const { source, target } = edge;
    const [path, from, to] = [drawing.edges.get(key), drawing.boxes.get(source), drawing.boxes.get(target)];
    if (!path || !from || !to) return [];
    const across = lane(source) !== lane(target) || (drawing.strips && updates.has(target) && !updates.has(source));
    const stroke = strokeOf(edge, Boolean(across));
    return [{ place: around(from, to), make: () => edgeElement(path, edge, stroke), line: new EdgeLine(path, [source, target], stroke.join()) }];
  });
}

/** @param {Rectangle} a @param {Rectangle} b @returns {Rectangle} */
function around(a, b) {
  const [x, y] = [Math.min(a.x, b.x), Math.min(a.y, b.y)];
  return { x, y, width: Math.max(a.x + a.width, b.x + b.width) - x, height: Math.max(a.y + a.height, b.y + b.height) - y };
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

/** @param {import("./layered-layout.js").Strip} place @param {Labels} labels */
function strip({ lane, title, x, y, width, height }, labels) {
  const said = title && labels.add(label({ size: 11, full: title, width: width - 12, height: 15 }, x + 8, y + 13));
  return s("g", { class: `ll-strip ll-strip-${lane}` }, s("rect", { x, y, width, height, rx: 6 }), said);
}

/**
 * The dotted line from a box to its gradient, with what is kept for it.
 * @param {import("./lanes.js").Saved} saved @param {Rectangle} from @param {Rectangle} to @param {Drawing} drawing @param {Labels} labels
 */
function savedElement({ forward, backward, bytes: kept }, from, to, drawing, labels) {
  const down = to.y > from.y + from.height;
  const [x, y] = down ? [from.x + from.width / 2, from.y + from.height] : [from.x + from.width, from.y + from.height / 2];
  const [toX, toY] = down ? [to.x + to.width / 2, to.y] : [to.x, to.y + to.height / 2];
  const text = bytes(kept);
  const gap = gapBefore(to, drawing, down);
  const [middleX, middleY] = down ? [(x + toX) / 2, gap ?? (y + toY) / 2] : [gap ?? (x + toX) / 2, (y + toY) / 2];
  const width = 6.7 * text.length + 6;
  const room = down ? toY - y >= 14 : toX - x >= width - 8;
  return s(
    "g",
    { class: "ll-saved", dataset: { forward, backward } },
    s("title", {}, `${text} kept for the backward pass`),
    s("path", { d: `M${x},${y} L${toX},${toY}`, "stroke-width": 1 + Math.log10(1 + kept / 1000) }),
    room && s("rect", { x: middleX - width / 2, y: middleY - 8, width, height: 15, rx: 4 }),
    room && labels.add(label({ full: text, size: 11 }, middleX, middleY + 4, { "text-anchor": "middle" })),
  );
}

/** The middle of the gap before the lane that a place is in, above it or to the left: there it hides no name of a lane. @param {Rectangle} place @param {Drawing} drawing @param {boolean} down */
function gapBefore(place, { strips = [] }, down) {
  const strip = stripAt(place, strips);
  const [start, end] = [(/** @type {Rectangle} */ one) => (down ? one.y : one.x), (/** @type {Rectangle} */ one) => (down ? one.y + one.height : one.x + one.width)];
  const before = strip ? strips.map(end).filter((one) => one <= start(strip)) : [];
  return strip && before.length ? (Math.max(...before) + start(strip)) / 2 : null;
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

/** The frame's title: closes a group or a call, chooses a fusion group. @param {Frame} frame @param {Rectangle} place @param {Actions} actions @param {Labels} labels */
function frameTitle({ name, label: said, fused }, { x, y, width }, actions, labels) {
  const text = `${fused ? GLYPHS.fused : "⊟"} ${shortened(said, 48)}`;
  const short = `${text.split(" ", fused ? 3 : 2).join(" ")}`.replace(/:$/, ""); // "◉ fused 1"
  const act = fused ? () => actions.select(name) : () => actions.toggle(name);
  return s(
    "g",
    { class: `ll-close${fused ? " ll-fused-title" : ""}`, role: "button", "aria-label": fused ? said : `Close ${said}`, onclick: act, dataset: { title: name } },
    s("rect", { x: x + 4, y: y + 3, width: Math.min(width - 8, 6.7 * text.length + 10), height: 16, rx: 4 }), // edges pass behind it
    ...labels.stack([label({ width: width - 10, height: 60, size: 11, full: text, short }, x + 9, y + 14)], { top: y, height: TITLE_HEIGHT }),
    s("title", {}, fused ? said : `Close ${said}`),
  );
}

/** The classes of an edge, and its width where it carries bytes. @param {import("./visible-boxes.js").Edge} edge @param {boolean} across whether it leads into another lane */
function strokeOf({ count, again, bytes: carried }, across) {
  const width = carried ? Math.min(1.2 + Math.log10(1 + carried / 1000) * 0.8, 5).toFixed(1) : "";
  const of = { "ll-several": count > 1 && !carried, "ll-again": again, "ll-across": across };
  const classes = Object.entries(of).filter(([, has]) => has).map(([name]) => ` ${name}`);
  return [classes.join(""), width];
}

/** @param {string} path @param {import("./visible-boxes.js").Edge} edge @param {string[]} stroke */
function edgeElement(path, { source, target, count, again, bytes: carried }, [classes, width]) {
  const said = [count > 1 ? `${count} values` : "", carried ? bytes(carried) : "", again].filter(Boolean).join(", ");
  return s("path", { class: `ll-edge${classes}`, d: path, style: width && { "stroke-width": `${width}px` }, dataset: { source, target } }, said && s("title", {}, said));
}

/** @param {Box} box @param {Words} words @param {import("./overlays.js").Told | undefined} told @param {Rectangle} place @param {Actions} actions @param {Labels} labels */
function boxElement(box, { title, detail, kind, full, mark, tags }, told, { x, y, width, height }, actions, labels) {
  const round = kind === "input" || kind === "decision" || kind === "output" || kind === "constant";
  const { opens } = box;
  const where = actions.where(box);
  const name = `${GLYPHS[kind]} ${title}`.trim();
  const spoken = [kind === "op" ? "" : KINDS[kind], full, where, opens ? "closed, Enter opens it" : ""];
  const lines = [
    { kind: "ll-name", width: width - 4, height: height - 6, size: 12, full: name },
    ...(detail ? [{ kind: "ll-detail", ...(told ? toldLabel(detail, width) : { size: 11, full: detail }) }] : []),
    ...(tags ? [{ kind: "ll-tags", size: 11, full: tags }] : []),
  ];
  const state = `${mark ? ` ll-${mark === "pruned" ? "gone" : "changed"}` : ""}${isUnmeasured(told) ? " ll-unmeasured" : ""}`;
  return s(
    "g",
    {
      class: `ll-box ll-${kind}${state}`, role: "button", tabindex: -1, "aria-label": spoken.filter(Boolean).join(", "), "aria-pressed": false,
      dataset: { box: box.name }, transform: `translate(${x},${y})`, onclick: () => actions.select(box.name),
      ondblclick: opens ? () => actions.toggle(box.name) : null,
    },
    s("rect", { class: "ll-outline", width, height, rx: round ? Math.min(height / 2, 19) : 5 }),
    ...labels.stack(lines.map(({ kind, ...said }, i) => label(said, width / 2, 16 + 14 * i, { class: kind })), { top: 0, height: height - (told?.share ? BAR + 1 : 0) }),
    s("title", {}, [full, where, ...(box.tags ?? []).slice(0, 20)].filter(Boolean).join("\n")),
    opens && opener(box.name, width, actions),
    shareElement(told, { x, y, width, height }),
  );
}

/**
 * A text that is there at the scales at which it can be read; without a width, at its own size only.
 * @param {{full: string, size: number, short?: string, width?: number, height?: number}} said @param {number} x @param {number} y where it is at scale 1
 * @param {import("../dom.js").Properties} [properties]
 */
function label(said, x, y, properties) {
  return { width: 0, height: 0, y, ...said, element: s("text", { x, y, ...properties }, said.full) };
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
