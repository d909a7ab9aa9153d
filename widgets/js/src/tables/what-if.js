// The box of a trace cache: a call is typed, Enter asks whether it would hit or miss, and why; nothing is traced.

import { card, marked } from "../cards/card.js";
import { h } from "../dom.js";

/**
 * @typedef {object} Answer what a call would do, or under "error" why that is not known
 * @property {string} call @property {string} [error] @property {boolean} [hit]
 * @property {import("../cards/card.js").Story[]} [stories] @property {[number, number] | null} [trace]
 */

const LATE = 8000; // milliseconds after which the reader is told that there is no answer: one may come yet

/** @param {(message: any) => void} tell */
export function whatIf(tell) {
  const input = /** @type {HTMLInputElement} */ (
    h("input", { type: "text", class: "ll-call", "aria-label": "What if: a call to ask about", placeholder: "f(x[:5], training=True)", spellcheck: "false", autocomplete: "off" })
  );
  const said = h("div", { class: "ll-what-if-answer", role: "status" });
  /** @type {any} */
  let late;
  const form = h("form", { class: "ll-what-if-form" }, h("label", { class: "ll-quiet", "aria-hidden": "true" }, "What if?"), input, h("button", { type: "submit" }, "Ask"));
  const ask = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!input.value.trim()) return wait("Write a call, as you would in a cell: f(x[:5], training=True).");
    form.setAttribute("aria-busy", "true");
    wait("…");
    late = setTimeout(() => wait("No answer yet: the kernel is busy, or was restarted."), LATE);
    tell({ type: "would", call: input.value });
  };
  form.addEventListener("submit", ask);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.stopPropagation();
    ask(event); // no form is sent by Enter in a cell's output: JupyterLab prevents the line break that comes before
  });
  input.addEventListener("input", () => say()); // what stands there is the answer to something else
  const say = (/** @type {HTMLElement[]} */ ...content) => {
    clearTimeout(late);
    said.replaceChildren(...content);
  };
  const wait = (/** @type {string} */ text) => say(h("p", { class: "ll-quiet" }, text));
  let shown = "";
  return {
    element: h("div", { class: "ll-what-if" }, form, said),
    /** @param {Answer | null} answer @param {string} example a call of the function that is shown */
    show(answer, example) {
      input.placeholder = example;
      const key = JSON.stringify(answer);
      if (!answer || key === shown) return;
      shown = key;
      form.removeAttribute("aria-busy");
      if (!input.value) input.value = answer.call;
      if (answer.error) say(h("p", {}, h("b", {}, "No answer: "), ...marked(answer.error)));
      else {
        const verdict = h("p", {}, h("b", {}, answer.hit ? "✓ hit" : "✗ miss"), " ", h("code", {}, answer.call));
        say(verdict, ...(answer.stories ?? []).map((story) => card(story, () => undefined)));
      }
    },
  };
}
