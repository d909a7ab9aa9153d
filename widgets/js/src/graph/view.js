// The graph view: keeps what is open, chosen and sought, and draws it.

import { button, h, replaceKeepingFocus, s, uniqueId } from "../dom.js";
import { counted, number, sum } from "../format.js";
import { arrive, deep, prepare } from "./at-first.js";
import { OffscreenCounts } from "./offscreen-counts.js";
import { Camera, MARGIN } from "./camera.js";
import { details, fusionDetails } from "./details.js";
import { openDrawer, uncovered } from "./drawer.js";
import { sights } from "./first-sight.js";
import { Highlights } from "./highlights.js";
import { InSight } from "./in-sight.js";
import { keyHelp, onKey } from "./keyboard.js";
import { Labels } from "./labels.js";
import { Layouts } from "./layout.js";
import { openable, shaped } from "./open-all.js";
import { Outline } from "./outline.js";
import { around, places, stepsTo } from "./box-paths.js";
import { BELOW, isNarrow, isSized, keptTo, lowRoom, needsMore, READ, roomOf, rooms, tallest } from "./room.js";
import { arrowMarker, scene } from "./scene.js";
import { SearchResults } from "./search-results.js";
import { SidePanes } from "./side-panes.js";
import { lineKey, placeOfKey } from "./line-key.js";
import { nameLandmark } from "../landmark.js";
import { legend, told } from "./overlays.js";
import { PassSlider } from "./pass-slider.js";
import { inTurns } from "../turns.js";
import { toolbar } from "./toolbar.js";
import { visible } from "./visible-boxes.js";
import { placeOf, positionsOf, sizeOf, wordsIn } from "./box-text.js";

/**
 * @typedef {import("./visible-boxes.js").Box} Box
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./nested-layout.js").Drawing} Drawing
 * @typedef {import("./nested-layout.js").Rectangle} Rectangle
 * @typedef {import("./box-text.js").GraphState} GraphState
 * @typedef {import("./box-text.js").Position} Position
 */

const PLACED = 250; // milliseconds within which the page gives a new view its place, if it shows it at all
const LARGE = 300; // boxes and edges from which on a picture is not drawn anew for every step of a movement
const TITLES = 0.55; // the least scale of all that was opened: titles can be read, and "Fit" shows the whole

export class GraphView {
  /** @param {HTMLElement} root @param {() => Promise<import("./layout.js").Draw>} worker @param {AbortSignal} signal */
  constructor(root, worker, signal) {
    this.layouts = new Layouts(worker);
    this.arrow = uniqueId("ll-arrow");
    /** @type {GraphState | null} */
    this.state = null;
    this.variant = "";
    this.whole = ""; // the version that was shown of a whole trace: one that runs or has failed has but one
    /** @type {GraphState | null} as it came */
    this.given = null;
    this.wanted = ""; // a version that is to be shown once the kernel has described it
    this.onWhole = () => {}; // asks for it
    this.overlay = ""; // what is told on the boxes besides
    /** @type {number | undefined} how many levels of groups are open at first; undefined for as many as can be read */
    this.depth = undefined;
    /** @type {Map<string, boolean>} what the reader opened and closed */
    this.opened = new Map();
    /** @type {string | null} */
    this.chosen = null;
    /** @type {string | null} the line that the reader chose */
    this.line = null;
    this.results = new SearchResults(this);
    const [picture, drawing] = nothing();
    this.picture = picture;
    this.drawing = drawing;
    this.fitted = false;
    this.drawn = Promise.resolve(); // the end of the last drawing
    this.spread = false; // whether all is open, and is laid out for all to be seen
    this.looking = 0; // how often it was to be found out what is shown at first
    /** @type {import("./first-sight.js").Sight | null} what was shown at first, null where that is to be found out */
    this.sight = null;
    this.looked = ""; // the room for which that was
    this.high = false; // whether it is higher than the window: so it can be read
    this.low = Infinity; // the height that is left below a cell on a low screen, where all of it can be read there
    /** the height that the view has given itself, "" for that of the style sheet */
    this.height = "";
    /** @type {(lines: {label: string, line: number}[]) => void} told which lines are lit */
    this.onLines = () => {};
    this.build(root, signal);
  }

