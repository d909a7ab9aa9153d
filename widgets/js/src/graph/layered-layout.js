// A layered drawing in linear time, without recursion: what is used where Graphviz cannot be. See
// figures/layered_layout.py, which does the same in Python and has the words; the tests hold both to the same examples.

const GAP = 16;
const RANK_GAP = 34;
const BEND_WIDTH = 8;
const MOST_BENDS = 20000;
const SWEEPS = 8;
const GUTTER = 26; // between two bands of ranks
export const TURN = 9; // how far beyond a band its edges turn round to the next
const APART = 4; // between edges of two boxes that turn round there, at most
const TRACKS = 5; // the room of all of these

/**
 * @typedef {[number, number]} Point
 * @typedef {object} Layout
 * @property {Point[]} centres @property {Point[][]} bends for each edge @property {number} width @property {number} height
 * @property {Map<number, Point[]>} entering the way from the top to a box @property {Map<number, Point[]>} leaving
 * @property {Strip[]} [strips]
 *
 * @typedef {{lane: string, title: string, x: number, y: number, width: number, height: number}} Strip the room of one lane in one band; the first of a lane has a title
 */

/** @type {Point} */
export const ANY_SIZE = [Infinity, Infinity];

/**
 * @param {Point[]} sizes width and height of each box @param {[number, number][]} edges
 * @param {number[]} [entering] boxes that are reached from outside @param {number[]} [leaving] those that lead out
 * @param {number} [limit] height beyond which the ranks go on in another band, beside the first
 * @param {number} [cross] width beyond which the boxes of a rank take several
 * @param {Point} [most] width and height
 * @returns {Layout | null} null where the layout would be larger than `most`
 */
export function layered(sizes, edges, entering = [], leaving = [], limit = Infinity, cross = Infinity, most = ANY_SIZE) {
  if (!sizes.length) return { centres: [], bends: [], width: 0, height: 0, entering: new Map(), leaving: new Map() };
  const drawing = new Drawing(sizes, edges, inRows(ranksOf(sizes.length, edges), sizes, cross), entering, leaving);
  if (exceeds(drawing.least(limit), most)) return null;
  drawing.order();
  drawing.place();
  return drawing.layout(limit, most);
}

/** Whether a width or a height is more than it may be. @param {Point} size @param {Point} most */
export const exceeds = (size, most) => size[0] > most[0] || size[1] > most[1];

/**
 * The first rank of each band, so that no band is higher than the limit and all are about equal.
 * @param {number[]} heights of the ranks @param {number} limit @param {number} [gap] between ranks @returns {number[]}
 */
export function bandStarts(heights, limit, gap = RANK_GAP) {
  const total = heights.reduce((sum, height) => sum + height + gap, -gap);
  if (total <= limit) return [0];
  const cut = (/** @type {number} */ most) => {
    const starts = [0];
    let height = -gap;
    heights.forEach((one, rank) => {
      height += one + gap;
      if (height <= most || rank === starts[starts.length - 1]) return;
      starts.push(rank);
      height = one;
    });
    return starts;
  };
  const fewest = cut(limit).length;
  for (let most = total / fewest; most < limit; most += gap / 2) {
    const starts = cut(most);
    if (starts.length <= fewest) return starts;
  }
  return cut(limit);
}

/** @param {number} count @param {[number, number][]} edges */
export function ranksOf(count, edges) {
  const distinct = new Map();
  for (const [a, b] of edges) {
    if (a !== b) distinct.set(Math.min(a, b) * count + Math.max(a, b), [Math.min(a, b), Math.max(a, b)]);
  }
  /** @type {[number, number][]} */
  const forward = [...distinct.values()].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const ranks = new Array(count).fill(0);
  const hasInput = new Array(count).fill(false);
  const firstUse = new Array(count).fill(-1);
  for (const [a, b] of forward) {
    ranks[b] = Math.max(ranks[b], ranks[a] + 1);
    hasInput[b] = true;
  }
  for (const [a, b] of forward) if (firstUse[a] < 0 || ranks[b] < firstUse[a]) firstUse[a] = ranks[b];
  return ranks.map((rank, i) => (hasInput[i] || firstUse[i] < 0 ? rank : firstUse[i] - 1));
}

/**
 * The same ranks, but those that are wider than `most` as several, about equal ones: nothing in a rank hangs on anything else in it.
 * @param {number[]} ranks @param {Point[]} sizes @param {number} most @returns {number[]}
 */
