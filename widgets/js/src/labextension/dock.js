// A plugin of JupyterLab: gives a place beside the notebook to whoever asks the page for one (src/dashboard/dock.js).

/** @param {any} app @param {any} Widget Lumino's */
function activate(app, Widget) {
  if (app.name !== "JupyterLab") return; // Notebook 7 shows one document, and has no place beside it
  /** @type {Map<string, {widget: any, closed: () => void}>} one for each notebook */
  const places = new Map();
  document.addEventListener("limelight:place-beside", (event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    const { notebook, title, closed } = detail;
    let place = places.get(notebook);
    if (!place || place.widget.isDisposed) {
      const widget = new Widget();
      widget.id = `limelight-beside-${notebook}`;
      widget.addClass("ll-docked");
      widget.title.closable = true;
      place = { widget, closed };
      widget.disposed.connect(() => {
        places.get(notebook)?.closed();
        places.delete(notebook);
      });
      app.shell.add(widget, "main", { mode: "split-right", ref: notebook, activate: false });
      places.set(notebook, place);
    }
    place.closed = closed; // who had the place before is told no more
    const { widget } = place;
    [widget.title.label, widget.title.caption] = [title, "What Limelight's engine does"];
    widget.node.replaceChildren();
    detail.place = { node: widget.node, show: () => app.shell.activateById(widget.id), close: () => widget.dispose() };
  });
}

/** @param {any} shared modules that JupyterLab shares, by name and version: of these it needs Lumino's widgets */
export async function dock(shared) {
  const [module] = Object.values(shared["@lumino/widgets"]);
  const { Widget } = (await module.get())();
  return {
    id: "limelight:dock",
    description: "Gives the dashboard a place beside the notebook.",
    autoStart: true,
    activate: (/** @type {any} */ app) => activate(app, Widget),
  };
}
