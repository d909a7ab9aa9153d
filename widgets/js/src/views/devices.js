// The devices view: live bytes against the peak, their recent history, ops that ran, and every kind of copy.

import { h, s } from "../dom.js";
import { bytes, counted, number, seconds } from "../format.js";
import { lent } from "../lent.js";
import { HEIGHT, line, WIDTH } from "../tables/sparkline.js";
import { lineCell, widget } from "../tables/table-view.js";

/**
 * @typedef {object} Device
 * @property {string} name @property {string} full @property {number} live @property {number} peak
 * @property {number} ops @property {number} calls of staged functions @property {number} seconds @property {Float32Array} history @property {number} history_seconds
 *
 * @typedef {object} Copy
 * @property {string} from @property {string} to @property {string} cause @property {[string, number, string] | null} line
 * @property {number} count @property {number} nbytes
 */

/** @param {HTMLElement} root */
function build(root) {
  const title = h("span", { class: "ll-title" });
  const cards = h("div", { class: "ll-cards" });
  const copies = h("div", { class: "ll-scroll" });
  root.append(h("div", { class: "ll-bar" }, title), cards, copies);
  return (/** @type {any} */ state) => {
    const most = Math.max(1, ...state.devices.map((/** @type {Device} */ device) => device.peak));
    const live = state.devices.reduce((/** @type {number} */ sum, /** @type {Device} */ device) => sum + device.live, 0);
    const words = `${counted(state.devices.length, "device")}, ${bytes(live)} live`;
    title.replaceChildren(h("b", {}, "Devices"), " ", h("span", { class: "ll-quiet" }, words));
    cards.replaceChildren(...state.devices.map((/** @type {Device} */ device) => card(device, most)));
    copies.replaceChildren(copyTable(state));
  };
}

/** @param {Device} device @param {number} most the highest peak of all devices */
function card(device, most) {
  const share = (/** @type {number} */ value) => `${((100 * value) / most).toFixed(1)}%`;
  return h(
    "div",
    { class: "ll-card", title: device.full, role: "group", "aria-label": device.name },
    h("h4", {}, device.name),
    h(
      "div",
      { class: "ll-meter", role: "meter", "aria-label": `Live bytes on ${device.name}`, "aria-valuemin": 0, "aria-valuemax": most,
        "aria-valuenow": device.live, "aria-valuetext": `${bytes(device.live)}, peak ${bytes(device.peak)}` },
      h("span", { class: "ll-fill", style: { "inline-size": share(device.live) } }),
      h("span", { class: "ll-peak", style: { "inset-inline-start": share(device.peak) } }),
    ),
    h(
      "dl",
      { class: "ll-figures" },
      ...figure("live", bytes(device.live)),
      ...figure("peak", `▏${bytes(device.peak)}`),
      ...figure("eager ops", number(device.ops)),
      ...figure("in all", seconds(device.seconds)),
      ...figure("staged calls", number(device.calls)),
    ),
    sparkline(device),
  );
}

/** @param {string} name @param {string} value */
function figure(name, value) {
  return [h("dt", {}, name), h("dd", {}, value)];
}

/** @param {Device} device */
function sparkline({ name, history, history_seconds }) {
  const label = `Live bytes on ${name} during the last ${seconds(history_seconds)}`;
  return s(
    "svg",
    { class: "ll-spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    s("path", { class: "ll-area", d: `${line(history)} L${WIDTH},${HEIGHT} L0,${HEIGHT} Z` }),
    s("path", { class: "ll-stroke", d: line(history) }),
  );
}

/** @param {{copies: Copy[], copied: number, copied_bytes: number, unlisted: number}} state */
function copyTable({ copies, copied, copied_bytes, unlisted }) {
  if (!copied) return h("p", { class: "ll-empty" }, "No copies between devices since this view was opened.");
  const columns = ["copied", "bytes", "times", "why", "line"];
  const rows = copies.map((copy) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, `${copy.from} → ${copy.to}`),
      h("td", { class: "ll-numeric" }, bytes(copy.nbytes)),
      h("td", { class: "ll-numeric" }, number(copy.count)),
      h("td", {}, copy.cause),
      h("td", {}, lineCell(copy.line)),
    ),
  );
  const rest = unlisted ? `, ${number(unlisted)} of them not listed` : "";
  const caption = `${counted(copied, "copy", "copies")}, ${bytes(copied_bytes)}${rest}`;
  const head = columns.map((name) => h("th", { scope: "col", class: name === "bytes" || name === "times" ? "ll-numeric" : null }, name));
  return h("table", { class: "ll-table" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
}

export default lent(widget("devices", "Devices", build));
