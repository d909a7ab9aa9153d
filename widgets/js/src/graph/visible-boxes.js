// What of a described graph is visible: the boxes and edges that remain when groups and calls are closed.
// figures/visible_boxes.py does the same for the static pictures; the tests hold both to the same examples.

import { UNSIZED } from "../format.js";
import { columnsOf, isRead } from "./columns.js";

/**
 * @typedef {object} GraphNode
 * @property {string} op @property {string} kind @property {string[]} names
 * @property {number[]} [in] @property {string[]} [out] @property {Record<string, string>} [attrs]
 * @property {boolean} [inline] a constant that is written on the nodes that read it @property {string} [operands]
 * @property {string} [device] @property {[number, number, string][]} [stack]
 * @property {[number, string][]} [calls] @property {number} [group]
 * @property {[string, number[], string]} [became] what passes did to a traced node, the nodes that run in its place,
 *   and the last change in a word
 * @property {number[]} [was] the traced nodes that an optimised one stands for @property {number} [fused] its fusion group
 * @property {number} [loop] how many values a loop hands from one round to the next: the first ones of its body
 * @property {string} [came] why an optimised node is there that stands for none
 * @property {number} [folded_into] the node on whose box it is told, in a folded picture @property {Lane} [lane]
 * @property {string[]} [tags] @property {string} [path] @property {string} [said] of an error @property {number[]} [after] the value that was made before it, where it reads none
 * @property {number} [born] @property {number} [gone] stops of a history at which it comes and goes
 * @property {[number, number[]][]} [ins] what it reads from a stop of a history on, where that changes
 * @property {[number, number, number, number | string | null, number]} [cost] seconds, NaN, infinities, the norm ("inf" for one that is none) and bytes of a run
 *
 * @typedef {object} Group
 * @property {string} label @property {string} [title] the label without its count @property {string} kind @property {number} parent @property {number} size
 * @property {Lane} [lane] @property {string} [path] of the module or scope: the same for a layer and its gradient
 * @property {number} [ops] that its boxes tell of @property {number} [bytes] that its ops give @property {number} [saved] for the backward pass @property {string[]} [tags] the parameters that it uses
 * @property {{count: number, members?: number[], period?: number, differs?: string[]}} [repeat] what stands here once for
 *   many: groups, or slices of its own nodes @property {string} [cls] @property {[number, number]} [at] source and line of the call
 *
 * @typedef {"forward" | "loss" | "backward" | "update"} Lane
 *
 * @typedef {object} Graph
 * @property {string} name @property {{name: string, spec: string, captured?: boolean, folded?: boolean}[]} inputs
 * @property {number[]} outputs @property {string[]} [output_names] what the function calls them
 * @property {GraphNode[]} nodes @property {Group[]} groups @property {number[]} open
 * @property {{from: number, to: number, bytes: number, values: number, spec?: string}[]} [crossings] what the backward pass reads of the forward pass, by pair of innermost groups, heaviest first
 * @property {boolean} [versions] whether it is all versions in one: what is kept and how many ops a group has differ among them
 * @property {{kind: string, nodes: number[]}[]} [fusions] nodes that are evaluated in one go
 *
 * @typedef {object} Box
 * @property {string} name
 * @property {"input" | "output" | "node" | "group" | "decision"} kind a decision is what chooses among the functions of an open call
 * @property {number} graph @property {number} index @property {string} parent the frame around it, "" for none
 * @property {number} [position] of a decision among the inputs of its node
 * @property {boolean} [opens] whether there is something inside to show
 * @property {Lane} [lane] @property {string} [path] the same for a layer and its gradient
 * @property {number} [more] for how many equal groups, or rounds of a loop, it stands besides those that are shown
 * @property {string[]} [tags] the variables that it uses, where these have no boxes of their own
 *
 * @typedef {object} Frame an open group or call, or a fusion group
 * @property {string} name @property {string} label @property {string} parent
 * @property {Lane} [lane] @property {string} [path]
 * @property {{graph: number, number: number, path: string}} [fused] which fusion group of which graph, and where
 *
 * @typedef {object} Picture
 * @property {Box[]} boxes @property {Frame[]} frames
 * @property {Map<string, Edge>} edges @property {Map<string, Map<string, number>>} [carried] by edge, the bytes of each value
 *
 * @typedef {object} Edge
 * @property {string} source @property {string} target @property {number} count values that it carries
 * @property {number} [bytes] that it carries, as far as shapes are known
 * @property {string} [again] where it leads, if not to what reads it at once: into the next round of a loop, say
 *
 * @typedef {(name: string, byDefault: boolean) => boolean} IsOpen
 *
 * @typedef {object} Instance a graph at one place of the picture
 * @property {string} path @property {number} graph @property {string} frame @property {number[]} chain
 * @property {string[]} boxes those of its nodes, "" first @property {Int32Array} of for each node the number of its box, 0 for an open
 *   call and an inline constant: of a hundred thousand nodes names take long to compare
 * @property {Map<number, Instance[]>} calls
 */

