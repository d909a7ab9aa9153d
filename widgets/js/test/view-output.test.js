// An output of JupyterLab that shows a view: by ipywidgets' renderer where its model is there, else by its static forms.

import assert from "node:assert/strict";
import { test } from "node:test";

import { VIEW, viewOutput } from "../src/labextension/view-output.js";

/** A renderer like ipywidgets', which draws `found.widget` where there is one, and says once more what it was given when it has restored models. */
function ofWidgets(found) {
  const renderer = {
    widgets: [],
    isDisposed: false,
    disposed: { connect() {} },
    node: { textContent: "", append() {} },
    removeClass() {},
    addWidget: (one) => renderer.widgets.push(one),
    _rerenderMimeModel: null,
    restored: () => renderer._rerenderMimeModel && renderer.renderModel(renderer._rerenderMimeModel),
    async renderModel() {
      if (!found.widget) return;
      renderer._rerenderMimeModel = null;
      renderer.addWidget(found.widget);
    },
  };
  return renderer;
}

/** Static forms, which know whether they have been taken away. */
function forms(renderer) {
  const made = { isForms: true, async renderModel() {}, dispose: () => renderer.widgets.splice(renderer.widgets.indexOf(made), 1) };
  return made;
}

test("a model that comes after ipywidgets has given it up is drawn once it is there", async () => {
  const found = { widget: /** @type {any} */ (null) };
  const renderer = ofWidgets(found);
  const output = viewOutput({ createRenderer: (/** @type {string} */ type) => (type === "text/html" ? forms(renderer) : renderer) });
  await output.renderModel({ data: { [VIEW]: { model_id: "late" } } });
  assert.deepEqual(renderer.widgets.map(({ isForms }) => isForms), [true]);
  found.widget = { isForms: false };
  await renderer.restored();
  assert.deepEqual(renderer.widgets, [found.widget]);
  await renderer.restored();
  assert.deepEqual(renderer.widgets, [found.widget]); // and is left alone from then on
});
