// A gradient rule as MathML, which browsers set and screen readers read: "x̄ = z̄ yᵀ" becomes x with a bar over it, and so on.

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿᵀᴴᵃᵇʸ*";
const LOWERED = "₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₖₘₙ";
const PLAIN = /** @type {Record<string, string>} */ ({ "⁺": "+", "⁻": "-", "⁽": "(", "⁾": ")", "₊": "+", "₋": "-" });
const TOKEN = new RegExp(
  `(?<over>\\p{L}[\\u0304\\u0305])|(?<number>\\d+(?:\\.\\d+)?)|(?<name>[A-Za-z]{2,})|(?<letter>[\\p{L}∂])|(?<space>\\s+)|(?<sign>.)`,
  "uy",
);
const RAISED_LETTERS = new RegExp(`[${RAISED.replace("*", "")}]`, "u");

/**
 * The rule as a tree: elements are [name, ...children], text is a string.
 * @typedef {[string, ...any[]]} Element
 * @param {string} rule @returns {Element}
 */
export function mathTree(rule) {
  const text = rule.normalize("NFD");
  /** @type {any[]} */
  const row = [];
  for (let at = 0; at < text.length; ) {
    TOKEN.lastIndex = at;
    const groups = TOKEN.exec(text)?.groups;
    if (!groups) break;
    at = TOKEN.lastIndex;
    const base = element(groups, row);
    if (!base) continue;
    const [low, afterLow] = scripts(text, at, LOWERED);
    const [high, afterHigh] = scripts(text, afterLow, RAISED);
    at = afterHigh;
    row.push(low && high ? ["msubsup", base, low, high] : low ? ["msub", base, low] : high ? ["msup", base, high] : base);
  }
  return ["math", ["mrow", ...row]];
}

/** @param {Record<string, string>} groups @param {any[]} row what stands before, to which words are added @returns {Element | null} */
function element({ over, number, name, letter, space, sign }, row) {
  if (over) return ["mover", ["mi", over[0]], ["mo", "¯"]];
  if (number) return ["mn", number];
  if (name) return ["mi", name];
  if (letter) return ["mi", letter];
  if (sign) return ["mo", sign];
  if (space && row.at(-1)?.[0] === "mi") row.push(["mspace"]);
  return null;
}

/** The scripts from `at` on, plainly written, and where they end. @param {string} text @param {number} at @param {string} signs @returns {[Element | null, number]} */
function scripts(text, at, signs) {
  let end = at;
  while (end < text.length && signs.includes(text[end]) && (text[end] !== "*" || starred(text, end))) end += 1;
  if (end === at) return [null, at];
  const plain = [...text.slice(at, end)].map((sign) => PLAIN[sign] ?? (sign === "*" ? sign : sign.normalize("NFKD")));
  const parts = plain.map((sign) => (/\d/.test(sign) ? ["mn", sign] : /[+\-()*]/.test(sign) ? ["mo", sign] : ["mi", sign]));
  return [parts.length === 1 ? /** @type {Element} */ (parts[0]) : ["mrow", ...parts], end];
}

/** Whether an asterisk is a conjugate, not a product: nothing that could be a factor follows at once. @param {string} text @param {number} at */
function starred(text, at) {
  const next = text[at + 1] ?? " ";
  return !/[\p{L}\d(]/u.test(next) || RAISED_LETTERS.test(next);
}
