// The hidden widget that carries Graphviz. Views reach it by `host.getWidget(ref)` and call `exports.layout`.

import { Workshop } from "./engine-workshop.js";
import workerSource from "inline-worker:./worker.js";

function startWorker() {
  const url = URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  return worker;
}

export default () => ({
  /** @param {{signal: AbortSignal}} context */
  initialize({ signal }) {
    const workshop = new Workshop(startWorker);
    signal.addEventListener("abort", () => workshop.stop());
    return { layout: (/** @type {any} */ graph, /** @type {AbortSignal} */ at) => workshop.layout(graph, at) };
  },
});
