// What the views of tables have in common: a store for the model, a root element for each view, a sentence when empty.

import { h } from "../dom.js";
import { nameLandmark } from "../landmark.js";
import { linkRowsByLine } from "../selection.js";

/**
 * @param {string} name for the element's class @param {string} label
 * @param {(root: HTMLElement, tell: (message: any) => void) => (state: any) => void} build fills a new root; returns what draws
 *   a state; may `tell` the kernel something
 * @param {import("../store.js").Reduce} [reduce]
 */
export function widget(name, label, build, reduce) {
  return (/** @type {import("../lent.js").Stores} */ Store, /** @type {import("../lent.js").OneTabStop | undefined} */ oneTabStop) => {
    /** @type {import("../store.js").Store} */
    let store;
    return {
      /** @param {{model: any}} context */
      initialize({ model }) {
        store = new Store(model, reduce);
      },
      /** @param {{el: HTMLElement, signal: AbortSignal}} context */
      render({ el, signal }) {
        const root = h("section", { class: `ll ll-${name}-view`, role: "group", "aria-label": label });
        el.append(root);
        nameLandmark(root, label);
        linkRowsByLine(root);
        const draw = build(root, (message) => store.tell(message));
        oneTabStop?.(root);
        return store.show(draw, signal);
      },
    };
  };
}

/** A sentence that takes the place of `content` while there is nothing to show. @param {HTMLElement} content */
export function emptyState(content) {
  const sentence = h("p", { class: "ll-empty", hidden: true });
  return {
    sentence,
    /** @param {string} text */
    say(text) {
      sentence.textContent = text;
      sentence.hidden = !text;
      content.hidden = Boolean(text);
    },
  };
}

/** @param {number} share between 0 and 1 @param {...import("../dom.js").Child} children */
export function bar(share, ...children) {
  const width = `${Math.round(Math.min(Math.max(share, 0), 1) * 100)}%`;
  return h("span", { class: "ll-barred" }, h("span", { class: "ll-fill", style: { "inline-size": width }, "aria-hidden": "true" }), ...children);
}

/** A place in the code, with the line itself. @param {[string, number, string] | null} line */
export function lineCell(line) {
  if (!line) return "";
  return h("span", { class: "ll-where" }, `${line[0]}:${line[1]} `, h("code", {}, line[2]));
}
