// A place beside the notebook, where the page has one to give: limelight's JupyterLab extension (src/labextension) hears the question.

/**
 * @typedef {object} Place
 * @property {HTMLElement} node where to draw @property {string} path the notebook's
 * @property {(where: string) => void} move to "right", "left", "bottom" of the notebook, or behind its "tab"
 * @property {() => void} show brings it to sight @property {() => void} close takes it away
 */

/**
 * @param {HTMLElement} near an element of the notebook's page @param {string} title
 * @param {() => void} closed told when the reader closes it
 * @returns {Place | null} null where there is no such place
 */
export function placeBeside(near, title, closed) {
  const notebook = near.closest(".jp-NotebookPanel")?.id;
  if (!notebook) return null;
  const detail = { notebook, title, closed, /** @type {Place | null} */ place: null };
  document.dispatchEvent(new CustomEvent("limelight:place-beside", { detail }));
  return detail.place;
}

/** Resolves when an element is on the page, or `signal` is aborted. @param {HTMLElement} el @param {AbortSignal} signal */
export async function attached(el, signal) {
  while (!el.isConnected && !signal.aborted) await new Promise(requestAnimationFrame);
}
