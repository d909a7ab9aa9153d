// The graph view as a widget.

import { h } from "../dom.js";
import { linkRows } from "../graph/linked-listing.js";
import { GraphView } from "../graph/view.js";
import { lent } from "../lent.js";
import { Store } from "../store.js";

export default lent(() => {
  /** @type {Store} */
  let store;
  return {
    /** @param {{model: any}} context */
    initialize({ model }) {
      store = new Store(model);
    },
    /** @param {{model: any, el: HTMLElement, signal: AbortSignal, host: any}} context */
    render({ model, el, signal, host }) {
      const root = h("section", { class: "ll ll-graph-view", "aria-label": "Graph", "data-lm-suppress-shortcuts": "true" });
      el.append(root);
      const worker = async () => {
        const { layout } = (await host.getWidget(model.get("engine"))).exports;
        /** @type {import("../graph/layout.js").Draw} */
        const draw = (picture, sizes, manner, at) => layout({ picture, sizes, manner }, at);
        return draw;
      };
      const view = new GraphView(root, worker, signal);
      linkRows(view, root, signal);
      return store.show((state) => view.show(state), signal);
    },
  };
});
