// What each view's model carries: a few lines that borrow the view's script from the hidden widget that has it, and what all
// views need, which they lend to it, so that no script has its own.

import { hearAlways } from "./late-model.js";
import { oneTabStop } from "./one-tab-stop.js";
import { Store } from "./store.js";
import { themed } from "./theme.js";

export default () => {
  /** @type {any} */
  let own;
  /** @type {Promise<any> | undefined} */
  let view;
  return {
    /** @param {{model: any}} context */
    initialize({ model }) {
      own = model; // it outlives each output that shows it; that of `render` does not
      hearAlways(model);
    },
    /** @param {{host: any, el: HTMLElement, signal: AbortSignal}} context only who draws is given the host, through whom other widgets are reached */
    async render(context) {
      const paint = () => themed(context.el, own);
      paint();
      own.on("change:theme", paint);
      context.signal.addEventListener("abort", () => own.off("change:theme", paint));
      view ??= borrowed(own, context.host);
      view.catch(() => (view = undefined)); // the next output tries again
      return (await view).render(context);
    },
  };
};

/** @param {any} model @param {any} host */
async function borrowed(model, host) {
  const script = () => host.getWidget(model.get("script"));
  const { exports } = await script().catch(script); // it waits for 10 seconds, which a busy page may need
  const view = exports.view(Store, oneTabStop);
  view.initialize({ model });
  return view;
}