/**
 * @param {Graph[]} graphs @param {number} graph @param {IsOpen} isOpen
 * @param {boolean} [folded] whether variables, and nodes that say little, are told on the boxes that use them
 * @param {Set<string>} [dissolved] open groups without a frame: what is in them stands in what is around them
 * @param {number} [most] boxes beyond which nobody asks for edges
 * @returns {Picture}
 */
export function visible(graphs, graph, isOpen, folded = false, dissolved = new Set(), most = Infinity) {
  const builder = new Builder(graphs, isOpen, folded, dissolved);
  builder.walk(graph);
  if (builder.picture.boxes.length <= most) builder.connect();
  return builder.picture;
}

const MOST_MEMBERS = 8; // of a repeat that are all shown
const FUSED_OPS = 3; // that are named on the frame around them
const SHOWN = 2; // of one with more, besides those that are open

/** Whether a call may be opened: not where its function is open around it already. @param {Instance} instance @param {GraphNode} node */
function recursive(instance, node) {
  return (node.calls ?? []).some(([graph]) => instance.chain.includes(graph));
}

class Builder {
  /** @param {Graph[]} graphs @param {IsOpen} isOpen @param {boolean} folded @param {Set<string>} dissolved */
  constructor(graphs, isOpen, folded, dissolved) {
    this.graphs = graphs;
    this.dissolved = dissolved;
    this.folded = folded;
    /** @type {Map<string, Set<string>>} for each box the variables that are told on it */
    this.tags = new Map();
    this.isOpen = isOpen;
    /** @type {Picture} */
    this.picture = { boxes: [], frames: [], edges: new Map(), carried: new Map() };
    /** @type {Instance[]} */
    this.instances = [];
  }

  /** @param {number} graph */
  walk(graph) {
    const waiting = [newInstance("", graph, this.graphs[graph].nodes.length, "", [graph])];
    for (let instance = waiting.pop(); instance; instance = waiting.pop()) {
      this.instances.push(instance);
      waiting.push(...this.enter(instance).reverse());
    }
    if (!this.folded) this.graphs[graph].outputs.forEach((_, k) => {
      this.picture.boxes.push({ name: `o${k}`, kind: "output", graph, index: k, parent: "" });
    });
  }

  /** @param {Instance} instance */
  enter(instance) {
    const { path, frame } = instance;
    const graph = this.graphs[instance.graph];
    const { frames, closed, more } = this.groups(instance, graph);
    const rounds = this.rounds(graph, closed);
    const hulls = this.hulls(instance, graph, frames, closed);
    graph.inputs.forEach((input, k) => {
      if (this.isTold(input)) return;
      this.picture.boxes.push({ name: `${path}i${k}`, kind: "input", graph: instance.graph, index: k, parent: frame });
    });
    /** @type {Instance[]} */
    const entered = [];
    const hidden = Int32Array.from(graph.groups, (_, group) => closed.get(group) ?? -1);
    const [stands, others] = [new Int32Array(graph.groups.length), new Int32Array(graph.groups.length)]; // by group the number of its box, and of that of the other rounds in it
    const { groups, inline, folds } = columnsOf(graph);
    const { of, boxes } = instance;
    const add = (/** @type {Box} */ box) => (this.picture.boxes.push(box), boxes.push(box.name) - 1);
    graph.nodes.forEach((node, index) => {
      const group = groups[index];
      const hiding = group < 0 ? -1 : hidden[group];
      if (inline[index] || (this.folded && folds[index])) return;
      if (hiding >= 0) {
        of[index] = stands[hiding] ||= add(this.closedGroup(instance, hiding, frames, more.get(hiding)));
        return;
      }
      const rest = rounds.get(index);
      if (rest) {
        of[index] = others[group] ||= add(this.otherRounds(instance, group, frames, rest));
        return;
      }
      const name = `${path}n${index}`;
      const parent = frames.get(group) ?? "";
      const inside = this.openCall(instance, index, node, name, parent);
      if (!inside.length) {
        const opens = Boolean(node.calls?.length) && !recursive(instance, node);
        const around = hulls.get(`${node.fused ?? 0}@${group}`) ?? parent;
        of[index] = add({ name, kind: "node", graph: instance.graph, index, parent: around, opens, ...laneAndPath(node) });
      }
      entered.push(...inside);
    });
    if (this.folded) unfoldInto(graph, of);
    return entered;
  }

