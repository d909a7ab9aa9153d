// One layout after the other, in a worker that can be stopped.

/** Layouts in a worker; the worker ends when a layout is superseded or takes too long, and starts again if asked. */
export class LayoutQueue {
  /** @param {() => Worker} start @param {number} [patience] milliseconds after which a layout is given up */
  constructor(start, patience = 20_000) {
    this.start = start;
    this.patience = patience;
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {Promise<any>} one layout after the other */
    this.last = Promise.resolve();
  }

  /** @param {any} asked a picture, the sizes of its boxes and the manner @param {AbortSignal} signal @returns {Promise<any>} */
  layout(asked, signal) {
    const next = this.last.then(() => this.run(asked, signal));
    this.last = next.catch(() => {});
    return next;
  }

  /** @param {any} asked @param {AbortSignal} signal @returns {Promise<any>} */
  run(asked, signal) {
    if (signal.aborted) return Promise.reject(new Error("superseded"));
    const worker = (this.worker ??= this.start());
    return new Promise((resolve, reject) => {
      const fail = (/** @type {string} */ reason) => {
        done();
        this.stop();
        reject(new Error(reason));
      };
      const timer = setTimeout(() => fail(`no layout within ${this.patience} ms`), this.patience);
      const superseded = () => fail("superseded");
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", superseded);
      };
      signal.addEventListener("abort", superseded);
      worker.onerror = (event) => fail(event.message || "the worker failed");
      worker.onmessage = ({ data }) => (done(), data.error ? reject(new Error(data.error)) : resolve(data.layout));
      worker.postMessage(asked);
    });
  }

  stop() {
    this.worker?.terminate();
    this.worker = null;
  }
}
