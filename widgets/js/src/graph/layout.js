// Where the boxes go: by Graphviz if it answers in time, by our own linear layout otherwise; remembered either way.

import { draw } from "./nested-layout.js";
import { fromViz, toViz } from "./graphviz-format.js";

/**
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./nested-layout.js").Drawing} Drawing
 * @typedef {(graph: any, signal: AbortSignal) => Promise<any>} Graphviz gives its format json0 as an object
 */

const MOST_FOR_GRAPHVIZ = 300; // boxes; it takes more than linear time
const REMEMBERED = 24;

export class Layouts {
  /** @param {() => Promise<Graphviz>} graphviz */
  constructor(graphviz) {
    this.graphviz = graphviz;
    /** @type {Map<string, Drawing>} */
    this.known = new Map();
    this.current = new AbortController();
    /** @type {string} why Graphviz is not used, for the curious */
    this.reason = "";
  }

  /**
   * The drawing of a picture; null when another was asked for meanwhile.
   * @param {string} key what tells this picture from others @param {Picture} picture @param {Map<string, [number, number]>} sizes
   * @returns {Promise<Drawing | null>}
   */
  async of(key, picture, sizes) {
    this.current.abort();
    const { signal } = (this.current = new AbortController());
    const known = this.known.get(key);
    if (known) return known;
    const drawing = await this.compute(picture, sizes, signal);
    if (signal.aborted) return null;
    this.known.set(key, drawing);
    if (this.known.size > REMEMBERED) this.known.delete(this.known.keys().next().value ?? "");
    return drawing;
  }

  forget() {
    this.known.clear();
  }

  /** @param {Picture} picture @param {Map<string, [number, number]>} sizes @param {AbortSignal} signal */
  async compute(picture, sizes, signal) {
    if (picture.boxes.length <= MOST_FOR_GRAPHVIZ) {
      try {
        const graphviz = await this.graphviz();
        return fromViz(picture, await graphviz(toViz(picture, sizes), signal));
      } catch (error) {
        this.reason = String(error);
      }
    }
    return draw(picture, sizes);
  }
}