  /** @param {Instance} instance @param {number} index @param {Map<number, string>} frames @param {number} [more] @returns {Box} */
  closedGroup({ path, graph }, index, frames, more) {
    const { groups } = this.graphs[graph];
    const about = { ...laneAndPath(groups[index], this.graphs[graph], index), ...(more === undefined ? {} : { more }) };
    return { name: `${path}g${index}`, kind: "group", graph, index, parent: frames.get(groups[index].parent) ?? "", opens: true, ...about };
  }

  /** The rounds of an open loop but for the first. @param {Instance} instance @param {number} index @param {Map<number, string>} frames @param {number} more @returns {Box} */
  otherRounds({ path, graph }, index, frames, more) {
    const about = laneAndPath(this.graphs[graph].groups[index], this.graphs[graph], index);
    return { name: `${path}g${index}+`, kind: "group", graph, index, parent: frames.get(index) ?? "", opens: false, ...about, more };
  }

  /**
   * Frames around the visible nodes of each fusion group, by its number and the group that these nodes are in.
   * @param {Instance} instance @param {Graph} graph @param {Map<number, string>} frames @param {Map<number, number>} closed
   */
  hulls(instance, graph, frames, closed) {
    /** @type {Map<string, [number, number, number]>} */
    const shown = new Map();
    if (this.folded) return new Map();
    for (const { fused, group = -1 } of graph.nodes) {
      if (!fused || (closed.get(group) ?? -1) >= 0) continue;
      const key = `${fused}@${group}`;
      shown.set(key, [fused, group, (shown.get(key)?.[2] ?? 0) + 1]);
    }
    /** @type {Map<string, string>} */
    const names = new Map();
    for (const [key, [number, group, count]] of shown) {
      const name = `${instance.path}f${number}${group >= 0 ? `@g${group}` : ""}`;
      const ops = (graph.fusions?.[number - 1].nodes ?? []).map((at) => graph.nodes[at].op);
      const label = fusionLabel(number, ops, count);
      names.set(key, name);
      const fused = { graph: instance.graph, number, path: instance.path };
      this.picture.frames.push({ name, label, parent: frames.get(group) ?? "", fused });
    }
    return names;
  }

  /**
   * For each group the frame that it is drawn as, and the outermost closed group that hides its members.
   * @param {Instance} instance @param {Graph} graph
   */
  groups(instance, graph) {
    /** @type {Map<number, string>} */
    const frames = new Map([[-1, instance.frame]]);
    /** @type {Map<number, number>} */
    const closed = new Map([[-1, -1]]);
    /** @type {Map<number, number>} for how many each group that is drawn stands besides itself */
    const more = new Map();
    const byDefault = new Set(graph.open);
    graph.groups.forEach((_, start) => {
      const chain = [];
      for (let group = start; !closed.has(group); group = graph.groups[group].parent) chain.push(group);
      for (const group of chain.reverse()) {
        const { parent, label, repeat } = graph.groups[group];
        const name = `${instance.path}g${group}`;
        const hiding = closed.get(parent) ?? -1;
        if (hiding >= 0 || !this.isOpen(name, byDefault.has(group))) {
          closed.set(group, hiding >= 0 ? hiding : group);
        } else if (this.dissolved.has(name)) {
          closed.set(group, -1);
          frames.set(group, frames.get(parent) ?? "");
        } else {
          closed.set(group, -1);
          frames.set(group, name);
          const about = laneAndPath(graph.groups[group], graph, group);
          this.picture.frames.push({ name, label, parent: frames.get(parent) ?? "", ...about });
        }
        if (closed.get(group) === -1 && repeat?.members) this.gather(instance.path, repeat.members, byDefault, closed, more);
      }
    });
    return { frames, closed, more };
  }

