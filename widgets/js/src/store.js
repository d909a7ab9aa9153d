// The state of one widget model in this page, and the conversation about it with the kernel.

import { unpack } from "./wire.js";

/**
 * @typedef {object} Model the part of an anywidget model that is used here
 * @property {(name: string) => any} get
 * @property {(name: string, callback: (...args: any[]) => void) => void} on
 * @property {(name: string, callback?: (...args: any[]) => void) => void} off
 * @property {(content: any) => void} send
 *
 * @typedef {(state: any, change: any) => any} Reduce the next state from the last and an update
 */

/** An update replaces the state. @type {Reduce} */
export const replace = (_state, change) => change;

/**
 * Keeps a model's state. Updates come as messages, numbered; those that ask for an answer get one after the page has
 * drawn them, which is how the kernel learns that it sends too fast.
 */
export class Store {
  /** @param {Model} model @param {Reduce} [reduce] */
  constructor(model, reduce = replace) {
    this.model = model;
    this.reduce = reduce;
    /** @type {any} */
    this.state = null;
    this.number = 0;
    /** @type {Set<(state: any) => void>} */
    this.views = new Set();
    this.frame = 0;
    this.answer = 0; // the number of an update that wants one
    this.name = Math.random().toString(36).slice(2); // tells apart who shows the model
    this.ready = this.take(model.get("snapshot"), 0);
    model.on("msg:custom", (content, buffers) => this.hear(content, buffers));
  }

  /** @param {any} content @param {DataView[]} buffers */
  hear(content, buffers) {
    if (content?.type === "update") this.ready = this.take(buffers, content.number, content.answer);
    // What is to be saved beside the widget, for the extension of JupyterLab that holds the output.
    if (content?.type === "static") document.dispatchEvent(new CustomEvent("limelight-static", { detail: content }));
  }

  /**
   * Takes in a packed change, after those before it.
   * @param {ArrayLike<DataView>} parts @param {number} number @param {boolean} [answer] whether the kernel waits for one
   */
  async take(parts, number, answer) {
    const change = unpack(parts);
    await this.ready;
    const next = this.reduce(this.state, await change);
    // Something is missing: ask for all of it, as who looks again does.
    if (next === null) return void (this.views.size && this.tell({ type: "opened", number: -1 }));
    this.state = next;
    this.number = number;
    if (answer) this.answer = number;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    for (const view of this.views) view(this.state);
    // Where nobody looks any more, the kernel, which has been told so, would take an answer for a reader.
    if (this.answer && this.views.size) this.tell({ type: "seen", number: this.answer });
    this.answer = 0;
  }

  /**
   * Calls `view` with the state now and after every change, until `signal` is aborted.
   * @param {(state: any) => void} view @param {AbortSignal} signal
   */
  async show(view, signal) {
    await this.ready;
    if (signal.aborted) return;
    signal.addEventListener("abort", () => {
      this.views.delete(view);
      if (!this.views.size) this.tell({ type: "closed" });
    });
    this.views.add(view);
    view(this.state);
    this.tell({ type: "opened", number: this.number });
  }

  /** @param {Record<string, any>} message */
  tell(message) {
    try {
      this.model.send({ view: this.name, ...message });
    } catch {
      // The model has gone, and with it everybody who might want to know.
    }
  }
}
