// The graph view as a widget.

import { h } from "../dom.js";
import { linkRows } from "../graph/linked-listing.js";
import { linkSelection } from "../graph/linked-selection.js";
import { GraphView } from "../graph/view.js";
import { nameLandmark } from "../landmark.js";
import { lent } from "../lent.js";

export default lent((Store, oneTabStop) => {
  /** @type {import("../store.js").Store} */
  let store;
  return {
    /** @param {{model: any}} context */
    initialize({ model }) {
      store = new Store(model);
    },
    /** @param {{model: any, el: HTMLElement, signal: AbortSignal, host: any}} context */
    render({ model, el, signal, host }) {
      const root = h("section", { class: "ll ll-graph-view", role: "group", "aria-label": "Graph" });
      el.append(root);
      nameLandmark(root, "Graph");
      const worker = async () => {
        const { layout } = (await host.getWidget(model.get("engine"))).exports;
        /** @type {import("../graph/layout.js").Draw} */
        const draw = (picture, sizes, manner, at) => layout({ picture, sizes, manner }, at);
        return draw;
      };
      const view = new GraphView(root, worker, signal);
      view.onWhole = () => store.tell({ type: "whole" });
      linkRows(view, root, signal);
      linkSelection(view, root);
      oneTabStop?.(root);
      return store.show((state) => view.show(state), signal);
    },
  };
});
