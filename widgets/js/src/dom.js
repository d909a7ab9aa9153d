// Elements from JavaScript. Text goes in as text nodes only, so that no name can become markup.

const SVG = "http://www.w3.org/2000/svg";
const MATHS = "http://www.w3.org/1998/Math/MathML";

/**
 * @typedef {Record<string, any>} Properties attributes; `class`, `dataset`, `style` (custom properties), and `onclick`,
 *   `onkeydown` ... for listeners; null, undefined and false are left out,
 *   but for `aria-*`, which say "false"
 * @typedef {Node | string | number | null | undefined | false} Child
 */

/** @param {string} name @param {Properties} [properties] @param {...Child} children @returns {HTMLElement} */
export function h(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** @param {string} name @param {Properties} [properties] @param {...Child} children @returns {SVGElement} */
export function s(name, properties = {}, ...children) {
  return fill(/** @type {SVGElement} */ (document.createElementNS(SVG, name)), properties, children);
}

/** Formulae: a tree of [name, ...children] as MathML. @param {any} tree @returns {Node} */
export function m(tree) {
  if (typeof tree === "string") return document.createTextNode(tree);
  const [name, ...children] = tree;
  const made = document.createElementNS(MATHS, name);
  if (name === "mspace") made.setAttribute("width", "0.35em");
  made.append(...children.map(m));
  return made;
}

/** @param {string} label @param {() => void} action @param {Properties} [properties] @param {...Child} children */
export function button(label, action, properties = {}, ...children) {
  const content = children.length ? children : [label];
  return h("button", { type: "button", title: label, "aria-label": label, onclick: action, ...properties }, ...content);
}

/** Puts other buttons into `parent`; where one of the old ones had the focus, the pressed one gets it. @param {HTMLElement} parent @param {...HTMLElement} children */
export function replaceKeepingFocus(parent, ...children) {
  const had = parent.contains(document.activeElement);
  parent.replaceChildren(...children);
  if (had) /** @type {HTMLElement | null} */ (parent.querySelector('[aria-pressed="true"]'))?.focus();
}

/**
 * @template {HTMLElement | SVGElement} T
 * @param {T} element @param {Properties} properties @param {Child[]} children @returns {T}
 */
function fill(element, properties, children) {
  for (const key in properties) {
    const value = properties[key];
    if (value === null || value === undefined || value === false) {
      if (value === false && key.startsWith("aria-")) element.setAttribute(key, "false");
    } else if (typeof value === "function") element.addEventListener(key.slice(2), value); // onclick ...
    else if (key === "dataset") for (const name in value) element.setAttribute(`data-${hyphened(name)}`, value[name]);
    else if (key === "style") for (const name in value) element.style.setProperty(name, value[name]);
    else element.setAttribute(key, value === true && !key.startsWith("aria-") ? "" : value);
  }
  for (const child of children) {
    if (child instanceof Node) element.appendChild(child);
    else if (child !== null && child !== undefined && child !== false) element.appendChild(document.createTextNode(String(child)));
  }
  return element;
}

/** "llLine" as "ll-line". @param {string} name */
const hyphened = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/**
 * An id that no other view on the page has, though each view has a copy of this module: arrow heads that refer to those of
 * a view that is not drawn are not drawn either.
 * @param {string} prefix
 */
export function uniqueId(prefix) {
  return `${prefix}-${Math.random().toString(36).slice(2)}`;
}
