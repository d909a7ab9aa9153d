// Graphviz, by itself in a worker: a graph in, its layout (format json0) out.

import { instance } from "@viz-js/viz";

const viz = instance();

self.onmessage = async ({ data }) => {
  try {
    const result = (await viz).render(data, { format: "json0" });
    if (result.status !== "success") throw new Error(result.errors.map(({ message }) => message).join("; "));
    self.postMessage({ layout: JSON.parse(result.output) });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
