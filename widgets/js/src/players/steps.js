// Replays a recording of steps in a page that has no kernel: an exported notebook, or one that was opened again.
// The page calls `limelightSteps(root)`: `root` holds the recording as JSON, and gets the player put before its fallback.

/** @typedef {{spec: string, low: number | null, high: number | null, mean: number | null, nans: number, infinities: number,
 *   numbers: string[], rows: number, columns: number, shades: string, sampled: boolean}} Value */
/** @typedef {{kind: string, file: number | null, line: number, text: string, sees: [string, string][], records: string[],
 *   depth: number, value: Value | null}} Step */
/** @typedef {{name: string, sources: [string, number, string[]][], steps: any[][], stops?: number[], counts?: Record<string, string>}} Recording how many steps there are of a kind that was cut, in words */

const KINDS = ["trace", "pass", "run", "backward", "error"];
/** @type {Record<string, string>} */
const TITLES = { trace: "Tracing", pass: "Passes", run: "Run", backward: "Backward", error: "Error" };
const SHADES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
/** @type {Record<string, string[]>} */
const UNUSUAL = { "!": ["nan", "NaN", "×"], "^": ["infinite", "infinity", "+"], "~": ["infinite", "minus infinity", "−"] };
// The colours of a tensor's tile: see figures/heat_map.py.
const SEQUENTIAL = [[27, 31, 75], [0, 114, 178], [60, 180, 165], [240, 228, 66]];
const DIVERGING = [[0, 72, 130], [86, 180, 233], [244, 244, 240], [230, 159, 0], [168, 60, 0]];

/**
 * An element with attributes and children; strings become text, never markup.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(string | Node)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/**
 * A line of the source: of each file there are the lines from its `first` on.
 * @param {Recording} recording
 * @param {number | null} file
 * @param {number} line
 */
function lineOf(recording, file, line) {
  const [, first, lines] = (file === null ? undefined : recording.sources[file]) ?? ["", 1, []];
  return lines[line - first] ?? "";
}

/**
 * The recording, unpacked: see `limelight_widgets.players.steps`.
 * @param {Recording} recording
 * @returns {Step[]}
 */
export function unpacked(recording) {
  return recording.steps.map(([kind, file, line, text, sees, records, value, depth]) => ({
    kind: KINDS[kind], file, line, sees, records, depth,
    text: text ?? lineOf(recording, file, line).trim(),
    value: value && {
      spec: value[0], low: value[1], high: value[2], mean: value[3], nans: value[4], infinities: value[5],
      numbers: value[6], rows: value[7], columns: value[8], shades: value[9], sampled: value[10],
    },
  }));
}

/**
 * The number of the next step after `from` that `wanted` accepts, or -1.
 * @param {Step[]} steps
 * @param {number} from
 * @param {(step: Step) => boolean} wanted
 */
export function following(steps, from, wanted) {
  return steps.findIndex((step, i) => i > from && wanted(step));
}

/** @param {{value: Value | null}} step */
export const hasBadNumbers = (step) => step.value !== null && step.value.nans + step.value.infinities > 0;

/** @param {number | null} number */
function figure(number) {
  return number === null ? "" : Number(number.toPrecision(4)).toString();
}

/** @param {Value} value */
function tile(value) {
  const said = [];
  if (value.low !== null && !value.numbers.length) {
    said.push(`${figure(value.low)} to ${figure(value.high)}, mean ${figure(value.mean)}`);
  }
  if (value.nans) said.push(`${value.nans} NaN`);
  if (value.infinities) said.push(`${value.infinities} infinite`);
  if (value.sampled) said.push("sampled");
  if (value.shades) said.push(key(value));
  const parts = [make("div", { class: "spec" }, value.spec)];
  if (value.numbers.length) parts.push(make("div", { class: "numbers" }, value.numbers.join("  ")));
  if (value.shades) parts.push(picture(value));
  parts.push(make("div", { class: hasBadNumbers({ value }) ? "bad" : "said" }, said.join(", ")));
  return parts;
}

/** @param {Pick<Value, "low" | "high">} value */
const hasBothSigns = ({ low, high }) => low !== null && high !== null && low < 0 && high > 0;

/** What the colours say. @param {Pick<Value, "spec" | "low" | "high">} value */
export function key(value) {
  if (value.spec.startsWith("bool")) return "dark False, bright True";
  return hasBothSigns(value) ? "blue < 0 < orange" : "dark < bright";
}

/**
 * The colour of what lies at a share of the way from the least to the greatest; of both signs zero is in the middle.
 * @param {Pick<Value, "low" | "high">} value @param {number} share
 */