  /** @param {HTMLElement} root @param {AbortSignal} signal */
  build(root, signal) {
    this.root = root;
    this.stage = s("g");
    this.svg = s("svg", { class: "ll-picture", "aria-label": "Graph", role: "group" }, arrowMarker(this.arrow), this.stage);
    const layer = h("div", { class: "ll-layer" }, this.svg);
    this.canvas = h("div", { class: "ll-canvas" }, layer);
    this.camera = new Camera(this.svg, this.stage, layer, signal);
    this.highlights = new Highlights(this.stage);
    this.labels = new Labels(this.stage);
    this.offscreen = new OffscreenCounts(this.camera);
    const { camera, highlights } = this;
    this.shown = new InSight(() => camera.sight(), (come) => (highlights.draw(come), this.slider?.mark(come)));
    camera.onMove = (moving) => {
      this.labels?.draw(camera.drawn.scale);
      this.offscreen?.update(() => this.drawing.boxes.values());
      this.shown?.follow(moving);
    };
    this.legend = h("p", { class: "ll-legend", hidden: true });
    this.canvas.append(...this.offscreen.signs.map(({ sign }) => sign));
    this.side = new SidePanes({
      chooseLine: (key) => this.chooseLine(key),
      chooseOp: (name) => this.goTo(this.variant, name),
      turned: (shown) => {
        this.highlight();
        this.say(shown === "details" ? "the details are shown" : `the ${shown} is shown`);
      },
    });
    this.outline = new Outline({ select: (name) => this.choose(name), toggle: (name) => this.toggle(name) });
    this.help = keyHelp();
    this.message = h("p", { class: "ll-empty" });
    this.slider = new PassSlider(this);
    const [svg, side] = [this.svg, this.side.element];
    const body = (this.body = h("div", { class: "ll-body" }, this.canvas, side));
    this.camera.free = () => uncovered(svg, body, side);
    this.camera.signs = () => this.offscreen?.places() ?? [];
    this.status = h("span", { class: "ll-quiet", role: "status" });
    this.bar = toolbar(this);
    this.foot = h("div", { class: "ll-foot" }, this.outline.element, this.status);
    root.append(this.bar.element, this.slider.element, this.legend, this.message, this.help, this.body, this.foot);
    this.canvas.addEventListener("keydown", (event) => onKey(this, event));
    this.canvas.addEventListener("pointerover", (event) => {
      const box = /** @type {Element} */ (event.target).closest?.(".ll-box");
      this.highlights?.mirror(this.mirrored(/** @type {HTMLElement | null} */ (box)?.dataset.box ?? this.chosen));
    });
    root.addEventListener("keydown", (event) => this.closeHelp(event), true);
    new ResizeObserver(() => (this.fitted ? this.refit() : this.drawing.width && this.lookAgain())).observe(this.canvas);
    new ResizeObserver(() => this.refit()).observe(root);
    window.addEventListener("resize", () => (this.refit(), setTimeout(() => this.refit(), PLACED)), { signal }); // JupyterLab's panes follow later
  }

