// The devices view: live bytes against the peak, their recent history, ops that ran, and every kind of copy.

import { h, s } from "../dom.js";
import { bytes, counted, number, seconds, sum } from "../format.js";
import { lent } from "../lent.js";
import { atLine } from "../selection.js";
import { HEIGHT, line, momentAt, WIDTH } from "../tables/sparkline.js";
import { lineCell, widget } from "../tables/table-view.js";

/**
 * @typedef {object} Device
 * @property {string} name @property {string} full @property {number} live @property {number} peak @property {boolean} exact
 * @property {number} ops @property {number} calls of staged functions @property {number} seconds @property {Float32Array} history @property {number} history_seconds
 *
 * @typedef {object} Copy
 * @property {string} from @property {string} to @property {string} what @property {string} cause @property {string} fix
 * @property {[string, number, string] | null} line @property {number} count @property {number} nbytes @property {number} seconds
 */

/** @param {HTMLElement} root */
function build(root) {
  const title = h("span", { class: "ll-title" });
  const cards = h("div", { class: "ll-cards" });
  const copies = h("div", { class: "ll-scroll" });
  const note = h("p", { class: "ll-quiet ll-hint" });
  root.append(h("div", { class: "ll-bar" }, title), cards, note, copies);
  /** @type {Map<string, number>} what the reader points at in a timeline, by device: 0 is the oldest moment, 1 is now */
  const pointed = new Map();
  const draw = (/** @type {any} */ state) => {
    const focused = /** @type {HTMLElement | null} */ (cards.contains(document.activeElement) ? document.activeElement : null)?.closest(".ll-card")?.getAttribute("aria-label");
    const point = (/** @type {string} */ name, /** @type {number} */ share) => (pointed.set(name, Math.min(Math.max(share, 0), 1)), draw(state));
    const most = Math.max(1, ...state.devices.map((/** @type {Device} */ device) => device.peak));
    const live = sum(state.devices.map((/** @type {Device} */ device) => device.live));
    const words = `${counted(state.devices.length, "device")}, ${bytes(live)} live`;
    title.replaceChildren(h("b", {}, "Devices"), " ", h("span", { class: "ll-quiet" }, words));
    cards.replaceChildren(...state.devices.map((/** @type {Device} */ device) => card(device, most, pointed.get(device.name), point)));
    for (const one of cards.children) if (focused && one.getAttribute("aria-label") === focused) /** @type {HTMLElement | null} */ (one.querySelector("[role=slider]"))?.focus({ preventScroll: true });
    note.textContent = state.note;
    copies.replaceChildren(copyTable(state));
  };
  return draw;
}

/** @typedef {(name: string, share: number) => void} Point */

/** @param {Device} device @param {number} most the highest peak of all devices @param {number | undefined} pointed @param {Point} point */
function card(device, most, pointed, point) {
  const share = (/** @type {number} */ value) => `${((100 * value) / most).toFixed(1)}%`;
  return h(
    "div",
    { class: "ll-card", title: device.full, role: "group", "aria-label": device.name },
    h("h4", {}, device.name),
    h(
      "div",
      { class: "ll-meter", role: "meter", "aria-label": `Live bytes on ${device.name}`, "aria-valuemin": 0, "aria-valuemax": most,
        "aria-valuenow": device.live, "aria-valuetext": `${bytes(device.live)}, peak ${device.exact ? "" : "at least "}${bytes(device.peak)}` },
      h("span", { class: "ll-fill", style: { "inline-size": share(device.live) } }),
      h("span", { class: "ll-peak", style: { "inset-inline-start": share(device.peak) } }),
    ),
    h(
      "dl",
      { class: "ll-figures" },
      ...figure("live", bytes(device.live)),
      ...figure("peak", `▏${device.exact ? "" : "≥ "}${bytes(device.peak)}`),
      ...figure("eager ops", number(device.ops)),
      ...figure("time in ops", seconds(device.seconds)),
      ...figure("staged calls", number(device.calls)),
    ),
    device.peak ? timeline(device, pointed, point) : h("p", { class: "ll-quiet" }, "Nothing has lived here yet."),
  );
}