export function colour(value, share) {
  const [low, high] = [Number(value.low), Number(value.high)];
  const most = Math.max(-low, high);
  const anchors = hasBothSigns(value) ? DIVERGING : SEQUENTIAL;
  const place = (hasBothSigns(value) ? (1 + (low / most) * (1 - share) + (high / most) * share) / 2 : share) * (anchors.length - 1);
  const before = Math.min(Math.floor(place), anchors.length - 2);
  return `rgb(${anchors[before].map((part, i) => Math.round(part + (anchors[before + 1][i] - part) * (place - before))).join(", ")})`;
}

/** @param {Value} value */
function picture(value) {
  const grid = make("div", {
    class: "picture", role: "img", style: `grid-template-columns: repeat(${value.columns}, 1fr)`,
    "aria-label": `${value.rows} by ${value.columns} samples, from ${figure(value.low)} to ${figure(value.high)}, ${key(value)}`,
  });
  for (const shade of value.shades) {
    const [kind, title, sign] = UNUSUAL[shade] ?? [];
    grid.append(kind ? make("i", { class: kind, title }, sign) : make("i", { style: `background: ${colour(value, SHADES.indexOf(shade) / 63)}` }));
  }
  return grid;
}

/** @param {[string, string][]} sees */
function pairs(sees) {
  const list = make("dl");
  for (const [name, text] of sees) list.append(make("dt", {}, name), make("dd", {}, text));
  return list;
}

/**
 * @param {string} title
 * @param {...Node} content
 */
function column(title, ...content) {
  return make("section", {}, make("h4", {}, title), ...content);
}

/** @param {string[]} texts */
const lines = (texts) => make("ul", {}, ...texts.map((text) => make("li", {}, text)));
/** @param {string} text */
const nothing = (text) => make("p", { class: "said" }, text);

/**
 * What stands beside the source for one step.
 * @param {Step} step
 */
function shown(step) {
  if (step.kind === "trace") {
    return [
      column("Python sees", step.sees.length ? pairs(step.sees) : nothing("binds no name")),
      column("The graph records", step.records.length ? lines(step.records) : nothing("nothing: Python alone ran this")),
    ];
  }
  if (step.kind === "pass") return [column("The optimiser", make("p", {}, step.text), lines(step.records))];
  if (step.kind === "error") return [column("It failed", make("p", { class: "bad" }, step.text), lines(step.records))];
  const value = step.value ? tile(step.value) : [nothing("no numbers")];
  return [column(step.kind === "run" ? "The op" : "The op of the gradient", make("code", {}, step.text)), column("Its value", ...value, ...(step.records.length ? [lines(step.records)] : []))];
}

/**
 * Scrolls a pane, and nothing around it, so that one of its rows lies in its middle.
 * @param {Pick<HTMLElement, "clientHeight" | "scrollTop">} pane one that is positioned: its rows' offsets are from its own top
 * @param {Pick<HTMLElement, "offsetTop" | "offsetHeight">} row
 */
export function centre(pane, row) {
  pane.scrollTop = Math.max(0, row.offsetTop - (pane.clientHeight - row.offsetHeight) / 2);
}

class Player {
  /** @param {Recording} recording */
  constructor(recording) {
    this.recording = recording;
    this.steps = unpacked(recording);
    this.at = 0;
    /** @type {number | null} */
    this.file = null;
    this.first = 1;
    this.kinds = KINDS.filter((kind) => this.steps.some((step) => step.kind === kind));
    this.range = make("input", { type: "range", min: 1, max: this.steps.length, value: 1, "aria-label": `Step of ${recording.name}`,
      title: "Arrow keys: a step; Home, End; T, P, R, B: to tracing, passes, run, backward; L: next line; N: next NaN; ] and [: to the next stop and the one before" });
    this.count = make("span", { class: "count", "aria-live": "polite" });
    const most = Math.max(1, ...recording.sources.map(([, , text]) => text.length));
    this.source = make("pre", { class: "source" });
    this.detail = make("div", { class: "detail" });
    this.tabs = this.kinds.map((kind) => this.button(`${TITLES[kind]} ${recording.counts?.[kind] ?? this.steps.filter((s) => s.kind === kind).length}`, "", () => this.toKind(kind)));
    const jumps = [
      this.button("|◀", "First step", () => this.go(0)), this.button("◀", "Step back", () => this.go(this.at - 1)),
      this.button("▶", "Step forward", () => this.go(this.at + 1)), this.button("▶|", "Last step", () => this.go(this.steps.length - 1)),
      this.button("next line", "To the next other line", () => this.nextLine()),
    ];
    if (this.steps.some(hasBadNumbers)) jumps.push(this.button("next NaN", "To the next value that is not finite", () => this.nextBad()));
    this.stops = recording.stops ?? [];
    if (this.stops.length) jumps.push(this.button("◀ stop", "To the stop before", () => this.toStop(-1)), this.button("stop ▶", "To the next stop", () => this.toStop(1)));
    this.element = make("div", { class: "player", role: "group", "aria-label": `${recording.name}, step by step` },
      make("div", { class: "bar" }, ...this.tabs), make("div", { class: "bar" }, ...jumps, this.range, this.count),
      make("div", { class: "body", style: `--ll-lines: ${most}` }, this.source, this.detail));
    this.range.addEventListener("input", () => this.go(Number(this.range.value) - 1));
    this.range.addEventListener("keydown", (event) => this.key(event));
    this.go(this.stops[0] ?? 0);
    new ResizeObserver(() => this.follow()).observe(this.source); // also when it first has a size: it is made before it is shown
  }

