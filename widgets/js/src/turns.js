// Long work in pieces, between which the page answers and paints.

const SLICE = 12; // milliseconds of work after which the page has its turn

/** A timer that follows on others is late by 4 ms each time, so it serves only where there is nothing else. @returns {Promise<void>} */
export function turnOfThePage() {
  const { scheduler } = /** @type {{scheduler?: {yield?: () => Promise<void>}}} */ (globalThis);
  return scheduler?.yield ? scheduler.yield() : new Promise((resolve) => setTimeout(resolve));
}

/** Waits when there has been no pause for a while. @returns {() => Promise<void> | undefined} */
export function breather() {
  let last = performance.now();
  return () => {
    if (performance.now() - last < SLICE) return undefined;
    return turnOfThePage().then(() => {
      last = performance.now();
    });
  };
}

/**
 * What steps come to, with pauses; null where that is no longer wanted.
 * @template T @param {Generator<void, T, void>} steps @param {() => boolean} ended @returns {Promise<T | null>}
 */
export async function inTurns(steps, ended) {
  const breathe = breather();
  for (;;) {
    const { value, done } = steps.next();
    if (done) return value;
    const pause = breathe();
    if (pause) await pause;
    if (ended()) return null;
  }
}
