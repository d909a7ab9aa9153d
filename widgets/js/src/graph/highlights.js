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

  /** Marks what is in the picture by now, or what has come. @param {Iterable<Element>} [elements] */
  draw(elements = this.stage.querySelectorAll(".ll-box, .ll-frame, .ll-edge")) {
    for (const element of elements) this.mark(/** @type {SVGElement} */ (element));
    this.stage.classList.toggle("ll-dimmed", this.lit.size > 0 || this.found.size > 0);
    const stops = this.boxes('[tabindex="0"]');
    const stop = stops.find((box) => box.dataset.box === this.chosen) ?? stops[0] ?? this.boxes()[0];
    for (const box of [...stops, ...(stop ? [stop] : [])]) set(box, "tabindex", box === stop ? "0" : "-1");
  }

  /** @param {SVGElement} element a box, the outline of a frame, or an edge */
  mark(element) {
    const { chosen, lit, found, mirrored } = this;
    const { dataset, classList } = element;
    const { box: name, source, target } = dataset;
    if (source !== undefined) classList.toggle("ll-near", chosen !== null && (source === chosen || target === chosen));
    else classList.toggle("ll-chosen", (name ?? dataset.frame) === chosen);
    if (name === undefined) return;
    classList.toggle("ll-lit", lit.has(name));
    classList.toggle("ll-found", found.has(name));
    classList.toggle("ll-mirrored", mirrored.has(name));
    set(element, "aria-pressed", String(name === chosen));
    if (name === chosen) set(element, "tabindex", "0");
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
    this.boxes('[tabindex="0"]')[0]?.focus({ preventScroll: true });
  }

  /** @param {string} [which] of the boxes @returns {SVGElement[]} */
  boxes(which = "") {
    return /** @type {SVGElement[]} */ ([...this.stage.querySelectorAll(`.ll-box${which}`)]);
  }
}

/** An attribute that is written again is styled again. @param {Element} element @param {string} name @param {string} value */
function set(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
