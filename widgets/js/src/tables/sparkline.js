// The line of a sparkline.

export const [WIDTH, HEIGHT] = [180, 36];

/** Steps through the values, the greatest at the top. @param {ArrayLike<number>} values */
export function line(values) {
  const numbers = Array.from(values);
  const most = numbers.reduce((a, b) => Math.max(a, b), 1);
  const step = WIDTH / Math.max(numbers.length, 1);
  const y = (/** @type {number} */ value) => (HEIGHT - 2 - (HEIGHT - 4) * (value / most)).toFixed(1);
  return numbers.map((value, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)},${y(value)} H${((i + 1) * step).toFixed(1)}`).join(" ");
}