export function inRows(ranks, sizes, most) {
  if (most === Infinity) return ranks;
  const last = ranks.reduce((a, b) => Math.max(a, b), 0);
  const [widths, counts] = [new Array(last + 1).fill(0), new Array(last + 1).fill(0)];
  sizes.forEach(([width], box) => (widths[ranks[box]] += width + GAP));
  for (const rank of ranks) counts[rank] += 1;
  const rows = widths.map((width, rank) => Math.max(Math.min(Math.ceil((width - GAP) / most), counts[rank]), 1));
  const first = [0];
  for (const count of rows) first.push(first[first.length - 1] + count);
  const before = rows.map(() => 0);
  return ranks.map((rank, box) => {
    const row = Math.floor((before[rank] / widths[rank]) * rows[rank]);
    before[rank] += sizes[box][0] + GAP;
    return first[rank] + Math.min(row, rows[rank] - 1);
  });
}

export class Drawing {
  /**
   * @param {Point[]} sizes @param {[number, number][]} edges @param {number[]} ranks @param {number[]} entering
   * @param {number[]} leaving @param {number} [count] of ranks
   */
  constructor(sizes, edges, ranks, entering, leaving, count = 0) {
    this.sizes = [...sizes];
    this.edges = edges;
    this.boxes = sizes.length;
    this.rank = [...ranks];
    /** @type {number[][]} */
    this.above = sizes.map(() => []);
    /** @type {number[][]} */
    this.below = sizes.map(() => []);
    this.paths = this.split();
    /** @type {Map<number, number[]>} */
    this.entering = new Map();
    /** @type {Map<number, number[]>} */
    this.leaving = new Map();
    this.ways(entering, leaving, this.rank.reduce((most, rank) => Math.max(most, rank), 0));
    /** @type {number[][]} */
    this.rows = Array.from({ length: Math.max(count, this.rank.reduce((most, rank) => Math.max(most, rank), 0) + 1) }, () => []);
    this.rank.forEach((rank, cell) => this.rows[rank].push(cell));
    /** @type {number[]} */
    this.x = new Array(this.rank.length).fill(0);
    /** @type {number[]} */
    this.y = new Array(this.rank.length).fill(0);
    this.heights = this.rows.map((row) => row.reduce((most, cell) => Math.max(most, this.sizes[cell][1]), 0));
  }

  split() {
    const bends = this.edges.reduce((sum, [a, b]) => sum + Math.max(Math.abs(this.rank[a] - this.rank[b]) - 1, 0), 0);
    return this.edges.map(([a, b]) => {
      const [high, low] = this.rank[a] <= this.rank[b] ? [a, b] : [b, a];
      const path = [];
      let last = high;
      for (let rank = this.rank[high] + 1; bends <= MOST_BENDS && rank < this.rank[low]; rank++) {
        last = this.bend(rank, last);
        path.push(last);
      }
      if (high !== low) this.join(last, low);
      return high === a ? path : path.reverse();
    });
  }

  /** @param {number[]} entering @param {number[]} leaving @param {number} bottom */
  ways(entering, leaving, bottom) {
    const sum = (/** @type {number[]} */ boxes, /** @type {(rank: number) => number} */ way) => boxes.reduce((all, box) => all + way(this.rank[box]), 0);
    if (sum(entering, (rank) => rank) + sum(leaving, (rank) => bottom - rank) > MOST_BENDS) return;
    for (const box of entering) {
      /** @type {number[]} */
      const path = [];
      for (let rank = 0; rank < this.rank[box]; rank++) path.push(this.bend(rank, path.at(-1)));
      const last = path.at(-1);
      if (last !== undefined) this.join(last, box);
      this.entering.set(box, path);
    }
    for (const box of leaving) {
      /** @type {number[]} */
      const path = [];
      for (let rank = this.rank[box] + 1; rank <= bottom; rank++) path.push(this.bend(rank, path.at(-1) ?? box));
      this.leaving.set(box, path);
    }
  }

  /** @param {number} rank @param {number} [above] */
  bend(rank, above) {
    const cell = this.rank.push(rank) - 1;
    this.sizes.push([BEND_WIDTH, 0]);
    this.above.push([]);
    this.below.push([]);
    if (above !== undefined) this.join(above, cell);
    return cell;
  }

  /** @param {number} upper @param {number} lower */
  join(upper, lower) {
    this.below[upper].push(lower);
    this.above[lower].push(upper);
  }

  /** The least width of each row, whatever the order and the places of what is in it. */
  rowWidths() {
    return this.rows.map((row) => row.reduce((sum, cell) => sum + this.sizes[cell][0], GAP * Math.max(row.length - 1, 0)));
  }