  /** Takes a new state: another trace, or the first. @param {GraphState} state */
  show(state) {
    if (state === this.given || (this.given && state.revision !== undefined && state.revision === this.given.revision)) return; // it was sent again
    if (this.given?.failed && !state.failed) this.side?.show("code"); // of an error the details were shown
    this.given = state;
    if (this.state && state.completes !== undefined && state.completes === this.state.described) return void this.complete(this.state);
    const first = this.state === null;
    if (this.state && state.described !== undefined && state.described === this.state.described) {
      if (this.wanted && !state.waiting) this.say(`the function has gone, and with it its ${this.wanted} graph`);
      Object.assign(this.state, { label: state.label, newer: state.newer, waiting: state.waiting }); // the same graph: what is open stays open
      return this.drawHead(this.state);
    }
    if (this.isPartial) this.variant = this.whole;
    else this.whole = this.variant;
    const line = this.state && this.line ? placeOfKey(this.state, this.line) : null;
    this.state = state = withHistory(state);
    this.slider?.take(state.history, true);
    if (first && state.overlay) this.overlay = state.overlay;
    const begin = first ? state.begin : undefined;
    if (begin) prepare(this, begin);
    if (this.bar) this.bar.overlays.value = this.overlay;
    if (this.root) nameLandmark(this.root, `Graph of ${state.title}`);
    const keys = state.variants.map(({ key }) => key);
    if (keys.includes(this.wanted)) [this.variant, this.wanted] = [this.wanted, ""];
    if (!keys.includes(this.variant)) this.variant = keys.includes(state.which) ? state.which : (keys[0] ?? "");
    this.forget();
    this.line = line && this.keyOf(line.label, line.line);
    if (!first && state.label) this.say(`${state.label} is shown`);
    this.drawHead(state);
    this.placed()
      .then(() => (state === this.state ? this.redraw() : null))
      .then(() => {
        if (state !== this.state) return;
        if (state.failed) {
          this.side?.show("details"); // which have the error
          this.choose(`n${state.failed.node}`);
        }
        if (begin) arrive(this, begin);
        if (state.soon) this.onWhole();
      });
  }

  /**
   * The version that is shown has come with the other one, and with what links both: what is on the page stays. A drawing
   * under way is of the part, whose graphs have other numbers: it comes to its end before.
   * @param {GraphState} part
   */
  async complete(part) {
    for (let last; this.sight && last !== this.drawn; ) await (last = this.drawn).catch(() => {});
    if (part !== this.state || !this.given) return; // another trace is shown by now, or it was completed
    const state = (this.state = withHistory(this.given));
    this.slider?.take(state.history, true);
    const { wanted, sight, graph } = this;
    this.wanted = "";
    if (wanted) return this.switchTo(wanted);
    if (!sight) {
      this.looking += 1; // for the part
      return this.redraw();
    }
    this.picture = this.pictureOf(state, graph, sight);
    this.sight = { ...sight, picture: this.picture };
    this.drawHead(state);
    this.drawCount(state, graph);
    this.side?.draw(state, this.variant, graph);
    this.highlight();
  }

  /** What is visible of a sight, with what the reader opened and closed. @param {GraphState} state @param {number} graph @param {import("./first-sight.js").Sight} sight */
  pictureOf(state, graph, sight) {
    const atFirst = (/** @type {string} */ name, /** @type {boolean} */ byDefault) => sight.open?.has(name) ?? byDefault;
    const isOpen = (/** @type {string} */ name, /** @type {boolean} */ byDefault) => this.opened.get(name) ?? atFirst(name, byDefault);
    return visible(state.graphs, graph, isOpen, sight.folded, sight.dissolved);
  }

  /** Waits a little for a place on the page: without one its size is a guess, and what is found out for that is lost. */
  placed() {
    if (this.svg?.clientWidth || this.graph < 0) return Promise.resolve();
    return new Promise((/** @type {(value: void) => void} */ resolve) => {
      const placed = new ResizeObserver(() => this.svg?.clientWidth && done());
      const timer = setTimeout(() => done(), PLACED);
      const done = () => {
        clearTimeout(timer);
        placed.disconnect();
        resolve();
      };
      if (this.canvas) placed.observe(this.canvas);
    });
  }

  /** Another graph: of what was drawn, opened or chosen in the last one, only the line means anything here. */
  forget() {
    [this.picture, this.drawing] = nothing(); // who chooses a line, or a box, before it is drawn would look for the last one's nodes
    this.opened.clear();
    this.say(""); // how much was opened, say
    this.body?.classList.remove("ll-drawer");
    this.layouts.forget();
    this.chosen = null;
    this.spread = false;
    this.anew();
    this.sight = null;
    this.results.renew();
  }

  get isPartial() {
    return Boolean(this.state?.running || this.state?.failed);
  }

  get graph() {
    return this.state?.variants.find(({ key }) => key === this.variant)?.graph ?? -1;
  }

  /** Tells something else on the boxes, "" for nothing. @param {string} overlay */
  async tell(overlay) {
    this.overlay = overlay;
    if (this.bar) this.bar.overlays.value = overlay;
    await this.redraw();
    if (overlay && this.state) this.say(legend(this.state, this.graph, overlay));
  }

