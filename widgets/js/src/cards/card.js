// A card: one for each "why?", with the same parts, in the same order, as limelight_widgets/figures/explain.py writes.

import { button, h } from "../dom.js";
import { joinedArrows, number } from "../format.js";
import { cellOf, copied, insertable, insertBelow, showLine } from "./notebook.js";

/**
 * @typedef {object} Place @property {string} role @property {string} label @property {string} [file]
 * @property {number} [line] @property {string} [code]
 * @typedef {object} Story
 * @property {string} kind @property {string} title @property {string[]} causes @property {string[]} said
 * @property {{what: string, before: string, after: string, detail: string}[]} contrasts @property {number} unlisted
 * @property {string} cost @property {number} count @property {string} total @property {Place[]} places
 * @property {string[]} hints @property {{place: string, code: string, cell: string}[]} fixes @property {string[]} advice
 * @property {string[]} more
 */

/** @type {Record<string, [string, string]>} */
const HEADS = {
  NaN: ["operands", "result"],
  "baked value": ["in the trace", "now"],
  trace: ["closest trace", "this call"],
  retrace: ["closest trace", "this call"],
  "what if": ["closest trace", "this call"],
  copy: ["from", "to"],
  difference: ["first trace", "second trace"],
};
const WHOLE = 24; // characters of a value that is not broken, as a shape: the columns have room for two of these
/** @type {Record<string, string>} */
const ROLES = { call: "at", line: "at", made: "made at", closest: "closest", trace: "trace" };

/** @param {Story} story @param {(words: string) => void} say */
export function card(story, say) {
  const title = story.title.charAt(0).toUpperCase() + story.title.slice(1);
  return h(
    "article",
    { class: "ll-story", "aria-label": `${story.kind}: ${title.replaceAll("`", "")}` },
    h("div", { class: "ll-story-head" }, h("h4", {}, ...marked(title)), chips(story)),
    story.total && h("p", { class: "ll-quiet" }, ...marked(story.total)),
    ...story.said.filter((said) => !story.causes.includes(said)).map((said) => h("p", {}, ...marked(said))),
    contrasts(story),
    places(story.places),
    ...story.hints.map((hint) => h("p", {}, ...marked(hint))),
    ...fixes(story, say),
    ...folded("more", story.more),
  );
}

/** @param {Story} story */
function chips({ kind, causes, count, cost, total }) {
  const chip = (/** @type {string} */ words, /** @type {string} */ name) => h("li", { class: `ll-chip ${name}` }, words);
  return h(
    "ul",
    { class: "ll-chips", "aria-label": "Kind, causes and cost" },
    chip(kind, "ll-chip-kind"),
    ...causes.filter((cause) => cause !== kind).map((cause) => chip(cause, "")),
    !total && count > 1 && chip(`${number(count)} times`, ""),
    !total && cost && chip(`cost ${cost}`, ""),
  );
}

/** Before and after, side by side. @param {Story} story */
function contrasts({ kind, contrasts: rows, unlisted }) {
  if (!rows.length) return null;
  const [before, after] = HEADS[kind] ?? ["before", "after"];
  const detailed = rows.some((row) => row.detail);
  const compared = rows.some((row) => row.before);
  const head = (/** @type {string} */ name) => h("th", { scope: "col" }, name);
  const cell = (/** @type {string} */ text) => h("td", {}, text ? h("code", { class: text.length <= WHOLE ? "ll-whole" : "" }, text) : "");
  return h(
    "table",
    { class: "ll-contrast" },
    h("thead", {}, h("tr", {}, h("td", {}), compared && head(before), head(after), detailed && h("td", {}))),
    h(
      "tbody",
      {},
      ...rows.map((row) =>
        h("tr", {}, h("th", { scope: "row" }, ...marked(row.what)), compared && cell(row.before), cell(row.after), detailed && h("td", {}, ...marked(row.detail))),
      ),
      unlisted > 0 && h("tr", {}, h("td", { class: "ll-quiet" }, `and ${number(unlisted)} more`)),
    ),
  );
}

/** @param {Place[]} all */
function places(all) {
  if (!all.some(({ label }) => label)) return null;
  return h(
    "p",
    { class: "ll-places" },
    ...all.filter(({ label }) => label).map((place) => h("span", { class: "ll-place" }, h("span", { class: "ll-quiet" }, `${ROLES[place.role] ?? place.role} `), ...linked(place))),
  );
}

const CELL_LINE = /In\[\d+\](?: line |:)(\d+)/;

/** A place with a link to its line, where the page has the cell. @param {Place} place */
function linked({ label, code }) {
  const match = CELL_LINE.exec(label);
  const shown = code ? [h("code", {}, code)] : [];
  if (!match) return [label, ...shown];
  const name = match[0].slice(0, match[0].indexOf("]") + 1);
  const go = (/** @type {Event} */ event) => {
    event.preventDefault();
    showLine(link, name, Number(match[1]));
  };
  const link = h("a", { href: "#", class: "ll-link", title: "Show this line", onclick: go }, match[0]);
  requestAnimationFrame(() => {
    if (!cellOf(link, name)) link.replaceWith(match[0]); // another notebook's, or a cell that was run again since
  });
  return [label.slice(0, match.index), link, label.slice(match.index + match[0].length), ...shown];
}

/** The fix as code with its buttons; in prose where there is no code. @param {Story} story @param {(words: string) => void} say */
function fixes({ fixes: all, advice }, say) {
  const prose = advice.map((part) => h("p", {}, ...labelled(part)));
  const code = all.map(({ place, code, cell }) => {
    const block = h("pre", { class: "ll-fix-code" }, h("code", {}, code));
    const copy = button("Copy the code", async () => {
      const done = await copied(code);
      copy.textContent = done ? "Copied" : "Select it";
      say(done ? "The code is on the clipboard." : "The page may not write to the clipboard: select the code.");
      if (!done) getSelection()?.selectAllChildren(block);
    }, {}, "Copy");
    const insert = button("Insert the code in a new cell below", async () => {
      say((await insertBelow(insert, cell)) ? "A cell with the code stands below." : "No cell could be inserted.");
    }, { hidden: true }, "Insert below");
    requestAnimationFrame(() => (insert.hidden = !cell || !insertable(insert)));
    const head = h("div", { class: "ll-fix-head" }, h("span", {}, ...labelled(place)), h("span", { class: "ll-spring" }), copy, insert);
    return h("div", { class: "ll-fix" }, head, block);
  });
  return [...prose, ...code];
}

/** "or pass it" as "Or: pass it", all else with "Fix" before it; "at each call" goes on from the word. @param {string} words */
function labelled(words) {
  const [label, said] = words.startsWith("or ") ? ["Or", words.slice(3)] : ["Fix", words];
  const sign = !said ? "" : /^(at|which) /.test(said) ? ", " : ": ";
  return [h("b", {}, `${label}${sign}`), ...marked(said)];
}

/** @param {string} title @param {string[]} lines */
export function folded(title, lines) {
  if (!lines.length) return [];
  return [h("details", { class: "ll-more" }, h("summary", {}, title), ...lines.map((line) => h("p", {}, ...marked(line))))];
}

/** Text with what stands between backticks as code. @param {string} text */
export function marked(text) {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? h("code", {}, part) : joinedArrows(part)));
}
