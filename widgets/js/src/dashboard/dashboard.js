// The dashboard's panes: the graph, and beside or below it the other views as tabs; all are tabs where there is no room.

import { h } from "../dom.js";
import { SELECT, SELECTED } from "../selection.js";
import { Part } from "./part.js";
import { Splitter } from "./splitter.js";

const NAMES = /** @type {Record<string, string>} */ ({ graph: "Graph", cache: "Traces", tape: "Tape", devices: "Devices" });
const WIDE = 900; // pixels from which on panes stand side by side
const NARROW = 400; // pixels below which there is one pane
const LOW = 420; // pixels of height below which panes do not stand one below the other

export const OPEN = "limelight-open"; // asks for a view by its name: JupyterLab's command palette does

export class Dashboard {
  /** @param {HTMLElement} root @param {any} model @param {any} host @param {AbortSignal} signal @param {import("./remembered.js").Remembered} remembered @param {import("../lent.js").Stores} Store for its parts */
  constructor(root, model, host, signal, remembered, Store) {
    this.root = root;
    this.remembered = remembered;
    this.onReset = () => {}; // puts it back to its usual place
    this.model = model;
    this.host = host;
    this.Store = Store;
    this.title = h("span", { class: "ll-title" });
    this.chosen = h("span", { class: "ll-quiet ll-dash-chosen", role: "status" });
    this.first = h("div", { class: "ll-dash-pane ll-dash-first" });
    this.tabs = h("div", { class: "ll-dash-tabs", role: "tablist", "aria-label": "Views" });
    this.second = h("div", { class: "ll-dash-pane ll-dash-second", role: "tabpanel", tabindex: "0", id: `ll-panel-${Math.random().toString(36).slice(2)}` });
    this.body = h("div", { class: "ll-dash-body" });
    this.splitter = new Splitter(this.body, () => this.fill(), (share) => remembered.keep({ share }), remembered.layout.share);
    this.body.append(this.first, this.splitter.bar, h("div", { class: "ll-dash-rest" }, this.tabs, this.second));
    root.append(h("div", { class: "ll-bar ll-dash-bar" }, this.title, this.chosen), this.body);
    this.current = remembered.layout.tab ?? "cache";
    /** @type {Record<string, any> | null} */
    this.state = null;
    /** @type {Map<string, {part: Part, view: Promise<any> | null, stop: AbortController | null, el: HTMLElement | null}>} */
    this.parts = new Map();
    this.layout = "";
    const rebind = () => this.rebind();
    model.on("change:binding", rebind);
    signal.addEventListener("abort", () => {
      model.off("change:binding", rebind);
      for (const name of this.parts.keys()) this.take(name);
    });
    root.addEventListener(SELECTED, (event) => this.choose(/** @type {HTMLElement} */ (event.target), /** @type {CustomEvent} */ (event).detail));
    root.addEventListener(OPEN, (event) => this.turnTo(/** @type {CustomEvent} */ (event).detail));
    this.tabs.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.arrange()).observe(root);
    this.around = new ResizeObserver(() => this.fill()); // what stands above and below the graph comes and goes
  }

  /** @param {any} state */
  show(state) {
    const panels = String(this.panels);
    this.state = state;
    if (state.reset && state.reset !== this.remembered.layout.reset) this.reset(state.reset);
    if (state.asked) this.remembered.keep({ panels: state.panels });
    this.title.replaceChildren(h("b", {}, "Dashboard"), " ", h("span", { class: "ll-quiet" }, state.title));
    if (panels !== String(this.panels)) this.rearrange();
    this.say(state.selection ?? {});
  }

  /** The views that there are: those that were asked for, else those of the last time. */
  get panels() {
    /** @type {string[]} */
    const all = this.state?.panels ?? [];
    const before = this.state?.asked ? all : (this.remembered.layout.panels ?? all);
    return all.some((name) => before.includes(name)) ? all.filter((name) => before.includes(name)) : all;
  }

  /** Forgets how the reader had it, once for each time that the kernel was asked to. @param {string} asked */
  reset(asked) {
    this.remembered.forget();
    this.remembered.keep({ reset: asked });
    this.current = "cache";
    this.splitter.set();
    this.onReset();
    this.rearrange();
  }

  /** Begins with no view drawn. */
  rearrange() {
    for (const name of this.parts.keys()) this.take(name);
    this.layout = "";
    this.arrange();
  }

  /** Opens a view wherever it stands. @param {string} name */
  turnTo(name) {
    if (!this.state) return void (this.current = name);
    if (!this.names.includes(name)) return /** @type {HTMLElement | null} */ (this.first.querySelector("[tabindex='0']") ?? this.first.querySelector("[tabindex]"))?.focus();
    this.open(name);
    this.keepTab();
  }

  keepTab() {
    this.remembered.keep({ tab: this.current });
  }

  /** Other views took the places of those that were here. */
  rebind() {
    const drawn = [...this.parts].filter(([, { el }]) => el).map(([name]) => name);
    for (const name of this.parts.keys()) this.take(name);
    for (const { part } of this.parts.values()) part.left = true;
    this.parts.clear();
    for (const name of drawn) this.put(name, name === "graph" && this.layout !== "one" ? this.first : this.second);
  }

  /** Which views are seen, for the room there is. */
  arrange() {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!this.state || !width) return;
    const { panels } = this;
    const single = !panels.includes("graph") || panels.length < 2 || width < NARROW || (height < LOW && width < WIDE);
    const layout = single ? "one" : width >= WIDE ? "beside" : "below";
    this.fill();
    if (layout === this.layout) return;
    this.layout = layout;
    this.root.dataset.layout = layout;
    this.splitter.lie(layout === "beside");
    if (layout === "one") this.take("graph");
    if (!this.names.includes(this.current)) this.current = this.names[0];
    this.drawTabs();
    if (layout !== "one") this.put("graph", this.first);
    this.open(this.current);
  }

  get names() {
    return this.panels.filter((name) => this.layout === "one" || name !== "graph");
  }

  drawTabs() {
    const had = this.tabs.contains(document.activeElement);
    const tab = (/** @type {string} */ name) =>
      h("button", { type: "button", role: "tab", dataset: { panel: name }, "aria-controls": this.second.id, "aria-selected": name === this.current,
        onclick: () => (this.open(name), this.keepTab()) }, NAMES[name]);
    this.tabs.replaceChildren(...this.names.map(tab));
    if (had) /** @type {HTMLElement | null} */ (this.tabs.querySelector('[aria-selected="true"]'))?.focus();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const at = this.names.indexOf(/** @type {HTMLElement} */ (event.target).dataset.panel ?? "");
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.names.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    this.open(this.names[(to + this.names.length) % this.names.length]);
    this.keepTab();
    /** @type {HTMLElement | null} */ (this.tabs.querySelector('[aria-selected="true"]'))?.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Shows a view in the pane of the tabs; the one that was there follows the engine no more. @param {string} name */
  open(name) {
    for (const other of this.parts.keys()) if (other !== name && this.second.contains(this.parts.get(other)?.el ?? null)) this.take(other);
    this.current = name;
    this.second.setAttribute("aria-label", NAMES[name]);
    this.drawTabs();
    this.put(name, this.second);
  }

  /** @param {string} name @param {HTMLElement} pane */
  async put(name, pane) {
    const known = this.parts.get(name);
    if (known?.el && pane.contains(known.el)) return;
    if (known?.el) this.take(name);
    const stop = new AbortController();
    const el = h("div", { class: "ll-dash-view" });
    const one = known ?? { part: new Part(this.model, name), view: null, stop, el };
    [one.stop, one.el] = [stop, el];
    this.parts.set(name, one);
    pane.append(el);
    one.view ??= this.begin(one.part); // one, however often it is taken and put until it is there
    const view = await one.view.catch((error) => {
      one.view = null; // the next time may do better
      throw error;
    });
    if (stop.signal.aborted) return;
    await view.render({ model: one.part, el, signal: stop.signal, host: this.host });
    this.fill();
    this.tell(el, this.state?.selection ?? {});
  }

  /** What draws a part. @param {Part} part */
  async begin(part) {
    const script = () => this.host.getWidget(this.model.get(part.name));
    const view = (await script().catch(script)).exports.view(this.Store); // it waits for 10 seconds, which a busy page may need
    view.initialize({ model: part });
    return view;
  }

  /** @param {string} name */
  take(name) {
    const one = this.parts.get(name);
    one?.stop?.abort();
    one?.el?.remove();
    if (one) [one.stop, one.el] = [null, null];
  }

  /** The graph has the height of its pane, as if the reader had given it one. */
  fill() {
    const body = /** @type {HTMLElement | null} */ (this.root.querySelector(".ll-graph-view > .ll-body"));
    const pane = body?.closest(".ll-dash-pane");
    if (!body || !pane) return;
    const others = /** @type {HTMLElement[]} */ ([...(body.parentElement?.children ?? [])].filter((one) => one !== body));
    const taken = others.reduce((sum, one) => sum + one.offsetHeight, 0);
    for (const one of others) this.around.observe(one);
    const height = `${Math.max(pane.clientHeight - taken, 160)}px`;
    if (body.style.height !== height) body.style.height = height;
  }

  /** A view says what is chosen in it: the others show it, and the kernel is told. @param {HTMLElement} from @param {any} chosen */
  choose(from, chosen) {
    if (this.state) this.state = { ...this.state, selection: chosen };
    this.say(chosen);
    for (const { el } of this.parts.values()) if (el && !el.contains(from)) this.tell(el, chosen);
    this.model.send({ type: "selected", ...chosen });
  }

  /** @param {HTMLElement} el @param {any} chosen */
  tell(el, chosen) {
    el.firstElementChild?.dispatchEvent(new CustomEvent(SELECT, { detail: chosen }));
  }

  /** @param {any} chosen */
  say({ op, line, tensor, trace }) {
    const words = [op, tensor, line && `${line[0]} line ${line[1]}`, trace && `trace #${trace[1] + 1}`].filter(Boolean);
    this.chosen.textContent = words.join(" · ");
  }
}
