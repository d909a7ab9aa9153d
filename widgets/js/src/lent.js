// The script of a view, as the hidden widget that carries it exports it.

/** @typedef {typeof import("./store.js").Store} Stores the class, which `view.js` has for all of them */

/** @param {(Store: Stores) => object} view makes what one model needs: `initialize` and `render` */
export const lent = (view) => () => ({ initialize: () => ({ view }) });