  /**
   * Of many equal groups the first ones are shown, those that are open, and one box for the others.
   * @param {string} path @param {number[]} members @param {Set<number>} byDefault @param {Map<number, number>} closed
   * @param {Map<number, number>} more
   */
  gather(path, members, byDefault, closed, more) {
    const others = members.slice(SHOWN).filter((group) => !this.isOpen(`${path}g${group}`, byDefault.has(group)));
    if (members.length <= MOST_MEMBERS || others.length < 2) return;
    for (const group of others) closed.set(group, others[0]);
    more.set(others[0], others.length);
  }

  /**
   * The nodes of open groups that are rounds of an unrolled loop, but for the first rounds: for each how many these are.
   * @param {Graph} graph @param {Map<number, number>} closed
   */
  rounds({ groups, nodes }, closed) {
    /** @type {Map<number, number>} */
    const rest = new Map();
    /** @type {Map<number, number>} */
    const before = new Map();
    if (!groups.some(({ repeat }) => repeat?.period && !repeat.members)) return rest;
    nodes.forEach((node, index) => {
      const { repeat } = groups[node.group ?? -1] ?? {};
      if (!repeat?.period || repeat.members || closed.get(node.group ?? -1) !== -1) return;
      if (node.folded_into !== undefined || node.inline) return;
      const place = before.get(node.group ?? -1) ?? 0;
      before.set(node.group ?? -1, place + 1);
      if (place >= SHOWN * repeat.period && repeat.count > MOST_MEMBERS) rest.set(index, repeat.count - SHOWN);
    });
    return rest;
  }

  /** @param {Instance} instance @param {number} index @param {GraphNode} node @param {string} name @param {string} frame */
  openCall(instance, index, node, name, frame) {
    const calls = node.calls ?? [];
    if (!calls.length || !this.isOpen(name, false) || recursive(instance, node)) return [];
    this.picture.frames.push({ name, label: callLabel(node), parent: frame, ...laneAndPath(node) });
    for (let position = 0; position < this.decisions(node); position++) {
      this.picture.boxes.push({ name: `${name}.d${position}`, kind: "decision", graph: instance.graph, index, parent: name, position });
    }
    const inside = calls.map(([graph, label], k) => {
      let around = name;
      if (calls.length > 1) {
        around = `${name}.${k}`;
        this.picture.frames.push({ name: around, label, parent: name });
      }
      return newInstance(`${name}.${k}/`, graph, this.graphs[graph].nodes.length, around, [...instance.chain, graph]);
    });
    instance.calls.set(index, inside);
    return inside;
  }

  /** How many of a call's first inputs go to none of its functions: they choose among them. @param {GraphNode} node */
  decisions(node) {
    return Math.max(Math.min(...(node.calls ?? []).map(([graph]) => (node.in?.length ?? 0) - this.graphs[graph].inputs.length)), 0);
  }

  connect() {
    for (const instance of this.instances) {
      const { nodes } = this.graphs[instance.graph];
      const { makers, readers, reads, positions } = columnsOf(this.graphs[instance.graph]);
      const within = instance.of;
      for (let read = 0; read < reads.length; read++) {
        const [index, value] = [readers[read], reads[read]];
        const maker = makers[value];
        if (within[index] && maker >= 0 && within[maker] === within[index]) continue; // nothing leaves the box
        const targets = this.targets(instance, index, positions[read], nodes[index].in?.length ?? 0);
        for (const target of targets) this.join(instance, value, target);
      }
    }
    for (const instance of this.instances) for (const [index, calls] of instance.calls) this.goRound(instance, index, calls);
    const root = this.instances[0];
    this.follow(root);
    this.graphs[root.graph].outputs.forEach((value, k) => (this.folded ? this.result(root, value, k) : this.join(root, value, `o${k}`)));
    for (const box of this.picture.boxes) {
      const tags = this.tags.get(box.name);
      if (tags) box.tags = [...tags];
    }
  }

