// The trace-cache view: a table of entries for each function, the newest marked.

import { button, h, s } from "../dom.js";
import { bytes, counted, joinedArrows, number, seconds, shortened, sum } from "../format.js";
import { lent } from "../lent.js";
import { marked } from "../cards/card.js";
import { called, merged } from "../tables/cache-rows.js";
import { HEIGHT, line, WIDTH } from "../tables/sparkline.js";
import { bar, emptyState, widget } from "../tables/table-view.js";
import { moved } from "../tables/virtual-list.js";
import { whatIf } from "../tables/what-if.js";
import { atLine, selected } from "../selection.js";

const AT_FIRST = 30; // entries of a function that are shown until all are asked for
const WHY = "why it was traced";
const COLUMNS = ["trace", "arguments", WHY, "hits", "last used", "traced in", "ops", "size", "device", "runs on"];
const SIZE = "what a trace keeps alive: constants, and tensors found outside";
const FOLDED = 120; // characters of a list of arguments that are shown without asking
const NUMBERS = new Set(["hits", "traced in", "ops", "size"]);
const MORE = new Set(["last used", "size", "device", "runs on"]); // told below the others where a view is narrow

/**
 * @typedef {object} Entry
 * @property {number} index @property {string} signature @property {string} arguments what matters of it @property {string} reason @property {number} hits
 * @property {number | null} used when it was, in seconds since 1970, as far as that was seen
 * @property {number | null} seconds @property {number | null} nbytes @property {number | null} nodes
 * @property {string} device @property {string} tier @property {[string, number, string] | null} line
 * @property {string} state "tracing" or "ready"
 *
 * @typedef {{id: number, name: string, example: string, entries: Entry[], hidden: number, hits: number}} Cached
 * @typedef {(one: [number, number], beside: boolean) => void} Choose
 */

/**
 * A trace is chosen by its number, another beside it with Shift, Control or Command: graphs of the function show the one
 * that is chosen, and of two it is said what distinguishes them.
 * @param {HTMLElement} root @param {(message: any) => void} tell
 */
function build(root, tell) {
  const content = h("div", { class: "ll-scroll" });
  const empty = emptyState(content);
  const title = h("span", { class: "ll-title" });
  const diff = h("div", { class: "ll-details ll-row-detail", role: "group", "aria-label": "What distinguishes two traces", "aria-live": "polite" });
  /** @type {[number, number][]} function and index */
  let chosen = [];
  const status = h("span", { class: "ll-quiet", role: "status" });
  const box = whatIf(tell);
  const pace = h("span", { class: "ll-pace" });
  root.append(h("div", { class: "ll-bar" }, title, pace, h("span", { class: "ll-spring" }), status), box.element, empty.sentence, content, diff);
  const all = new Set();
  /** @type {Set<string>} entries whose arguments are unfolded; updates must not fold them */
  const unfolded = new Set();
  let last = "";
  const draw = (/** @type {any} */ state) => {
    const traces = sum(state.functions.map((/** @type {Cached} */ f) => f.entries.length + f.hidden));
    const names = [...new Set(state.functions.map((/** @type {Cached} */ f) => f.name))].join(", ");
    const hits = sum(state.functions.map((/** @type {Cached} */ f) => f.hits));
    const words = `${counted(traces, "trace")}, ${counted(hits, "hit")}`;
    title.replaceChildren(h("b", {}, names || "Trace cache"), " ", h("span", { class: "ll-quiet" }, words));
    pace.replaceChildren(...paceOf(state.pace ?? []));
    empty.say(state.empty);
    const focused = /** @type {HTMLElement | null} */ (content.contains(document.activeElement) ? document.activeElement : null)?.closest("[data-trace]")?.getAttribute("data-trace") ?? undefined;
    chosen = state.chosen;
    box.element.hidden = !state.functions.length;
    box.show(state.what_if, state.functions[0]?.example ?? "f(x)");
    const choose = (/** @type {[number, number]} */ one, /** @type {boolean} */ beside) => {
      const others = chosen.filter((other) => String(other) !== String(one));
      chosen = beside ? [...others, one].slice(-2) : [one];
      tell({ type: "chosen", traces: chosen });
      if (chosen.length === 1) selected(content, { trace: one });
    };
    const showAll = (/** @type {number} */ id) => (all.add(id), draw(state));
    content.replaceChildren(...state.functions.map((/** @type {Cached} */ f) => table(f, state, all.has(f.id), showAll, unfolded, choose)));
    roving(content, focused);
    diff.hidden = !state.diff;
    if (state.diff) diff.replaceChildren(h("p", {}, state.diff.sentence), ...state.diff.tables.map(differences));
    const newest = String(state.newest);
    if (newest !== last && last) {
      status.textContent = announcement(state);
      const row = /** @type {HTMLElement | null} */ (content.querySelector(".ll-newest"));
      if (row) content.scrollTop = Math.max(row.offsetTop + row.offsetHeight - content.clientHeight, 0);
    }
    last = newest;
  };
  return draw;
}

