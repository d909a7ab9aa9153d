// A widget, or a toolbar, whose controls are one stop of the Tab key: arrows move among them, F6 goes from pane to pane. Panes
// that scroll are stops of their own, so that the keyboard can scroll them.

const FOCUSABLE = "button, input, select, summary, a[href], [tabindex]";
const SCROLLERS = ".ll-dash-second, .ll-window, .ll-source, .ll-listing, .ll-details, .ll-scroll, .ll-tape";
const ROOM = 12; // pixels beyond its height or width from which on a pane scrolls
const FORWARD = ["ArrowRight", "ArrowDown"];
const BACKWARD = ["ArrowLeft", "ArrowUp"];

/** @param {HTMLElement} root @param {string} [panes] what F6 goes round, if anything */
export function oneTabStop(root, panes = "") {
  /** @type {HTMLElement | null} */
  let stop = null;
  const stops = () => /** @type {HTMLElement[]} */ ([...root.querySelectorAll(FOCUSABLE)].filter(isReachable));
  const settle = () => {
    for (const pane of root.querySelectorAll(SCROLLERS)) scrollable(/** @type {HTMLElement} */ (pane));
    if (!stop || !root.contains(stop) || !isReachable(stop)) stop = stops()[0] ?? root.querySelector(FOCUSABLE); // before it is on the page nothing is seen
    for (const one of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(FOCUSABLE))) {
      if (one.matches(SCROLLERS)) continue;
      const index = one === stop ? "0" : "-1";
      if (one.getAttribute("tabindex") === index) continue;
      one.dataset.stop ??= one.getAttribute("tabindex") === "-1" ? "never" : "may";
      one.setAttribute("tabindex", index);
    }
  };
  new MutationObserver(settle).observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["tabindex", "hidden"] });
  root.addEventListener("focusin", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!target.matches(SCROLLERS)) stop = target;
    settle();
  });
  root.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.matches(SCROLLERS) && event.key !== "F6") return; // it scrolls
    const writes = target instanceof HTMLInputElement; // left and right are its own, as up and down are of a choice
    const own = writes ? /Left|Right/ : target instanceof HTMLSelectElement ? /Up|Down/ : /^$/;
    const step = FORWARD.includes(event.key) ? 1 : BACKWARD.includes(event.key) ? -1 : 0;
    if (panes && event.key === "F6") next(panesOf(root, panes), target, event.shiftKey ? -1 : 1);
    else if (step && !own.test(event.key)) {
      const all = stops();
      all[(all.indexOf(target) + step + all.length) % all.length]?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  settle();
}

/** A pane that scrolls can be reached; `tabindex` of its own stays. @param {HTMLElement} pane */
function scrollable(pane) {
  if (pane.matches(".ll-window, [role=tabpanel]")) return; // which can always be reached
  const scrolls = pane.scrollHeight > pane.clientHeight + ROOM || pane.scrollWidth > pane.clientWidth + ROOM;
  if (scrolls === (pane.getAttribute("tabindex") === "0")) return;
  if (scrolls) pane.setAttribute("tabindex", "0");
  else pane.removeAttribute("tabindex");
}

/** @param {HTMLElement} root @param {string} panes */
function panesOf(root, panes) {
  return /** @type {HTMLElement[]} */ ([...root.querySelectorAll(panes)].filter((one) => one.getClientRects().length));
}

/** Puts the focus into the next pane. @param {HTMLElement[]} panes @param {HTMLElement} target @param {number} step */
function next(panes, target, step) {
  const at = panes.findIndex((pane) => pane.contains(target));
  for (let i = 1; i <= panes.length; i += 1) {
    const pane = panes[(at + step * i + panes.length * i) % panes.length];
    const own = /** @type {HTMLElement | undefined} */ ([...pane.querySelectorAll(FOCUSABLE)].find(isReachable));
    if (own) return own.focus();
  }
}

/** @param {Element} one whether it may have the focus: seen, and not one of many that its view moves among by itself */
function isReachable(one) {
  const element = /** @type {HTMLElement} */ (one);
  return element.getClientRects().length > 0 && !(/** @type {any} */ (element).disabled) && element.dataset.stop !== "never";
}
