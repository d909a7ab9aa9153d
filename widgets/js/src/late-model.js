// Models that a busy page has made late.

const HEARS = "_handle_comm_msg"; // ipywidgets' name for what takes the kernel's messages

/**
 * Has a model hear the kernel, however long it took to load. anywidget gives that 2 seconds: on a page that was busy for
 * longer it draws the view, but keeps all messages from it for good. So they go past it, straight to ipywidgets.
 * @param {any} lent the model as anywidget lends it, without its comm
 */
export function hearAlways(lent) {
  const model = itself(lent);
  let kind = model;
  while (kind && kind[HEARS] === model[HEARS]) kind = Object.getPrototypeOf(kind);
  if (kind?.[HEARS]) model.comm?.on_msg(kind[HEARS].bind(model)); // else anywidget stands in nobody's way
}

/** The model that is lent: who listens to a change is told whose it is. @param {any} lent */
function itself(lent) {
  /** @type {any} */
  let model = null;
  const told = (/** @type {any} */ whose) => (model = whose);
  const theme = lent.get("theme");
  lent.on("change:theme", told);
  lent.set("theme", "");
  lent.set("theme", theme);
  lent.off("change:theme", told);
  return model;
}