  /**
   * @param {string} text
   * @param {string} title
   * @param {() => void} act
   */
  button(text, title, act) {
    const button = make("button", { type: "button", tabindex: "-1", ...(title && { title, "aria-label": title }) }, text);
    button.addEventListener("click", () => { act(); this.range.focus({ preventScroll: true }); });
    return button;
  }

  /** Those of the slider itself are kept from a notebook, where they are commands as well. @param {KeyboardEvent} event */
  key(event) {
    if (/^(Arrow|Page|Home|End)/.test(event.key)) event.stopPropagation();
    /** @type {Record<string, () => void>} */
    const acts = {
      t: () => this.toKind("trace"), p: () => this.toKind("pass"), r: () => this.toKind("run"), b: () => this.toKind("backward"),
      n: () => this.nextBad(), l: () => this.nextLine(), "]": () => this.toStop(1), "[": () => this.toStop(-1),
    };
    const act = acts[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    act();
    event.preventDefault();
    event.stopPropagation(); // in a notebook these are commands
  }

  /** @param {string} kind */
  toKind(kind) {
    this.go(this.steps.findIndex((step) => step.kind === kind));
  }

  nextLine() {
    const { file, line } = this.steps[this.at];
    this.go(following(this.steps, this.at, (step) => step.line > 0 && (step.file !== file || step.line !== line)));
  }

  /** @param {1 | -1} direction */
  toStop(direction) {
    const beyond = this.stops.filter((stop) => (stop - this.at) * direction > 0);
    this.go((direction > 0 ? beyond[0] : beyond.at(-1)) ?? -1);
  }

  nextBad() {
    this.go(following(this.steps, this.at, hasBadNumbers));
  }

  /** @param {number} number */
  go(number) {
    if (number < 0 || number >= this.steps.length) return;
    this.at = number;
    const step = this.steps[number];
    this.range.value = String(number + 1);
    this.range.setAttribute("aria-valuetext", `${step.kind}: ${step.text}`);
    this.count.textContent = `${number + 1} of ${this.steps.length}${this.stops.includes(number) ? ", a stop" : ""}`;
    this.tabs.forEach((tab, i) => tab.classList.toggle("on", this.kinds[i] === step.kind));
    this.showSource(step);
    this.detail.replaceChildren(...shown(step));
  }

  /** @param {Step} step */
  showSource(step) {
    if (step.line && step.file !== null && step.file !== this.file) {
      this.file = step.file;
      const [label, first, text] = this.recording.sources[step.file];
      this.first = first;
      this.source.replaceChildren(...text.map((line, i) => make("div", { "data-line": String(first + i) }, line || " ")));
      this.source.setAttribute("aria-label", label);
    }
    this.source.querySelector(".on")?.classList.remove("on");
    const row = step.line ? this.source.children[step.line - this.first] : null;
    if (!(row instanceof HTMLElement)) return;
    row.classList.add("on");
    this.follow();
  }

  follow() {
    const row = this.source.querySelector(".on");
    if (row instanceof HTMLElement) centre(this.source, row);
  }
}

/**
 * Puts a player into `root`, if that has a recording and no player yet.
 * @param {HTMLElement | null} root
 */
export function play(root) {
  const data = root?.querySelector("script[type='application/json']");
  if (!root || !data || root.querySelector(".player")) return null;
  const player = new Player(JSON.parse(data.textContent ?? ""));
  root.prepend(player.element);
  root.querySelector(".fallback")?.remove();
  return player;
}

if (typeof globalThis.document !== "undefined") Object.assign(globalThis, { limelightSteps: play });
