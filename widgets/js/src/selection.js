// What is chosen, from view to view of one page: a view says SELECTED, which bubbles up; a dashboard tells its others SELECT.

export const SELECTED = "ll-selected";
export const SELECT = "ll-select";

/**
 * @typedef {object} Selection
 * @property {string} [op] @property {[string, number] | null} [line] name of a cell or file, and the number
 * @property {string} [tensor] the name of a variable @property {[number, number] | null} [trace]
 */

/** Says from within a view what the reader has chosen there. @param {Element} from @param {Selection} chosen */
export function selected(from, chosen) {
  from.dispatchEvent(new CustomEvent(SELECTED, { bubbles: true, detail: chosen }));
}

/** A place in the code as a key of rows. @param {[string, number, ...any[]] | null | undefined} line */
export const atLine = (line) => (line ? `${line[0]}:${line[1]}` : null);

/**
 * Rows of a table that bear `data-at` are linked by their line: a click says it, and those of the chosen line are marked.
 * @param {HTMLElement} root
 */
export function linkRowsByLine(root) {
  let line = "";
  let tensor = "";
  const mark = () => {
    for (const row of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-at]"))) {
      const named = !!tensor && (row.dataset.tensors ?? "").split("\n").includes(tensor);
      row.classList.toggle("ll-linked", named || (!!line && row.dataset.at === line));
    }
  };
  new MutationObserver(mark).observe(root, { childList: true, subtree: true });
  root.addEventListener("click", (event) => {
    const row = /** @type {HTMLElement | null} */ (event.target instanceof Element ? event.target.closest("[data-at]") : null);
    if (!row || row.dataset.silent) return;
    const [, label, number] = /^(.*):(\d+)$/.exec(row.dataset.at ?? "") ?? [];
    if (label) selected(row, { line: [label, Number(number)], op: row.dataset.op });
  });
  root.addEventListener(SELECT, (event) => {
    const chosen = /** @type {CustomEvent<Selection>} */ (event).detail;
    [line, tensor] = [atLine(chosen.line) ?? "", chosen.tensor ?? ""];
    mark();
    root.querySelector(".ll-linked")?.scrollIntoView({ block: "nearest" });
  });
}
