// Entries of JupyterLab's command palette: the dashboard of the notebook in front, and each of its views.
//
// Without a dashboard a cell is added that opens one, and run: what happens stands in the notebook, as if it were typed.

const CATEGORY = "Limelight";
const CODE = "import limelight as ll\nll.widgets.dashboard()";
const VIEWS = { "": "Limelight Dashboard", graph: "Limelight Dashboard: Graph", cache: "Limelight Dashboard: Traces", tape: "Limelight Dashboard: Tape", devices: "Limelight Dashboard: Devices" };
const PATIENCE = 20_000; // milliseconds for a cell that has been run to show what it shows
const OPEN = "limelight-open"; // as in src/dashboard/dashboard.js

/** @param {any} app @param {any} palette null where there is none @param {(notebook: string) => any} placeOf the panel of a notebook's dashboard */
export function commands(app, palette, placeOf) {
  /** The notebook in front, or the one whose dashboard is. */
  const notebook = () => {
    const current = app.shell.currentWidget;
    return [...app.shell.widgets("main")].find((one) => one.content?.activeCell !== undefined && (one === current || placeOf(one.id) === current)) ?? null;
  };
  for (const [view, label] of Object.entries(VIEWS)) {
    const command = `limelight:dashboard${view && "-"}${view}`;
    app.commands.addCommand(command, {
      label,
      isEnabled: () => notebook() !== null,
      execute: async () => {
        const panel = notebook();
        const place = panel && placeOf(panel.id);
        if (place) app.shell.activateById(place.id);
        else if (panel) await added(app, panel);
        const dashboard = view && panel ? await shown(() => placeOf(panel.id)?.node.querySelector(".ll-dashboard")) : null;
        dashboard?.dispatchEvent(new CustomEvent(OPEN, { detail: view }));
      },
    });
    palette?.addItem({ command, category: CATEGORY });
  }
}

/** What `find` gives, as soon as it gives something; null where that takes too long. @param {() => Element | null | undefined} find */
async function shown(find) {
  for (const end = Date.now() + PATIENCE; Date.now() < end; ) {
    const element = find();
    if (element) return element;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return null;
}

/** Adds a cell that opens the dashboard, and runs it. @param {any} app @param {any} panel */
async function added(app, panel) {
  app.shell.activateById(panel.id);
  await app.commands.execute("notebook:insert-cell-below");
  panel.content.activeCell.model.sharedModel.setSource(CODE);
  await app.commands.execute("notebook:run-cell");
}
