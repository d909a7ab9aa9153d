// Which boxes are chosen, lit by a line of code, or found: classes on the elements of the picture.

export class Highlights {
  /** @param {SVGElement} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {string | null} */
    this.chosen = null;
    /** @type {Set<string>} */
    this.lit = new Set();
    /** @type {Set<string>} */
    this.found = new Set();
    /** @type {Set<string>} boxes that belong to another: those of its gradient */
    this.mirrored = new Set();
  }

  /** @param {string | null} chosen a box, or the frame of a fusion group @param {string[]} lit @param {string[]} found @param {string[]} mirrored */
  set(chosen, lit, found, mirrored) {
    [this.chosen, this.lit, this.found, this.mirrored] = [chosen, new Set(lit), new Set(found), new Set(mirrored)];
    this.draw();
  }

  /** Marks what is in the picture by now. */
  draw() {
    const { chosen, lit, found, mirrored } = this;
    const boxes = this.boxes();
    const stop = boxes.some((box) => box.dataset.box === chosen) ? chosen : boxes[0]?.dataset.box;
    for (const box of boxes) {
      const name = box.dataset.box ?? "";
      box.classList.toggle("ll-chosen", name === chosen);
      box.classList.toggle("ll-lit", lit.has(name));
      box.classList.toggle("ll-found", found.has(name));
      box.classList.toggle("ll-mirrored", mirrored.has(name));
      set(box, "tabindex", name === stop ? "0" : "-1");
      set(box, "aria-pressed", String(name === chosen));
    }
    for (const frame of this.stage.querySelectorAll(".ll-frame")) {
      frame.classList.toggle("ll-chosen", /** @type {SVGElement} */ (frame).dataset.frame === chosen);
    }
    this.stage.classList.toggle("ll-dimmed", lit.size > 0 || found.size > 0);
    for (const edge of this.stage.querySelectorAll(".ll-edge")) {
      const { source, target } = /** @type {SVGElement} */ (edge).dataset;
      edge.classList.toggle("ll-near", chosen !== null && (source === chosen || target === chosen));
    }
  }

  /** Lights other boxes that belong to one. @param {string[]} names */
  mirror(names) {
    const before = this.mirrored;
    this.mirrored = new Set(names);
    if (!before.size && !names.length) return; // as nearly everywhere under the pointer
    for (const box of this.boxes()) box.classList.toggle("ll-mirrored", this.mirrored.has(box.dataset.box ?? ""));
  }

  /** Puts the focus on the box that the Tab key leads to. */
  focus() {
    this.boxes().find((box) => box.getAttribute("tabindex") === "0")?.focus({ preventScroll: true });
  }

  /** @returns {SVGElement[]} */
  boxes() {
    return /** @type {SVGElement[]} */ ([...this.stage.querySelectorAll(".ll-box")]);
  }
}

/** An attribute that is written again is styled again. @param {Element} element @param {string} name @param {string} value */
function set(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
