// The hidden widget that lays large pictures out in a worker. Views reach it by `host.getWidget(ref)` and call `exports.layout`.

import { LayoutQueue } from "./layout-worker/layout-queue.js";
import workerSource from "inline-worker:./layout-worker/worker.js";

function startWorker() {
  const url = URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  return worker;
}

export default () => ({
  /** @param {{signal: AbortSignal}} context */
  initialize({ signal }) {
    const layouts = new LayoutQueue(startWorker);
    signal.addEventListener("abort", () => layouts.stop());
    return { layout: (/** @type {any} */ asked, /** @type {AbortSignal} */ at) => layouts.layout(asked, at) };
  },
});
