// The notebook around a card: its cells found by their labels, and a new cell below the card's own.
//
// A widget is given no notebook. JupyterLab and Notebook keep theirs in the page, and what a reader could do by hand is
// done here: press the button that inserts a cell, and paste. Other front ends have no such page: `insertable` is false.

const CELL = ".jp-Cell";
const INSERT = '[data-jp-item-name="insert"] :is(jp-button, button), [data-command="notebook:insert-cell-below"]';
const GESTURES = ["mousedown", "click"]; // JupyterLab's buttons act on the first, plain ones on the second
const FRAMES = 30;
const FLASH_MILLISECONDS = 1600;

/** The notebook that an element is in. @param {Element} element */
function panelOf(element) {
  return element.closest(".jp-NotebookPanel");
}

/** Whether a cell can be inserted below the one that shows `element`. @param {Element} element */
export function insertable(element) {
  return Boolean(element.closest(CELL) && panelOf(element)?.querySelector(INSERT));
}

/**
 * Puts `code` into a new cell below the one that shows `element`; says whether it did.
 * @param {HTMLElement} element @param {string} code
 */
export async function insertBelow(element, code) {
  const [panel, own] = [panelOf(element), element.closest(CELL)];
  const control = /** @type {HTMLElement | null} */ (panel?.querySelector(INSERT));
  if (!panel || !own || !control) return false;
  if (!own.classList.contains("jp-mod-active")) own.dispatchEvent(new MouseEvent("mousedown", { bubbles: true, button: 0 }));
  const before = new Set(panel.querySelectorAll(CELL));
  for (const gesture of GESTURES) {
    control.dispatchEvent(new MouseEvent(gesture, { bubbles: true, cancelable: true, button: 0 }));
    const editor = await newEditor(panel, before);
    if (editor) return paste(editor, code);
  }
  return false;
}

/** The editor of the cell that is not among those `before`, once it is there. @param {Element} panel @param {Set<Element>} before */
async function newEditor(panel, before) {
  for (let frames = 0; frames < FRAMES; frames++) {
    const cell = [...panel.querySelectorAll(CELL)].find((one) => !before.has(one));
    const editor = /** @type {HTMLElement | null | undefined} */ (cell?.querySelector(".cm-content"));
    if (editor) return editor;
    await new Promise(requestAnimationFrame);
  }
  return null;
}

/** @param {HTMLElement} editor @param {string} code */
function paste(editor, code) {
  editor.focus();
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", code);
  editor.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  return true;
}

/** The cell called "In[3]" in the notebook around `element`, if the page has it. @param {Element} element @param {string} label */
export function cellOf(element, label) {
  const number = /^In\[(\d+)\]$/.exec(label)?.[1];
  if (!number) return null;
  const prompts = panelOf(element)?.querySelectorAll(".jp-InputPrompt") ?? [];
  return [...prompts].find((prompt) => prompt.textContent?.trim() === `[${number}]:`)?.closest(CELL) ?? null;
}

/** Brings a line of the cell called `label` into sight, and marks it for a moment. @param {Element} element @param {string} label @param {number} line */
export function showLine(element, label, line) {
  const cell = cellOf(element, label);
  const row = cell?.querySelectorAll(".cm-line")[line - 1] ?? cell;
  if (!row) return false;
  row.scrollIntoView({ block: "center" });
  const listed = /** @type {HTMLElement | null | undefined} */ (
    panelOf(element)?.querySelector(`[data-ll-source="${label}"][data-ll-line="${line}"]`)
  );
  listed?.click(); // the annotated cell's row, and with it the boxes of the graph below
  row.classList.add("ll-flash");
  setTimeout(() => row.classList.remove("ll-flash"), FLASH_MILLISECONDS);
  return true;
}

/** @param {string} text @returns {Promise<boolean>} whether it is on the clipboard now */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no permission, or a page without https: the reader can still select the code
  }
}