  /** @param {GraphState} state @param {number} graph @param {Map<string, import("./overlays.js").Told>} overlaid */
  drawLegend(state, graph, overlaid) {
    if (!this.legend) return;
    this.legend.hidden = !this.overlay;
    this.legend.textContent = this.overlay ? legend(state, graph, this.overlay, overlaid) : "";
  }

  /** Shows another version; all of it is open where all of the last one was. @param {string} key */
  switchTo(key) {
    if (key === this.state?.waiting) return this.ask(key);
    const all = this.spread && this.isOpened;
    this.variant = key;
    this.forget();
    this.slider?.draw();
    return all ? this.openAll(true) : this.redraw();
  }

  /** Has the kernel describe the other version of a large graph, and shows it then. @param {string} key */
  ask(key) {
    this.wanted = key;
    this.say(`the ${key} graph is being described`);
    this.onWhole();
  }

  /** @param {string} name */
  box(name) {
    return this.picture.boxes.find((box) => box.name === name) ?? null;
  }

  /** @param {string} name */
  frame(name) {
    return this.picture.frames.find((frame) => frame.name === name) ?? null;
  }

  /**
   * Draws what is visible now; done once that is drawn, or what has taken its place meanwhile.
   * @param {string} [anchor] a box or frame that shall not move on the screen
   */
  async redraw(anchor) {
    let last = (this.drawn = this.draw(anchor));
    await last;
    while (last !== this.drawn) await (last = this.drawn).catch(() => {}); // who asked for that is told
  }

  /** @param {string} [anchor] */
  async draw(anchor) {
    const { state, graph } = this;
    if (!state) return;
    this.drawHead(state);
    if (graph < 0) return;
    const sight = this.sight ?? (await this.look(state, graph));
    if (!sight) return;
    const picture = this.opened.size ? this.pictureOf(state, graph, sight) : sight.picture;
    const words = wordsIn(state, picture, sight.manner);
    const overlaid = this.overlay ? told(state, picture.boxes, this.overlay) : new Map();
    for (const [name, { text }] of overlaid) {
      const word = words.get(name);
      if (word) words.set(name, { ...word, detail: text, full: [word.full, text].filter(Boolean).join(", ") });
    }
    const sizes = new Map([...words].map(([name, text]) => [name, sizeOf(text)]));
    const key = [graph, this.overlay, ...picture.boxes.map(({ name }) => name), ...picture.frames.map(({ name }) => name)].join(" ");
    const seen = this.opened.size || this.overlay || this.spread ? undefined : sight.drawing;
    const layOut = (/** @type {import("./layout.js").Manner} */ manner) => this.layouts.of(`${JSON.stringify(manner)} ${key}`, picture, sizes, manner, seen);
    const drawing = await (this.spread ? shaped(layOut, sizes.values(), rooms(this)[0], sight.manner) : layOut(sight.manner));
    if (!drawing || state !== this.state) return;
    const actions = {
      select: (/** @type {string} */ name) => this.camera?.dragged || this.choose(name),
      toggle: (/** @type {string} */ name) => this.toggle(name),
      where: (/** @type {Box} */ box) => (box.kind === "node" ? placeOf(state, positionsOf(state, box)[0]) : ""),
    };
    const before = anchor ? this.placeOf(anchor) : null;
    [this.picture, this.drawing] = [picture, drawing];
    const focused = this.stage?.contains(document.activeElement); // the keyboard stays in the picture, whatever is drawn anew
    const { labels, stage, camera, shown } = this;
    if (!labels || !stage || !camera || !shown) return;
    labels.forget();
    shown.leave();
    const { element, parts } = scene(picture, drawing, { words, overlaid }, actions, labels, this.arrow);
    camera.large = picture.boxes.length + picture.edges.size > LARGE;
    stage.replaceChildren(element); // nearly nothing: whoever asks for a size now has the page lay out no more than that
    this.drawLegend(state, graph, overlaid);
    this.outline?.draw(picture, words);
    this.side?.draw(state, this.variant, graph);
    this.drawCount(state, graph);
    this.settle(anchor, before);
    this.slider?.draw();
    const drawn = shown.take(parts);
    if (focused) this.highlights?.focus();
    this.outline?.restoreFocus();
    await drawn;
  }