/** @param {string} name @param {string} value */
function figure(name, value) {
  return [h("dt", {}, name), h("dd", {}, value)];
}

/**
 * Live bytes of late; a click, or the arrow keys, ask for a moment of it.
 * @param {Device} device @param {number | undefined} pointed @param {Point} point
 */
function timeline(device, pointed, point) {
  const { name, history, history_seconds } = device;
  const most = history.reduce((a, b) => Math.max(a, b), 1);
  const label = `Live bytes on ${name} during the last ${seconds(history_seconds)}, at most ${bytes(most)}`;
  const { last, at, ago, words } = momentAt(device, pointed);
  const x = ((at + 0.5) * WIDTH) / (last + 1);
  const picture = s(
    "svg",
    { class: "ll-spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true", preserveAspectRatio: "none" },
    s("path", { class: "ll-area", d: `${line(history)} L${WIDTH},${HEIGHT} L0,${HEIGHT} Z` }),
    s("path", { class: "ll-stroke", d: line(history) }),
    pointed === undefined ? null : s("line", { class: "ll-moment", x1: x, x2: x, y1: 0, y2: HEIGHT }),
  );
  const onclick = (/** @type {MouseEvent} */ event) => {
    const { left, width } = picture.getBoundingClientRect();
    point(name, (event.clientX - left) / Math.max(width, 1));
  };
  const onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const to = /** @type {Record<string, number>} */ ({ ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last })[event.key];
    if (to === undefined) return;
    point(name, last ? to / last : 1);
    event.preventDefault();
    event.stopPropagation();
  };
  const value = { "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": at, "aria-valuetext": words };
  const mark = (/** @type {string} */ place, /** @type {string} */ text) => h("span", { class: `ll-axis-${place}` }, text);
  const axes = [mark("top", bytes(most)), mark("bottom", "0 B"), mark("start", `−${seconds(history_seconds)}`), mark("end", "now")];
  const slider = h("div", { class: "ll-timeline", role: "slider", tabindex: "0", "aria-label": label, ...value, onclick, onkeydown }, picture, ...axes);
  if (pointed === undefined) return slider;
  const told = ["What lived then: ", h("code", {}, `%devices --live ${ago.toPrecision(2)}`), ", where ", h("code", {}, "%devices --watch"), " had begun."];
  return h("div", {}, slider, h("p", { class: "ll-quiet ll-asked" }, h("b", {}, words), ". ", ...told));
}

/** @param {{copies: Copy[], copied: number, copied_bytes: number, unlisted: number}} state */
function copyTable({ copies, copied, copied_bytes, unlisted }) {
  if (!copied) return h("p", { class: "ll-empty" }, "No copies between devices yet.");
  const columns = ["copied", "tensor", "bytes", "times", "took", "why", "line"];
  const numeric = new Set(["bytes", "times", "took"]);
  const rows = copies.map((copy) =>
    h(
      "tr",
      { dataset: { at: atLine(copy.line) ?? "" } },
      h("th", { scope: "row" }, `${copy.from} → ${copy.to}`),
      h("td", {}, h("code", {}, copy.what)),
      h("td", { class: "ll-numeric" }, bytes(copy.nbytes)),
      h("td", { class: "ll-numeric" }, number(copy.count)),
      h("td", { class: "ll-numeric" }, seconds(copy.seconds)),
      h("td", { class: "ll-cause" }, copy.cause, copy.fix ? h("span", { class: "ll-where" }, copy.fix) : null),
      h("td", {}, lineCell(copy.line)),
    ),
  );
  const rest = unlisted ? `, ${number(unlisted)} of them not listed` : "";
  const caption = `${counted(copied, "copy", "copies")}, ${bytes(copied_bytes)}${rest}`;
  const head = columns.map((name) => h("th", { scope: "col", class: numeric.has(name) ? "ll-numeric" : null }, name));
  return h("table", { class: "ll-table" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
}

export default lent(widget("devices", "Devices", build));
