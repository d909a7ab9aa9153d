// The script of a view, as the hidden widget that carries it exports it.

/** @typedef {typeof import("./store.js").Store} Stores the class, which `view.js` has for all of them */

/**
 * @typedef {typeof import("./one-tab-stop.js").oneTabStop} OneTabStop the same for what makes a widget one stop of the Tab key; a
 *   part of a dashboard, which is one as a whole, is lent none
 */

/** @param {(Store: Stores, oneTabStop?: OneTabStop) => object} view makes what one model needs: `initialize` and `render` */
export const lent = (view) => () => ({ initialize: () => ({ view }) });