  /** What is drawn next is to be shown as it is to be seen at first, unless the reader moves it until then. */
  anew() {
    this.fitted = false;
    if (this.camera) this.camera.touched = false;
  }

  /** Moves a picture that is drawn anew to where it is to be seen. @param {string} [anchor] @param {Rectangle | null} [before] where that was */
  settle(anchor, before) {
    const now = anchor ? this.placeOf(anchor) : null;
    if (before && now) this.camera?.keep(before, now);
    const first = !this.fitted;
    if (first) this.present();
    this.highlight();
    if (first) this.refit(); // the room may have become another one: code that is there for what is chosen takes some of it
  }

  /** Shows the picture as it is to be seen at first; waits for a place on the page, whose size it needs. */
  present() {
    if (!this.drawing.width || !this.svg?.clientWidth) return;
    this.grow(1);
    if (this.camera?.touched) this.fitted = true;
    else this.fit();
  }

  /**
   * What is to be shown at first, with the code beside it, or below it where the view is narrow. A picture that is not
   * all there is to see has the whole view; the code comes over it where something is chosen.
   * To find it out takes long where there are many ops: the page has its turn meanwhile.
   * @param {GraphState} state @param {number} graph
   * @returns {Promise<import("./first-sight.js").Sight | null>} null where something else is to be shown by then
   */
  async look(state, graph) {
    const turn = (this.looking += 1);
    const again = () => {
      this.looked = roomOf(this);
      return inTurns(sights(state, graph, ...rooms(this)), () => turn !== this.looking);
    };
    [this.high, this.low] = [false, lowRoom(this)];
    let sight = await again();
    if (sight && this.low < Infinity && sight.scale < READ) {
      this.low = Infinity; // a graph that cannot be read there takes the height that it can be read in
      sight = await again();
    }
    if (sight && needsMore(this, sight.scale)) {
      this.high = true;
      sight = await again();
    }
    if (!sight || state !== this.state || graph !== this.graph) return null;
    this.body?.classList.toggle("ll-stacked", isNarrow(this) && !sight.folded);
    this.body?.classList.toggle("ll-large", sight.folded);
    return (this.sight = deep(this, sight));
  }

