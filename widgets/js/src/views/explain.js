// Cards: the stories of an answer, the costliest first.

import { card, folded, marked } from "../cards/card.js";
import { h } from "../dom.js";
import { lent } from "../lent.js";
import { widget } from "../tables/table-view.js";

/** @typedef {import("../cards/card.js").Story} Story */

/** @param {HTMLElement} root */
function build(root) {
  const cards = h("div", { class: "ll-stories" });
  const status = h("span", { class: "ll-hidden", role: "status" });
  root.setAttribute("role", "group"); // no landmark: a notebook has many, and two may be called the same
  root.append(cards, status);
  return (/** @type {{stories: Story[], text: string, notes: string[]}} */ { stories, text, notes }) => {
    const say = (/** @type {string} */ words) => (status.textContent = words);
    const shown = stories.map((story) => card(story, say));
    const plain = h("div", { class: "ll-story" }, ...text.split("\n").map((line) => h("p", {}, ...marked(line))));
    cards.replaceChildren(...(shown.length ? shown : [plain]), ...folded("more about the whole", notes));
  };
}

// Text to read, with buttons in it: Tab leads to each of them.
export default lent((Store) => widget("explain", "Explanation", build)(Store, undefined));
