// Where the boxes go; remembered.

import { turnOfThePage } from "../turns.js";
import { draw } from "./nested-layout.js";

/**
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./nested-layout.js").Drawing} Drawing
 * @typedef {import("./nested-layout.js").Manner} Manner
 * @typedef {Map<string, [number, number]>} Sizes
 * @typedef {(picture: Picture, sizes: Sizes, manner: Manner, signal: AbortSignal) => Promise<Drawing>} Draw
 */

const MOST_AT_ONCE = 400; // boxes that are laid out here and now; a worker does more, and the page goes on meanwhile
const REMEMBERED = 24;

export class Layouts {
  /** @param {() => Promise<Draw>} worker */
  constructor(worker) {
    this.worker = worker;
    /** @type {Map<string, Drawing>} */
    this.known = new Map();
    this.current = new AbortController();
    /** @type {string} why the worker is not used, for the curious */
    this.reason = "";
  }

  /**
   * The drawing of a picture; null when another was asked for meanwhile.
   * @param {string} key what tells this picture from others @param {Picture} picture @param {Sizes} sizes @param {Manner} [manner]
   * @param {Drawing} [made] where it has been laid out
   * @returns {Promise<Drawing | null>}
   */
  async of(key, picture, sizes, manner = {}, made) {
    this.current.abort();
    const { signal } = (this.current = new AbortController());
    const known = made ?? this.known.get(key);
    if (known) return known;
    const drawing = await this.compute(picture, sizes, manner, signal).catch((error) => {
      if (!signal.aborted) throw error;
    });
    if (signal.aborted || !drawing) return null;
    this.known.set(key, drawing);
    if (this.known.size > REMEMBERED) this.known.delete(this.known.keys().next().value ?? "");
    return drawing;
  }

  forget() {
    this.known.clear();
  }

  /** @param {Picture} picture @param {Sizes} sizes @param {Manner} manner @param {AbortSignal} signal */
  async compute(picture, sizes, manner, signal) {
    if (picture.boxes.length > MOST_AT_ONCE) {
      try {
        const drawing = await (await this.worker())({ ...picture, carried: undefined }, sizes, manner, signal);
        await turnOfThePage(); // to take the answer in was work enough
        return drawing;
      } catch (error) {
        this.reason = String(error);
        if (signal.aborted) throw error;
      }
    }
    return draw(picture, sizes, manner);
  }
}
