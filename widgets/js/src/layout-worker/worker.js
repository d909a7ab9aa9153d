// The layout of large pictures, by itself in a worker, so that the page goes on meanwhile.

import { draw } from "../graph/nested-layout.js";

self.onmessage = ({ data: { picture, sizes, manner } }) => {
  try {
    self.postMessage({ layout: draw(picture, sizes, manner) });
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