/** One of the rows is reached by Tab, the others by the arrows; Enter opens a trace. @param {HTMLElement} content @param {string} [focused] */
function roving(content, focused) {
  const rows = /** @type {HTMLElement[]} */ ([...content.querySelectorAll("[data-trace]")]);
  const first = rows.find((one) => one.dataset.trace === focused) ?? rows.find((one) => one.ariaSelected === "true") ?? rows[0];
  rows.forEach((one, at) => {
    one.tabIndex = one === first ? 0 : -1;
    one.addEventListener("keydown", (event) => {
      if (event.target !== one) return;
      const next = moved(event.key, at, 10, rows.length);
      if (event.key === "Enter" || event.key === " ") /** @type {HTMLElement | null} */ (one.querySelector("button"))?.dispatchEvent(new MouseEvent("click", { shiftKey: event.shiftKey, ctrlKey: event.ctrlKey }));
      else if (next === null) return;
      else {
        one.tabIndex = -1;
        rows[next].tabIndex = 0;
        rows[next].focus();
      }
      event.preventDefault();
      event.stopPropagation();
    });
  });
  if (focused) first?.focus({ preventScroll: true });
}

/** @param {{name: string, columns: string[], rows: string[][]}} table */
function differences({ name, columns, rows }) {
  const head = h("tr", {}, ...columns.map((column) => h("th", { scope: "col" }, column)));
  const body = rows.map((row) => h("tr", {}, ...row.map((cell, at) => h("td", { class: "ll-arguments" }, h("code", {}, columns[at] === "what" ? joinedArrows(cell) : cell)))));
  return h("table", { class: "ll-table" }, h("caption", {}, name), h("thead", {}, head), h("tbody", {}, ...body));
}

/** @param {any} state */
function announcement({ functions, newest, places }) {
  if (!newest) return "";
  const found = functions.find((/** @type {Cached} */ f) => f.id === newest[0]);
  return found ? `new: trace #${newest[1] + 1} of ${called(found, places)}` : "";
}

/**
 * @param {Cached} cached @param {any} state @param {boolean} all @param {(id: number) => void} showAll
 * @param {Set<string>} unfolded @param {Choose} choose
 */
function table(cached, state, all, showAll, unfolded, choose) {
  const sorted = state.sort !== "time"; // what counts most is then at the top
  const shown = all ? cached.entries : sorted ? cached.entries.slice(0, AT_FIRST) : cached.entries.slice(-AT_FIRST);
  const most = Math.max(1, ...cached.entries.map(({ hits }) => hits));
  const hidden = cached.entries.length - shown.length;
  const caption = [h("b", {}, called(cached, state.places)), `  ${counted(cached.entries.length + cached.hidden, "trace")}, ${counted(cached.hits, "hit")}`];
  const isChosen = (/** @type {string} */ key) => state.chosen.some((/** @type {any} */ one) => String(one) === key);
  const rows = shown.flatMap((entry) => {
    const key = `${cached.id},${entry.index}`;
    const pick = (/** @type {MouseEvent} */ event) => choose([cached.id, entry.index], event.shiftKey || event.ctrlKey || event.metaKey);
    return row(entry, key, most, String(state.newest), unfolded, { chosen: isChosen(key), pick });
  });
  const more = hidden ? button("Show all", () => showAll(cached.id), { class: "ll-link" }, `${number(hidden)} ${sorted ? "more" : "older"} traces`) : null;
  const note = cached.hidden ? h("span", {}, `${number(cached.hidden)} older traces are not kept here. `) : null;
  const rest = more || note ? h("tr", {}, h("td", { colspan: COLUMNS.length }, note, more)) : null;
  return h(
    "table",
    { class: "ll-table", role: "grid" },
    h("caption", { class: state.functions.length > 1 ? null : "ll-hidden" }, ...caption),
    h("thead", {}, h("tr", {}, ...COLUMNS.map(heading))),
    h("tbody", {}, sorted ? null : rest, ...rows, sorted ? rest : null),
  );
}

