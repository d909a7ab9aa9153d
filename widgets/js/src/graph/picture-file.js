// The picture as a file of its own: what the style sheet says is written on each element, and nothing needs the page.

import { s } from "../dom.js";

const STYLES = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "font-family", "text-anchor", "text-decoration",
];
const AROUND = 12;

/**
 * The whole picture at its natural size, whatever part of it is seen.
 * @param {SVGElement} svg @param {{width: number, height: number}} drawing @param {string} title @param {string} description
 */
export function svgText(svg, { width, height }, title, description) {
  const size = { width: Math.ceil(width + 2 * AROUND), height: Math.ceil(height + 2 * AROUND) };
  const paper = getComputedStyle(svg).getPropertyValue("--ll-paper");
  const copy = /** @type {SVGElement} */ (svg.cloneNode(true));
  written(svg, copy);
  const marker = copy.querySelector("marker")?.id ?? "";
  const stage = /** @type {SVGElement} */ (copy.lastElementChild);
  stage.setAttribute("transform", `translate(${AROUND},${AROUND})`);
  for (const name of [...copy.attributes].map((one) => one.name)) copy.removeAttribute(name);
  const all = { xmlns: "http://www.w3.org/2000/svg", ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "img" };
  for (const [name, value] of Object.entries(all)) copy.setAttribute(name, String(value));
  const ground = s("rect", { ...size, fill: colourOf(paper, svg) });
  copy.prepend(s("title", {}, title), s("desc", {}, description), ground);
  const text = new XMLSerializer().serializeToString(copy);
  return `${marker ? text.replaceAll(marker, "arrow") : text}\n`;
}

/** What a custom property comes to where it is used. @param {string} value @param {Element} where */
function colourOf(value, where) {
  const probe = document.createElement("span");
  probe.style.color = value;
  where.parentElement?.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** Writes the computed styles of an element, and of all in it, on its copy; what is not seen goes. @param {Element} from @param {Element} to */
function written(from, to) {
  const style = getComputedStyle(from);
  for (const name of STYLES) {
    const value = style.getPropertyValue(name);
    if (value && from instanceof SVGElement && !(from instanceof SVGSVGElement)) to.setAttribute(name, value);
  }
  for (const name of ["class", "style", "tabindex", "role", "aria-label", "aria-pressed", "aria-hidden", ...Object.keys(/** @type {SVGElement} */ (from).dataset ?? {}).map((key) => `data-${key}`)]) {
    to.removeAttribute(name);
  }
  const [children, copies] = [[...from.children], [...to.children]];
  children.forEach((child, k) => {
    const { display, visibility } = getComputedStyle(child);
    const unseen = display === "none" || visibility === "hidden";
    if (unseen && !["defs", "marker", "title"].includes(child.tagName)) copies[k].remove();
    else if (child.tagName !== "title") written(child, copies[k]);
  });
}

/** The same as an image of twice the size. @param {string} svg @param {{width: number, height: number}} drawing @returns {Promise<Blob>} */
export async function pngOf(svg, { width, height }) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * Math.ceil(width + 2 * AROUND);
    canvas.height = 2 * Math.ceil(height + 2 * AROUND);
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("it is too large"))), "image/png"));
  } finally {
    URL.revokeObjectURL(image.src);
  }
}
