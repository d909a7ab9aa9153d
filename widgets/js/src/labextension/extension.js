// The JupyterLab extension: a container of module federation, written by hand, as it imports nothing that is built.

import { dock } from "./dock.js";
import { listen, VIEW, viewOutput } from "./view-output.js";

const BEFORE_WIDGETS = -20; // ipywidgets has -10; of those that can draw an output the lowest rank does

/** @type {any} modules that JupyterLab shares, by name and version */
let shared;

const views = {
  id: "limelight:views",
  description: "Shows the picture of a view whose kernel has gone, and keeps the picture that is saved up to date.",
  autoStart: true,
  /** @param {any} app */
  activate(app) {
    listen();
    app.docRegistry.addWidgetExtension("Notebook", {
      /** @param {any} panel */
      createNew({ content: { rendermime } }) {
        const createRenderer = () => viewOutput(rendermime);
        rendermime.addFactory({ safe: false, mimeTypes: [VIEW], createRenderer }, BEFORE_WIDGETS);
      },
    });
  },
};

/** @type {any} */
const page = globalThis;
page._JUPYTERLAB ??= {};
page._JUPYTERLAB.limelight = {
  init: (/** @type {any} */ scope) => void (shared = scope),
  get: async () => {
    const plugins = [views, await dock(shared)];
    return () => ({ __esModule: true, default: plugins });
  },
};