  /** Where a trace failed comes after what had run, of which it may have read nothing. @param {Instance} root */
  follow(root) {
    const { nodes } = this.graphs[root.graph];
    const target = root.boxes[root.of[nodes.length - 1]];
    for (const value of nodes.at(-1)?.after ?? []) {
      for (const source of this.sources(root, value, target)) this.picture.edges.set(`${source}>${target}`, { source, target, count: 1, again: "after what ran last" });
    }
  }

  /** What a loop's body gives goes into its next round. @param {Instance} instance @param {number} index @param {Instance[]} calls */
  goRound(instance, index, calls) {
    const body = calls[calls.length - 1];
    const { loop = 0 } = this.graphs[instance.graph].nodes[index];
    const { outputs } = this.graphs[body.graph];
    for (let k = 0; k < loop; k++) this.join(body, outputs[k], `${body.path}i${k}`, true);
  }

  /** @param {Instance} instance @param {number} value @param {string} target @param {boolean} [again] */
  join(instance, value, target, again) {
    for (const source of this.sources(instance, value, target)) {
      if (source === target) continue;
      const key = `${source}>${target}`;
      const edge = this.picture.edges.get(key);
      if (edge) edge.count += 1;
      else this.picture.edges.set(key, { source, target, count: 1, ...(again ? { again: "into the next round" } : {}) });
      if (this.folded) this.weigh(instance, value, key);
    }
  }

  /** Adds the bytes of a value to an edge, once. @param {Instance} instance @param {number} value @param {string} key */
  weigh({ path, graph }, value, key) {
    const edge = this.picture.edges.get(key);
    const values = this.picture.carried?.get(key) ?? new Map();
    const name = `${path}${value}`;
    if (!edge || values.has(name) || this.graphs[graph].versions) return;
    const { inputs, nodes } = this.graphs[graph];
    const { makers, places } = columnsOf(this.graphs[graph]);
    const [index, output] = [makers[value], places[value]];
    const size = bytesOf(index < 0 ? inputs[output].spec : (nodes[index].out?.[output] ?? ""));
    this.picture.carried?.set(key, values.set(name, size));
    edge.bytes = (edge.bytes ?? 0) + size;
  }

  /** Tells an output of the graph on the box that it comes from. @param {Instance} root @param {number} value @param {number} k */
  result(root, value, k) {
    const { output_names: names, outputs } = this.graphs[root.graph];
    const name = names?.[k] ?? (outputs.length === 1 ? "output" : `output ${k}`);
    for (const source of this.sources(root, value, "")) this.tag(source, `▶ ${name}`);
  }

  /** Whether an input is told on the boxes that read it: in a picture of all ops only what is read beside them. @param {{spec: string, folded?: boolean}} input */
  isTold(input) {
    return this.folded ? isVariable(input) : input.folded;
  }

  /** Notes on a box that it uses a variable. @param {string} target @param {string} name */
  tag(target, name) {
    const tags = this.tags.get(target);
    if (tags) tags.add(name);
    else this.tags.set(target, new Set([name]));
  }

  /** @param {Instance} instance @param {number} index @param {number} position @param {number} count */
  targets(instance, index, position, count) {
    if (instance.of[index]) return [instance.boxes[instance.of[index]]];
    if (!instance.calls.has(index)) return [];
    const decides = position < this.decisions(this.graphs[instance.graph].nodes[index]);
    const targets = decides ? [`${instance.path}n${index}.d${position}`] : [];
    for (const callee of instance.calls.get(index) ?? []) {
      const inner = position - Math.max(count - this.graphs[callee.graph].inputs.length, 0);
      if (inner >= 0) targets.push(`${callee.path}i${inner}`);
    }
    return targets;
  }

  /**
   * The boxes that a value comes from; more than one where branches were opened, none where it is told on `target`.
   * @param {Instance} instance @param {number} value @param {string} target @returns {string[]}
   */
  sources(instance, value, target) {
    const found = [];
    /** @type {[Instance, number][]} */
    const waiting = [[instance, value]];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [place, wanted] = next;
      const graph = this.graphs[place.graph];
      const { makers, places } = columnsOf(graph);
      const [index, output] = [makers[wanted], places[wanted]];
      if (index < 0 && this.isTold(graph.inputs[output])) this.tag(target, graph.inputs[output].name);
      else if (index < 0) found.push(`${place.path}i${output}`);
      else if (place.of[index]) found.push(place.boxes[place.of[index]]);
      else if ((this.folded || graph.nodes[index].inline) && isRead(graph.nodes[index])) waiting.push([place, graph.nodes[index].in?.[0] ?? 0]);
      else {
        const { loop } = graph.nodes[index];
        for (const callee of (place.calls.get(index) ?? []).slice(loop ? -1 : 0)) {
          const outputs = this.graphs[callee.graph].outputs;
          if (output < outputs.length) waiting.push([callee, outputs[output]]);
        }
      }
    }
    return found;
  }
}