  /**
   * A width and a height that the layout has at least: known before cells have an order, which takes most of the time.
   * @param {number} limit @returns {Point}
   */
  least(limit) {
    const [starts, widths] = [bandStarts(this.heights, limit), this.rowWidths()];
    const bands = starts.map((start, at) => [start, starts[at + 1] ?? widths.length]);
    const width = bands.reduce((sum, [start, end]) => sum + Math.max(...widths.slice(start, end)), GUTTER * (bands.length - 1));
    const heights = bands.map(([start, end]) => this.heights.slice(start, end).reduce((sum, one) => sum + one, RANK_GAP * (end - start - 1)));
    return [width, Math.max(...heights) + (bands.length > 1 ? 2 * TURN : 0)];
  }

  order() {
    const [place, wish] = [new Float64Array(this.rank.length), new Float64Array(this.rank.length)];
    for (const row of this.rows) row.forEach((cell, position) => (place[cell] = position));
    const several = this.rows.filter((row) => row.length > 1);
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const down = sweep % 2 === 0;
      const neighbours = down ? this.above : this.below;
      for (const row of down ? several : several.toReversed()) {
        for (const cell of row) wish[cell] = mean(place, neighbours[cell], place[cell]);
        row.sort((a, b) => wish[a] - wish[b]);
        for (let position = 0; position < row.length; position++) place[row[position]] = position;
      }
    }
  }

  place(gap = RANK_GAP) {
    let top = 0;
    for (const [rank, row] of this.rows.entries()) {
      const height = this.heights[rank];
      for (const cell of row) this.y[cell] = top + height / 2;
      top += height + gap;
      this.setRow(row, row.map(() => 0));
    }
    for (let sweep = 0; sweep <= SWEEPS; sweep++) {
      const down = sweep % 2 === 0;
      const neighbours = down ? this.above : this.below;
      for (const row of down ? this.rows : this.rows.toReversed()) {
        this.setRow(row, row.map((cell) => mean(this.x, neighbours[cell], this.x[cell])));
      }
    }
  }

  /** @param {number[]} row @param {number[]} wishes */
  setRow(row, wishes) {
    if (row.length === 1) {
      this.x[row[0]] = wishes[0];
      return;
    }
    let offset = 0;
    const offsets = row.map((cell, i) => {
      if (i) offset += (this.sizes[row[i - 1]][0] + this.sizes[cell][0]) / 2 + GAP;
      return offset;
    });
    /** @type {[number, number][]} */
    const blocks = [];
    for (let i = 0; i < row.length; i++) {
      let [total, count] = [wishes[i] - offsets[i], 1];
      for (let last = blocks.at(-1); last && last[0] / last[1] > total / count; last = blocks.at(-1)) {
        blocks.pop();
        total += last[0];
        count += last[1];
      }
      blocks.push([total, count]);
    }
    let start = 0;
    for (const [total, count] of blocks) {
      for (let i = start; i < start + count; i++) this.x[row[i]] = total / count + offsets[i];
      start += count;
    }
  }

  /** @param {number} limit @param {Point} most @returns {Layout | null} */
  layout(limit, most) {
    const turns = this.fold(bandStarts(this.heights, limit));
    let [left, right, bottom] = [Infinity, -Infinity, 0];
    this.sizes.forEach(([width, height], cell) => {
      left = Math.min(left, this.x[cell] - width / 2);
      right = Math.max(right, this.x[cell] + width / 2);
      bottom = Math.max(bottom, this.y[cell] + height / 2);
    });
    if (turns) bottom += TURN;
    if (exceeds([right - left, bottom], most)) return null;
    /** @type {Point[]} */
    const points = this.x.map((x, cell) => [x - left, this.y[cell]]);
    const turn = turns && { ...turns, gutters: turns.gutters.map((x) => x - left), sources: this.sourcesOf(turns.band) };
    const bends = this.paths.map((path, i) => (turn ? this.turning(i, points, turn) : this.along(path, points, this.rank[this.edges[i][0]] > this.rank[this.edges[i][1]])));
    const [entering, leaving] = [this.entering, this.leaving].map(
      (ways) => new Map(turn ? [] : [...ways].map(([box, path]) => [box, this.along(path, points)])),
    );
    return { centres: points.slice(0, this.boxes), bends, width: right - left, height: bottom, entering, leaving };
  }

  /**
   * Puts bands of ranks side by side; null where there is one only.
   * @param {number[]} starts the first rank of each
   */
  fold(starts) {
    if (starts.length < 2) return null;
    const band = this.heights.map((_, rank) => starts.findLastIndex((start) => start <= rank));
    const tops = starts.map((rank) => Math.min(...this.rows[rank].map((cell) => this.y[cell])) - this.heights[rank] / 2 - TURN);
    const [lefts, rights] = [starts.map(() => Infinity), starts.map(() => -Infinity)];
    this.rank.forEach((rank, cell) => {
      const [at, half] = [band[rank], this.sizes[cell][0] / 2];
      lefts[at] = Math.min(lefts[at], this.x[cell] - half);
      rights[at] = Math.max(rights[at], this.x[cell] + half);
    });
    const [shifts, gutters] = [[0], [0]];
    for (let at = 1; at < starts.length; at++) {
      const end = rights[at - 1] + shifts[at - 1];
      gutters.push(end + GUTTER / 2);
      shifts.push(end + GUTTER - lefts[at]);
    }
    this.rank.forEach((rank, cell) => {
      this.x[cell] += shifts[band[rank]];
      this.y[cell] -= tops[band[rank]];
    });
    const ends = starts.map((_, at) => this.bottomOf(band, at) + TURN);
    return { band, gutters, ends };
  }

  /** @param {number[]} band @param {number} at */
  bottomOf(band, at) {
    return this.rank.reduce((low, rank, cell) => (band[rank] === at ? Math.max(low, this.y[cell] + this.heights[rank] / 2) : low), 0);
  }

  /** The cells of an edge from the top on, its boxes included. @param {number} edge */
  cellsOf(edge) {
    const [[from, to], path] = [this.edges[edge], this.paths[edge]];
    return this.rank[from] > this.rank[to] ? [to, ...path.toReversed(), from] : [from, ...path, to];
  }

  /** For each band, from where edges come round to it, the leftmost box first: each has a track of its own. @param {number[]} band */
  sourcesOf(band) {
    /** @type {Map<number, number>[]} */
    const places = Array.from({ length: (band.at(-1) ?? 0) + 1 }, () => new Map());
    this.edges.forEach((_, edge) => {
      const cells = this.cellsOf(edge);
      for (let i = 1; i < cells.length; i++)
        for (let at = band[this.rank[cells[i - 1]]] + 1; at <= band[this.rank[cells[i]]]; at++)
          places[at].set(cells[0], Math.min(places[at].get(cells[0]) ?? Infinity, this.x[cells[i - 1]]));
    });
    return places.map((of) => [...of].sort(([a, x], [b, y]) => x - y || a - b).map(([source]) => source));
  }

  /**
   * The bends of an edge, round the ends of bands where it goes from one to another.
   * @param {number} edge @param {Point[]} points
   * @param {{band: number[], gutters: number[], ends: number[], sources: number[][]}} turn @returns {Point[]}
   */
  turning(edge, points, { band, gutters, ends, sources }) {
    const cells = this.cellsOf(edge);
    /** @type {Point[]} */
    const way = [];
    let previous = 0; // the gutter that it has come through
    cells.forEach((cell, i) => {
      const [here, before] = [band[this.rank[cell]], band[this.rank[cells[i - 1] ?? cell]]];
      for (let at = before + 1; at <= here; at++) {
        const [track, last] = [sources[at].indexOf(cells[0]), sources[at].length - 1];
        const step = last && Math.min(APART, TRACKS / last);
        // The leftmost turns round outermost, and innermost where it arrives: in the gutter none crosses another.
        const [low, gutter, top] = [ends[at - 1] - step * track, gutters[at] + step * (last / 2 - track), step * (last - track)];
        way.push([at === before + 1 ? points[cells[i - 1]][0] : previous, low], [gutter, low], [gutter, top], [at === here ? points[cell][0] : gutter, top]);
        previous = gutter;
      }
      if (i > 0 && i < cells.length - 1) way.push(...this.along([cell], points));
    });
    return cells[0] === this.edges[edge][0] ? way : way.reverse();
  }

  /**
   * Straight through each rank that a path crosses, so that it passes beside tall boxes.
   * @param {number[]} path @param {Point[]} points @param {boolean} [up] @returns {Point[]}
   */
  along(path, points, up = false) {
    return path.flatMap((cell) => {
      const [x, y] = points[cell];
      const half = this.heights[this.rank[cell]] / 2;
      return /** @type {Point[]} */ (up ? [[x, y + half], [x, y - half]] : [[x, y - half], [x, y + half]]);
    });
  }
}

/** @param {ArrayLike<number>} values @param {number[]} cells @param {number} otherwise */
function mean(values, cells, otherwise) {
  if (!cells.length) return otherwise;
  let sum = 0;
  for (const cell of cells) sum += values[cell];
  return sum / cells.length;
}