/** The hits of each of the last seconds of use. @param {number[]} pace */
function paceOf(pace) {
  const most = Math.max(0, ...pace);
  if (!most) return [];
  const words = `at most ${counted(most, "hit")} a second in the last ${pace.length} seconds of use`;
  return [s("svg", { class: "ll-spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words }, s("title", {}, words), s("path", { class: "ll-stroke", d: line(pace) })), h("span", { class: "ll-quiet", "aria-hidden": "true" }, `at most ${number(most)} a second`)];
}

/** @param {number | null} used */
const clock = (used) => (used ? new Date(1000 * used).toLocaleTimeString() : "");

/** @param {string} name */
function heading(name) {
  const kinds = [NUMBERS.has(name) && "ll-numeric", name === WHY && "ll-reason", MORE.has(name) && "ll-more"];
  return h("th", { scope: "col", class: kinds.filter(Boolean).join(" ") || null, title: name === "size" && SIZE }, name);
}

/**
 * An entry, and below it why it was traced, for a view that is too narrow for that column, and in a narrower one the rest.
 * @param {Entry} entry @param {string} key @param {number} most @param {string} newestKey @param {Set<string>} unfolded
 * @param {{chosen: boolean, pick: (event: any) => void}} choice
 */
function row(entry, key, most, newestKey, unfolded, { chosen, pick }) {
  const newest = key === newestKey;
  const numeric = (/** @type {any} */ ...content) => h("td", { class: "ll-numeric" }, ...content);
  const tracing = entry.state === "tracing" ? h("span", { class: "ll-badge" }, "tracing…") : null;
  const badge = newest ? h("span", { class: "ll-badge ll-new" }, "newest") : null;
  const hint = "Show this trace in the graph; with Shift, compare it with the chosen one";
  const properties = { class: "ll-link", title: hint, "aria-label": `trace #${entry.index + 1}`, "aria-pressed": chosen, tabindex: -1, onclick: pick };
  const number_ = button("", () => undefined, properties, `#${entry.index + 1}`);
  const why = () => [...marked(entry.reason), entry.line?.[2] ? h("code", { class: "ll-where" }, entry.line[2]) : null];
  const rest = h("span", { class: "ll-quiet ll-rest" }, [entry.used && `last used ${clock(entry.used)}`, `keeps ${bytes(entry.nbytes)}`, `device ${entry.device}`, `runs on ${entry.tier}`].filter(Boolean).join(" · "));
  const narrow = h("tr", { class: ["ll-why", newest && "ll-newest", !entry.reason && "ll-bare"].filter(Boolean).join(" ") },
    h("td", { colspan: COLUMNS.length - 1 }, h("div", {}, ...why(), rest)));
  const element = h(
    "tr",
    { class: [newest && "ll-newest", chosen && "ll-chosen"].filter(Boolean).join(" ") || null, dataset: { entry: entry.index, trace: key, at: atLine(entry.line) ?? "" },
      tabindex: -1, "aria-selected": chosen, "aria-label": `trace #${entry.index + 1}, ${entry.arguments}, ${counted(entry.hits, "hit")}` },
    h("th", { scope: "row" }, newest ? "▸ " : "", number_, " ", badge),
    h("td", { class: "ll-arguments" }, signature(entry, key, unfolded), tracing),
    h("td", { class: "ll-reason" }, ...why()),
    numeric(bar(entry.hits / most, number(entry.hits))),
    h("td", { class: "ll-more" }, clock(entry.used) || "–"),
    numeric(seconds(entry.seconds)),
    numeric(entry.nodes === null ? "–" : number(entry.nodes)),
    h("td", { class: "ll-numeric ll-more" }, bytes(entry.nbytes)),
    h("td", { class: "ll-more" }, entry.device),
    tierCell(entry.tier),
  );
  return [element, narrow];
}

/**
 * What a trace runs on, and below it how far it is compiled, or why it is not.
 * @param {string} tier "loops, compiling…", "kept on plan: compiled, it was no faster"
 */
function tierCell(tier) {
  const [, kept, name, progress] = /^(kept on )?([^,:]*)[,:]? ?(.*)$/.exec(tier) ?? ["", "", tier, ""];
  if (!progress) return h("td", { class: "ll-more" }, tier);
  const going = /…$/.test(progress) ? "ll-badge ll-going" : "ll-progress";
  return h("td", { class: "ll-tier ll-more" }, kept ? `stays on ${name}` : name, h("span", { class: going }, progress));
}

/**
 * Arguments that say little, and a long list of them, are folded: all of it is shown when asked for.
 * @param {Entry} entry @param {string} key @param {Set<string>} unfolded
 */
function signature({ signature: text, arguments: brief }, key, unfolded) {
  if (brief === text && text.length <= FOLDED) return h("code", {}, text || "–");
  const ontoggle = (/** @type {any} */ event) => (event.target.open ? unfolded.add(key) : unfolded.delete(key));
  const summary = h("summary", {}, h("code", {}, shortened(brief, FOLDED)));
  return h("details", { open: unfolded.has(key), ontoggle }, summary, h("code", {}, text));
}

export default lent(widget("cache", "Trace cache", build, merged));
