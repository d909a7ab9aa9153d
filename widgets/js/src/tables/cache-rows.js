// The state of a trace cache, of which an update brings what has changed.

/**
 * Joins an update with the state before: it has the functions that changed, and of their entries that did not, the numbers. One
 * without an `order` is all there is.
 * @param {any} state @param {any} change @returns {any} null where something is missing
 */
export function merged(state, change) {
  if (!change.order) return change;
  const [before, now] = [state?.functions ?? [], change.functions].map((functions) => new Map(functions.map((/** @type {any} */ one) => [one.id, one])));
  const functions = change.order.map((/** @type {number} */ id) => {
    if (!now.has(id)) return before.get(id);
    const known = new Map(before.get(id)?.entries.map((/** @type {any} */ entry) => [entry.index, entry]));
    const entries = now.get(id).entries.map((/** @type {any} */ entry) => (typeof entry === "number" ? known.get(entry) : entry));
    return entries.includes(undefined) ? undefined : { ...now.get(id), entries };
  });
  return functions.includes(undefined) ? null : { places: state?.places, ...change, functions };
}

/** A function's name, and its place where several are called so. @param {{id: number, name: string}} cached @param {Record<string, string>} [places] */
export const called = ({ id, name }, places) => name + (places?.[id] ?? "");
