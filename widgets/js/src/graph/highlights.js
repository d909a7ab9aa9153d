// Which boxes are chosen, lit by a line of code, or found: classes on the elements of the picture.

export class Highlights {
  /** @param {SVGElement} stage */
  constructor(stage) {
    this.stage = stage;
  }

  /** @param {string | null} chosen a box, or the frame of a fusion group @param {string[]} lit @param {string[]} found */
  set(chosen, lit, found) {
    const [isLit, isFound] = [new Set(lit), new Set(found)];
    const boxes = this.boxes();
    const stop = boxes.some((box) => box.dataset.box === chosen) ? chosen : boxes[0]?.dataset.box;
    for (const box of boxes) {
      const name = box.dataset.box ?? "";
      box.classList.toggle("ll-chosen", name === chosen);
      box.classList.toggle("ll-lit", isLit.has(name));
      box.classList.toggle("ll-found", isFound.has(name));
      box.setAttribute("tabindex", name === stop ? "0" : "-1");
      box.setAttribute("aria-pressed", String(name === chosen));
    }
    for (const frame of this.stage.querySelectorAll(".ll-frame")) {
      frame.classList.toggle("ll-chosen", /** @type {SVGElement} */ (frame).dataset.frame === chosen);
    }
    this.stage.classList.toggle("ll-dimmed", isLit.size > 0 || isFound.size > 0);
    for (const edge of this.stage.querySelectorAll(".ll-edge")) {
      const { source, target } = /** @type {SVGElement} */ (edge).dataset;
      edge.classList.toggle("ll-near", chosen !== null && (source === chosen || target === chosen));
    }
  }

  /** Lights boxes that belong to another: those of its gradient. @param {string[]} names */
  mirror(names) {
    for (const box of this.boxes()) box.classList.toggle("ll-mirrored", names.includes(box.dataset.box ?? ""));
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