  /** The room is another: shows at once what can be seen in it, unless the reader has made the picture their own. */
  refit() {
    this.camera?.measure();
    this.camera?.onMove(false);
    if (!this.fitted || !this.state || !this.body?.clientWidth || this.isOwn()) return;
    if (this.opened.size || this.looked === roomOf(this)) return this.fit();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.isOwn() || this.lookAgain(), 60);
  }

  /** Whether the reader has made the picture their own; one all of whose groups were closed is nobody's. */
  isOwn() {
    return Boolean(this.camera?.touched) || this.isOpened;
  }

  get isOpened() {
    return [...this.opened.values()].some(Boolean);
  }

  lookAgain() {
    if (this.body && this.body.style.height === this.height) this.body.style.height = this.height = "";
    this.body?.classList.remove("ll-tall");
    this.spread &&= this.isOpened; // where all was just opened, that is laid out for the other room
    this.anew();
    this.sight = null;
    return this.redraw();
  }

  /** Larger type, lines and panels, or back. */
  project() {
    const large = this.root?.classList.toggle("ll-projector");
    this.opened.clear();
    this.say(large ? "larger type" : "type as before");
    return this.lookAgain();
  }

  /** @param {GraphState} state */
  drawHead(state) {
    const trace = [state.label, state.newer].filter(Boolean).join(", ");
    const signature = state.signature ?? "";
    this.bar?.title.replaceChildren(h("b", {}, state.title), " ", h("span", { class: "ll-quiet" }, trace));
    this.bar?.title.setAttribute("title", [state.title, trace, signature].filter(Boolean).join("\n"));
    const labels = /** @type {Record<string, string>} */ ({ traced: "Traced", optimised: "Optimised", history: state.passes?.length ? "Passes" : "Compared" });
    const there = state.variants.map(({ key }) => key);
    const keys = state.waiting === "traced" ? ["traced", ...there] : state.waiting ? [...there, state.waiting] : there;
    if (this.bar) replaceKeepingFocus(
      this.bar.variants,
      ...(keys.length < 2 ? [] : keys).map((key) =>
        button(key === "history" ? "Show it from version to version" : `Show the ${key} graph`, () => this.switchTo(key), { "aria-pressed": key === this.variant }, labels[key]),
      ),
    );
    for (const part of [this.bar?.tools, this.body, this.foot]) part?.toggleAttribute("hidden", this.graph < 0); // they would do nothing
    this.message?.toggleAttribute("hidden", this.graph >= 0);
    if (this.message) this.message.textContent = state.empty ?? "";
  }

  /** How many ops there are, unless a label or the slider over passes tells it. @param {GraphState} state @param {number} graph */
  drawCount(state, graph) {
    const closed = this.picture.boxes.filter(({ kind }) => kind === "group").length;
    const told = state.failed || state.running || this.variant === "history";
    const own = state.graphs[graph].nodes.length;
    const all = sum([...places(state.graphs, graph).keys()].map((one) => state.graphs[one].nodes.length));
    const ops = all > own ? `${counted(own, "op")}, ${number(all)} with called functions` : counted(own, "op");
    const parts = told ? [] : [ops, ...(closed ? [`, ${counted(closed, "group")} closed`] : [])];
    this.bar?.count.replaceChildren(...parts.map((part) => h("span", {}, part))); // each is seen as a whole, or not at all
    if (this.bar) this.bar.count.title = parts.join("");
  }

  /** @param {string} name @returns {Rectangle | null} */
  placeOf(name) {
    return this.drawing.boxes.get(name) ?? this.drawing.frames.get(name) ?? null;
  }

  /** Shows all of the picture; or its beginning, where all was opened and could not be read. @param {boolean} [whole] */
  fit(whole = !this.spread) {
    if (!this.camera || !this.drawing.width || !this.svg?.clientWidth) return;
    this.camera.fit(this.drawing, whole ? undefined : TITLES);
    const first = whole ? null : this.placeOf(this.picture.boxes[0]?.name ?? "");
    if (first) this.camera.reveal(first); // not a corner that may be empty
    this.fitted = true;
  }

  /**
   * Chooses a box, and shows where it comes from.
   * @param {string | null} name null for none @param {boolean} [reveal] whether to move the picture if need be
   * @param {boolean} [drawer] whether the code may come over the picture
   */
  choose(name, reveal = true, drawer = true) {
    this.chosen = name;
    this.line = null;
    this.highlight();
    const place = name && reveal ? this.placeOf(name) : null;
    if (name && drawer) openDrawer(this, name);
    if (place) this.camera?.reveal(place);
    if (name && this.box(name)) return;
    const fused = name ? this.frame(name) : null;
    if (fused) this.say(fused.label);
  }

  /** Chooses a line of code, and lights the boxes that it made. @param {string} key */
  chooseLine(key) {
    this.line = this.line === key ? null : key;
    this.chosen = null;
    this.highlight();
    const first = this.state && this.picture.boxes.find((box) => this.line && this.isFrom(/** @type {GraphState} */ (this.state), box, this.line));
    const place = first ? this.placeOf(first.name) : null;
    if (place) this.camera?.reveal(place);
  }

  highlight() {
    const { state, highlights } = this;
    if (!state || !highlights) return;
    const box = this.chosen ? this.box(this.chosen) : null;
    const keys = box ? positionsOf(state, box).map(([source, line]) => lineKey(source, line)) : [];
    const strong = this.line ? [this.line] : box?.kind === "group" ? [...new Set(keys)] : keys.slice(0, 1);
    const frame = this.chosen && !box ? this.frame(this.chosen) : null;
    const isLit = (/** @type {Box} */ other) => (frame ? other.parent === frame.name : this.isFrom(state, other, this.line));
    const lit = this.line || frame?.fused ? this.picture.boxes.filter(isLit) : [];
    const chosen = box?.name ?? frame?.name ?? null;
    highlights.set(chosen, lit.map(({ name }) => name), this.results.boxes(), this.mirrored(chosen));
    this.outline?.choose(chosen);
    if (this.shown && this.shown.chosen !== chosen) {
      this.shown.chosen = chosen;
      this.shown.follow(); // all its edges, also those that lie on others
    }
    if (this.line) this.say(`${counted(lit.length, "box", "boxes")} from this line`);
    const links = {
      chooseLine: (/** @type {string} */ key) => this.chooseLine(key),
      toggle: (/** @type {string} */ name) => this.toggle(name),
      goTo: (/** @type {string} */ variant, /** @type {string} */ name) => this.goTo(variant, name),
      choose: (/** @type {string} */ name) => this.choose(name),
      fusedFrame: (/** @type {Box} */ { parent }) => (this.frame(parent)?.fused ? parent : ""),
    };
    const about = frame?.fused ? fusionDetails(state, this.variant, frame, links) : details(state, this.variant, box, links);
    this.side?.light(about, box, strong, box?.kind === "node" ? keys.slice(1) : []);
    this.onLines(strong.map((key) => placeOfKey(state, key)));
  }

  /** The boxes of the gradient of a box, or those whose gradient it is. @param {string | null} name */
  mirrored(name) {
    const { boxes, frames } = this.picture;
    const of = [...boxes, ...frames].find((one) => one.name === name);
    if (!of?.path || (of.lane !== "forward" && of.lane !== "loss" && of.lane !== "backward")) return [];
    const back = of.lane === "backward";
    return boxes.filter(({ path, lane }) => path === of.path && (lane === "backward") !== back && lane !== "update").map((box) => box.name);
  }

  /** Chooses a line by the name of its cell or file, as a list of lines beside the view knows it. @param {string} label @param {number} line */
  chooseSource(label, line) {
    const key = this.keyOf(label, line);
    if (key) this.chooseLine(key);
  }

  /** @param {string} label @param {number} line @returns {string | null} null for a source that the state does not have */
  keyOf(label, line) {
    const keys = (this.state?.sources ?? []).flatMap((one, index) => (one.label === label ? [lineKey(index, line)] : []));
    return keys.find((one) => this.side?.source.lines.has(one)) ?? keys[0] ?? null; // a cell may be known under two file names
  }

  /** Shows a node of a version of the graph, wherever it is hidden. @param {string} variant @param {string} name */
  async goTo(variant, name) {
    const { state } = this;
    if (!state) return;
    if (variant === state.waiting) return this.ask(variant);
    const other = variant !== this.variant;
    if (other) {
      this.variant = variant;
      this.forget();
    }
    const hidden = around(state.graphs, this.graph, name).filter((outer) => other || !this.drawing.frames.has(outer));
    for (const outer of hidden) this.opened.set(outer, true);
    if (other || hidden.length) await this.redraw();
    if (hidden.length) {
      this.grow();
      this.camera?.settle(this.placeOf(hidden[hidden.length - 1]));
    }
    const reader = this.box(name) ? name : this.readerOf(name);
    this.choose(reader);
    if (!this.box(name) && reader) this.say("this constant is written on the ops that read it");
  }

  /** An op that a constant is written on, instead of having a box. @param {string} name */
  readerOf(name) {
    const { graphs } = /** @type {GraphState} */ (this.state);
    const { graph, path } = stepsTo(graphs, this.graph, name);
    const value = graphs[graph].inputs.length + countOutputs(graphs[graph], Number(name.slice(path.length + 1)));
    const reader = graphs[graph].nodes.findIndex((node) => node.in?.includes(value));
    return this.box(`${path}n${reader}`)?.name ?? null;
  }

  /** @param {GraphState} state @param {Box} box @param {string | null} key */
  isFrom(state, box, key) {
    return positionsOf(state, box).some(([source, line]) => lineKey(source, line) === key);
  }

  /**
   * Opens a closed group or call, closes an open one; what was chosen stays within it.
   * @param {string} name @param {boolean} [fill] whether the picture may move to fill the view: nothing is under the pointer, as by a key
   */
  async toggle(name, fill = false) {
    const open = !this.drawing.frames.has(name);
    this.opened.set(name, open);
    const focused = this.body?.contains(document.activeElement); // or on "Open", beside what is chosen
    const was = open ? this.placeOf(name) : null;
    await this.redraw(name);
    this.grow();
    if (open) this.body?.classList.remove("ll-drawer"); // it would cover what was opened
    this.camera?.settle(this.placeOf(name), was);
    if (fill) this.camera?.fill(this.drawing);
    const inside = this.picture.boxes.find(({ parent }) => parent === name || parent.startsWith(`${name}.`));
    this.choose(open ? (inside?.name ?? null) : name, Boolean(focused), false); // with the mouse, nothing else moves
    if (focused) this.highlights?.focus();
  }

  /**
   * Makes the view as tall as the picture needs, within bounds; not where the reader has given it a height.
   * @param {number} [scale] of the picture
   */
  grow(scale = this.camera?.scale ?? 1) {
    const { body, svg, camera } = this;
    if (!body || !svg?.clientWidth || !camera) return;
    if (isSized(this)) return;
    const around = body.clientHeight - svg.clientHeight;
    const byWidth = (svg.clientWidth - 2 * MARGIN) / this.drawing.width; // a wide picture will be smaller
    const share = body.classList.contains("ll-stacked") ? 1 - BELOW[1] : 1;
    const height = this.drawing.height * Math.min(scale, byWidth) + 2 * MARGIN;
    const wanted = Math.ceil(Math.max(height + around, height / share));
    if (wanted > keptTo(this)) body.classList.add("ll-tall");
    const most = tallest(this);
    if (wanted <= body.clientHeight || most <= body.clientHeight) return;
    body.style.height = `${Math.min(wanted, most)}px`;
    this.height = body.style.height;
  }

  /** Opens all groups and nested functions, or as many as can be drawn; or closes all. @param {boolean} open */
  async openAll(open) {
    const { state, graph } = this;
    if (!state || graph < 0) return;
    for (const name of this.opened.keys()) this.opened.set(name, false);
    for (const index of state.graphs[graph].groups.keys()) this.opened.set(`g${index}`, false);
    const { names, complete } = open ? openable(state.graphs, graph) : { names: [], complete: true };
    for (const name of names) this.opened.set(name, true);
    this.spread = open;
    this.choose(null);
    this.body?.classList.remove("ll-drawer"); // it would cover what is to be seen
    this.anew();
    await this.redraw();
    const said = `${counted(names.length, "group or function", "groups and functions")} opened`;
    this.say(!open ? "all groups and functions closed" : complete ? said : `${said}, the others stay closed: there would be too many boxes`);
  }

  showHelp() {
    this.help?.toggleAttribute("hidden");
  }

  /** Escape closes the list of keys first, wherever the focus is. @param {KeyboardEvent} event */
  closeHelp(event) {
    if (event.key !== "Escape" || !this.help || this.help.hidden) return;
    this.help.hidden = true;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} text @param {boolean} [beside] whether it is seen beside the search, and only heard here */
  say(text, beside = false) {
    if (!this.status || !this.bar) return;
    this.status.textContent = text;
    this.status.classList.toggle("ll-hidden", beside);
    if (beside || !this.bar.search.value) this.bar.matches.textContent = beside ? text : "";
  }
}

/** What is drawn before anything is. @returns {[Picture, Drawing]} */
function nothing() {
  return [{ boxes: [], frames: [], edges: new Map() }, { boxes: new Map(), frames: new Map(), edges: new Map(), width: 0, height: 0 }];
}

/** A state with its history among what can be shown. @param {GraphState} state @returns {GraphState} */
function withHistory(state) {
  return state.history ? { ...state, variants: [...state.variants, { key: "history", graph: state.history.graph }] } : state;
}

/** How many values the nodes before one give. @param {import("./visible-boxes.js").Graph} graph @param {number} before */
function countOutputs({ nodes }, before) {
  return sum(nodes.slice(0, before).map(({ out }) => out?.length ?? 0));
}
