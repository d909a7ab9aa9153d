// An output that shows a view: the live widget where its model is there, else the static forms beside it.
//
// JupyterLab's own renderer of widgets says "model not found" in a notebook whose kernel has gone, and draws the widget
// anew whenever its output changes. This is the same renderer (ipywidgets looks for it, to give it its manager), but it
// leaves the widget alone where only the static forms are others, and shows those where there is no widget.

export const VIEW = "application/vnd.limelight.view+json";
const WIDGET = "application/vnd.jupyter.widget-view+json";
const PATIENCE = 300; // milliseconds without a widget until the static forms are shown

/** By the id of the widget's model, what takes its static forms. @type {Map<string, (forms: Record<string, string>) => void>} */
const shown = new Map();

/** Views say what their static forms are by now; from here on what is saved is that. */
export function listen() {
  document.addEventListener("limelight-static", (event) => {
    const { model_id, forms } = /** @type {CustomEvent} */ (event).detail;
    shown.get(model_id)?.(forms);
  });
}

/** @param {any} rendermime the notebook's registry of renderers */
export function viewOutput(rendermime) {
  let live;
  try {
    live = rendermime.createRenderer(WIDGET);
  } catch {
    return rendermime.createRenderer("text/html"); // nothing here draws widgets
  }
  const output = new ViewOutput(rendermime, live);
  live.renderModel = (/** @type {any} */ model) => output.renderModel(model);
  return live;
}

class ViewOutput {
  /** @param {any} rendermime @param {any} live ipywidgets' renderer, a panel of Lumino */
  constructor(rendermime, live) {
    this.rendermime = rendermime;
    this.live = live;
    this.draw = live.renderModel.bind(live);
    this.modelId = "";
    /** @type {any} */
    this.fallback = null;
    live.disposed.connect(() => shown.delete(this.modelId));
  }

  get isLive() {
    return this.live.widgets.some((/** @type {any} */ one) => one !== this.fallback);
  }

  /** @param {any} model of the output */
  async renderModel(model) {
    const id = model.data[VIEW].model_id;
    if (id === this.modelId && this.isLive) return; // its static forms are others, and nothing else
    shown.delete(this.modelId);
    this.live.removeClass("ll-ended");
    this.modelId = id;
    shown.set(id, (forms) => model.setData({ data: { ...model.data, ...forms } }));
    this.removeFallback();
    const drawing = this.draw(model).then(() => this.drawn(model));
    await Promise.race([drawing, new Promise((done) => setTimeout(done, PATIENCE))]);
    await this.settle(model);
  }

  /**
   * On a busy machine models come after ipywidgets has given them up for lost; here it waits for them after all, and
   * tries again when it has restored some.
   * @param {any} model
   */
  drawn(model) {
    if (!this.isLive) this.live._rerenderMimeModel = model;
    else this.watch(this.modelId);
    return this.settle(model);
  }

  /** Marks the output of a widget whose kernel has gone or was restarted: it looks alive. @param {string} id */
  async watch(id) {
    const manager = await this.live._manager?.promise;
    const widget = manager?.has_model(id) && (await manager.get_model(id));
    widget?.on?.("comm_live_update", () => id === this.modelId && this.live.toggleClass("ll-ended", !widget.comm_live));
  }

  /** The widget has turned up, or has not yet, or will not. @param {any} model */
  async settle(model) {
    if (this.live.isDisposed) return;
    if (this.isLive) return this.removeFallback();
    this.removeFallback();
    this.live.node.textContent = "";
    this.live.removeClass("jupyter-widgets"); // which an error has
    this.fallback = this.rendermime.createRenderer("text/html");
    this.live.addWidget(this.fallback);
    await this.fallback.renderModel(model);
  }

  removeFallback() {
    if (!this.fallback) return;
    this.live.node.append(this.fallback.node); // the renderer may have emptied its element, and Lumino does not know
    this.fallback.dispose();
    this.fallback = null;
  }
}
