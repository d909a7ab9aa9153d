// Pictures as Graphviz takes them, and its drawings as ours.

/**
 * @typedef {import("./visible-boxes.js").Picture} Picture
 * @typedef {import("./nested-layout.js").Drawing} Drawing
 * @typedef {import("./layered-layout.js").Point} Point
 */

const POINTS = 72; // in an inch

/**
 * A graph for `viz.renderJSON`. Names are replaced by numbers, so that nothing in them needs escaping.
 * @param {Picture} picture @param {Map<string, Point>} sizes
 */
export function toViz(picture, sizes) {
  const number = new Map(picture.boxes.map(({ name }, i) => [name, `b${i}`]));
  /** @type {Map<string, any>} */
  const clusters = new Map([["", { nodes: [], subgraphs: [] }]]);
  picture.frames.forEach(({ name, label }, i) => {
    const attributes = { label: "x".repeat(Math.min(label.length, 60) + 2), fontname: "Courier", fontsize: 11, margin: 10, labeljust: "l" };
    clusters.set(name, { name: `cluster_${i}`, graphAttributes: attributes, nodes: [], subgraphs: [] });
  });
  for (const { name, parent } of picture.frames) clusters.get(parent).subgraphs.push(clusters.get(name));
  for (const { name, parent } of picture.boxes) {
    const [width, height] = sizes.get(name) ?? [0, 0];
    clusters.get(parent).nodes.push({ name: number.get(name), attributes: { width: width / POINTS, height: height / POINTS } });
  }
  const edges = [...picture.edges.values()].map(({ source, target, again }) => ({
    tail: number.get(source), head: number.get(target), ...(again ? { attributes: { constraint: false } } : {}),
  }));
  return {
    directed: true,
    graphAttributes: { nodesep: 0.22, ranksep: 0.42 },
    nodeAttributes: { shape: "box", fixedsize: true, label: "" },
    edgeAttributes: { arrowhead: "none" },
    edges,
    ...clusters.get(""),
  };
}

/**
 * @param {Picture} picture @param {any} json what Graphviz made of `toViz(picture)`, in its format json0
 * @returns {Drawing}
 */
export function fromViz(picture, json) {
  const [, , width, height] = numbers(json.bb);
  /** @type {Drawing} */
  const drawing = { boxes: new Map(), frames: new Map(), edges: new Map(), width, height };
  for (const object of json.objects ?? []) {
    if (object.bb) {
      const [left, bottom, right, top] = numbers(object.bb);
      drawing.frames.set(nameOf(picture, object), { x: left, y: height - top, width: right - left, height: top - bottom });
    } else {
      const [x, y] = numbers(object.pos);
      const [w, h] = [object.width * POINTS, object.height * POINTS];
      drawing.boxes.set(nameOf(picture, object), { x: x - w / 2, y: height - y - h / 2, width: w, height: h });
    }
  }
  const name = new Map((json.objects ?? []).map((/** @type {any} */ object) => [object._gvid, nameOf(picture, object)]));
  for (const edge of json.edges ?? []) {
    drawing.edges.set(`${name.get(edge.tail)}>${name.get(edge.head)}`, splinePath(edge.pos, height));
  }
  return drawing;
}

/** @param {Picture} picture @param {any} object a node or a cluster @returns {string} the name of its box or frame */
function nameOf(picture, object) {
  const index = Number(object.name.replace(/^\D+/, ""));
  return (object.bb ? picture.frames : picture.boxes)[index].name;
}

/** @param {string} spline control points of Bézier curves, y pointing up @param {number} height */
function splinePath(spline, height) {
  const points = spline.split(" ").filter((part) => !/^[se],/.test(part));
  const [start, ...rest] = points.map((point) => {
    const [x, y] = numbers(point);
    return `${x},${(height - y).toFixed(1)}`;
  });
  return `M${start} C${rest.join(" ")}`;
}

/** @param {string} text */
function numbers(text) {
  return text.split(",").map(Number);
}
