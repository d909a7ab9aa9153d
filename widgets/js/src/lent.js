// The script of a view, as the hidden widget that carries it exports it.

/** @param {() => object} view makes what one model needs: `initialize` and `render` */
export const lent = (view) => () => ({ initialize: () => ({ view }) });
