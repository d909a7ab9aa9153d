// A list of lines beside a graph view, such as an annotated cell: its rows choose lines, and show which are lit.

/**
 * @typedef {object} Linked
 * @property {(label: string, line: number) => void} chooseSource
 * @property {(lines: {label: string, line: number}[]) => void} onLines
 */

const AROUND = ".widget-vbox";

/** Links `view`, drawn in `root`, with rows that carry `data-ll-source` and `data-ll-line` in the same box of widgets.
 * @param {Linked} view @param {HTMLElement} root @param {AbortSignal} signal
 */
export function linkRows(view, root, signal) {
  const rows = () => /** @type {HTMLElement[]} */ ([...(root.closest(AROUND)?.querySelectorAll("[data-ll-line]") ?? [])]);
  const onClick = (/** @type {MouseEvent} */ event) => {
    const row = /** @type {HTMLElement | null} */ (event.target instanceof Element ? event.target.closest("[data-ll-line]") : null);
    if (!row || !rows().includes(row)) return;
    view.chooseSource(row.dataset.llSource ?? "", Number(row.dataset.llLine));
  };
  document.addEventListener("click", onClick, { signal });
  view.onLines = (lines) => {
    for (const row of rows()) {
      const lit = lines.some(({ label, line }) => label === row.dataset.llSource && String(line) === row.dataset.llLine);
      row.classList.toggle("ll-row-lit", lit);
      if (lit) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  };
}
