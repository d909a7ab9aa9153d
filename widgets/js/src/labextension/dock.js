// A plugin of JupyterLab: gives a place beside the notebook to whoever asks the page for one (src/dashboard/dock.js).

import { commands } from "./commands.js";

/** @type {Record<string, string>} */
const MODES = { right: "split-right", left: "split-left", bottom: "split-bottom", tab: "tab-after" };

/** @param {any} app @param {any} Widget Lumino's @param {any} palette JupyterLab's, if it has one */
function activate(app, Widget, palette) {
  if (app.name !== "JupyterLab") return; // Notebook 7 shows one document, and has no place beside it
  /** @type {Map<string, {widget: any, closed: () => void, mode: string}>} one for each notebook */
  const places = new Map();
  document.addEventListener("limelight:place-beside", (event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    const { notebook, title, closed } = detail;
    const path = [...app.shell.widgets("main")].find(({ id }) => id === notebook)?.context?.path ?? notebook;
    let place = places.get(notebook);
    if (!place || place.widget.isDisposed) {
      const widget = new Widget();
      widget.id = `limelight-beside-${notebook}`;
      widget.addClass("ll-docked");
      widget.title.closable = true;
      place = { widget, closed, mode: "" };
      widget.disposed.connect(() => {
        places.get(notebook)?.closed();
        places.delete(notebook);
      });
      places.set(notebook, place);
    }
    const known = place;
    const move = (/** @type {string} */ where) => {
      const mode = MODES[where] ?? MODES.right;
      if (mode === known.mode) return; // the reader may have moved it since
      known.mode = mode;
      app.shell.add(known.widget, "main", { mode, ref: notebook, activate: false });
    };
    place.closed = closed; // who had the place before is told no more
    const { widget } = place;
    [widget.title.label, widget.title.caption] = [title, "What Limelight's engine does"];
    widget.node.replaceChildren();
    detail.place = { node: widget.node, path, move, show: () => app.shell.activateById(widget.id), close: () => widget.dispose() };
  });
  commands(app, palette, (notebook) => places.get(notebook)?.widget);
}

/**
 * @param {any} shared modules that JupyterLab shares, by name and version: of these it needs Lumino's widgets, and the
 *   token of the command palette
 */
export async function dock(shared) {
  const [lumino, apputils] = await Promise.all(["@lumino/widgets", "@jupyterlab/apputils"].map((name) => first(shared[name])));
  return {
    id: "limelight:dock",
    description: "Gives the dashboard a place beside the notebook, and entries in the command palette.",
    autoStart: true,
    optional: apputils?.ICommandPalette ? [apputils.ICommandPalette] : [],
    activate: (/** @type {any} */ app, /** @type {any} */ palette) => activate(app, lumino.Widget, palette),
  };
}

/** The first version of a shared module, null where there is none. @param {any} versions */
async function first(versions) {
  const [version] = Object.values(versions ?? {});
  return version ? (await version.get())() : null;
}
