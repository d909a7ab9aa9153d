// The dashboard: several views in one widget, linked by one selection, beside the notebook where the page has a place.

import { Dashboard } from "../dashboard/dashboard.js";
import { attached, placeBeside } from "../dashboard/dock.js";
import { Part } from "../dashboard/part.js";
import { Remembered } from "../dashboard/remembered.js";
import { button, h } from "../dom.js";
import { lent } from "../lent.js";
import { themed } from "../theme.js";

const TITLE = "Limelight dashboard";

export default lent((Store, oneTabStop) => {
  /** @type {import("../store.js").Store} */
  let store;
  /** @type {any} */
  let own;
  /** What shows it now: its end, and how to bring it to sight. @type {{stop: AbortController, show: () => void} | null} */
  let shown = null;

  /** Draws it in `node`, and nowhere else any more. @param {HTMLElement} node @param {any} host @param {() => void} show @param {() => void} gone @param {string} [path] the notebook's @param {() => void} [usual] puts it where it stands at first */
  const draw = (node, host, show, gone, path = location.pathname, usual = () => {}) => {
    shown?.stop.abort();
    const stop = new AbortController();
    shown = { stop, show };
    const root = h("section", { class: "ll ll-dashboard", "aria-label": "Dashboard" });
    node.replaceChildren(root);
    const dashboard = new Dashboard(root, own, host, stop.signal, new Remembered(path), Store);
    oneTabStop?.(root);
    dashboard.onReset = usual;
    own.on("comm_live_update", () => root.classList.add("ll-ended")); // beside the notebook nobody else says so
    const paint = () => themed(node, own);
    own.on("change:theme", paint);
    paint();
    stop.signal.addEventListener("abort", () => {
      own.off("change:theme", paint);
      root.remove();
      gone();
    });
    return store.show((state) => dashboard.show(state), stop.signal);
  };

  return {
    /** @param {{model: any}} context */
    initialize({ model }) {
      own = model;
      store = new Store(new Part(model, ""));
    },
    /** @param {{el: HTMLElement, signal: AbortSignal, host: any}} context */
    async render({ el, signal, host }) {
      await attached(el, signal);
      if (signal.aborted) return;
      const here = () => {
        const inCell = draw(el, host, () => el.scrollIntoView({ block: "nearest" }), () => el.replaceChildren(note("It is shown elsewhere.", "Show it here", here)));
        const mine = shown;
        signal.addEventListener("abort", () => mine?.stop.abort());
        return inCell;
      };
      const beside = () => {
        const closed = () => {
          shown?.stop.abort();
          shown = null;
          el.replaceChildren(note("The dashboard is closed.", "Open it", () => void (beside() || here())));
        };
        const place = placeBeside(el, TITLE, closed);
        if (!place) return false;
        const dock = () => {
          const kept = new Remembered(place.path);
          const asked = own.get("dock");
          if (asked) kept.keep({ dock: asked });
          place.move(asked || kept.layout.dock || "right");
        };
        dock();
        own.on("change:dock", dock);
        draw(place.node, host, place.show, () => undefined, place.path, () => place.move("right"));
        const drawn = place.node.firstChild;
        el.replaceChildren(note("The dashboard stands beside the notebook.", "Show it", place.show));
        own.on("msg:custom", (/** @type {any} */ content) => content?.type === "dismissed" && place.close());
        own.on("destroy", () => drawn?.isConnected && lost(place.node)); // that of a new kernel may have its place by now
        return true;
      };
      if (!beside()) await here();
    },
  };
});

/** @param {string} words @param {string} label @param {() => void} action */
function note(words, label, action) {
  return h("div", { class: "ll ll-note" }, h("span", { class: "ll-quiet" }, words), " ", button(label, action));
}

/** The kernel has gone: the place stays for the next dashboard of this notebook. @param {HTMLElement} node */
function lost(node) {
  node.replaceChildren(h("section", { class: "ll", "aria-label": "Dashboard" }, h("p", { class: "ll-empty" }, "The kernel has gone. Run %dashboard again, and it appears here.")));
}