/** @param {{lane?: Lane, path?: string}} about @param {Graph} [graph] @param {number} [group] */
function laneAndPath({ lane, path }, graph, group = -1) {
  const key = graph && lane !== "forward" && lane !== "loss" && lane !== "backward" ? path : graph ? keyOf(graph, group) : path;
  return { ...(lane ? { lane } : {}), ...(key ? { path: key } : {}) };
}

/** @type {WeakMap<Graph, string[]>} */
const keys = new WeakMap();

/** What a group has in common with its gradient. @param {Graph} graph @param {number} group @returns {string} */
function keyOf(graph, group) {
  let known = keys.get(graph);
  if (!known) {
    known = graph.groups.map(({ path = "", repeat, kind }) => (repeat || kind === "step" ? "" : path));
    const least = [...known];
    for (let index = graph.groups.length - 1; index >= 0; index--) {
      const { parent, kind, repeat } = graph.groups[index];
      if (!known[index]) known[index] = least[index] ? `${repeat ? "repeat" : kind} of ${least[index]}` : "";
      if (parent >= 0 && least[index] && (!least[parent] || least[index] < least[parent])) least[parent] = least[index];
    }
    keys.set(graph, known);
  }
  return known[group];
}

/** The bytes of a value, `UNSIZED` where its shape is not known. @param {string} spec "f32[2,3]" */
export function bytesOf(spec) {
  const known = sizes.get(spec);
  if (known !== undefined) return known;
  const size = countBytes(spec);
  if (sizes.size < MOST_SPECS) sizes.set(spec, size);
  return size;
}

const MOST_SPECS = 10_000;
/** @type {Map<string, number>} */
const sizes = new Map();

/** @param {string} spec */
function countBytes(spec) {
  const [, bits, dimensions] = /[a-z]+(\d*)\[([\d,]*)\]$/.exec(spec) ?? [];
  if (dimensions === undefined) return UNSIZED;
  return Math.ceil(Number(bits || 8) / 8) * dimensions.split(",").filter(Boolean).reduce((size, one) => size * Number(one), 1);
}

/** @param {{spec: string, folded?: boolean}} input */
export function isVariable({ spec, folded }) {
  return folded || /^(\w+ )?var /.test(spec);
}

/**
 * Nodes that are told on the box of another are found there; but no edge leads from what is written on its readers.
 * @param {Graph} graph @param {Int32Array} of for each node the number of its box
 */
function unfoldInto({ nodes }, of) {
  for (let index = nodes.length - 1; index >= 0; index--) {
    const into = nodes[index].folded_into;
    if (into !== undefined && !nodes[index].inline && !isRead(nodes[index])) of[index] = of[into] ?? 0;
  }
}

/** @param {string} path @param {number} graph @param {number} nodes that it has @param {string} frame @param {number[]} chain @returns {Instance} */
function newInstance(path, graph, nodes, frame, chain) {
  return { path, graph, frame, chain, boxes: [""], of: new Int32Array(nodes), calls: new Map() };
}

/** What is fused, in a few words. @param {number} number @param {string[]} ops @param {number} shown how many of them are in the frame */
export function fusionLabel(number, ops, shown) {
  const more = ops.length > FUSED_OPS ? ` + ${ops.length - FUSED_OPS}` : "";
  const part = shown === ops.length ? "" : ` (${shown} of ${ops.length})`;
  return `fused ${number}: ${ops.slice(0, FUSED_OPS).join(" · ")}${more}${part}`;
}

/** @param {GraphNode} node */
export function callLabel(node) {
  const names = (node.calls ?? []).map(([, label]) => label.replace(/^forward_/, "").replace(/^backward_/, "gradient of "));
  return `${node.op.replace(/_forward$/, "")} ${names.join(", ")}`;
}
