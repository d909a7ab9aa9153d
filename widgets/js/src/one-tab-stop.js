// A widget that is one stop of the Tab key: arrows move among its controls, F6 goes from pane to pane, also to those that scroll,
// where the arrows scroll. Which element it is that Tab leads to follows the focus.

const FOCUSABLE = "button, input, select, summary, a[href], [tabindex]";
const SCROLLERS = ".ll-dash-second, .ll-window, .ll-source, .ll-listing, .ll-details, .ll-scroll, .ll-tape, .ll-diff";
const PANES = `.ll-bar, .ll-history, .ll-canvas, .ll-foot, .ll-what-if, .ll-dash-tabs, ${SCROLLERS}`; // of any view
const ALWAYS = ".ll-window, .ll-listing, .ll-diff"; // these can have the focus in any case
const ROOM = 12; // pixels beyond its height or width from which on a pane scrolls
const FORWARD = ["ArrowRight", "ArrowDown"];
const BACKWARD = ["ArrowLeft", "ArrowUp"];

/** @param {HTMLElement} root */
export function oneTabStop(root) {
  /** @type {HTMLElement | null} */
  let stop = null;
  const taken = new WeakSet(); // from the Tab key, which led to them
  let frame = 0;
  /** Whether the arrows lead to it: not to one of many that its view moves among by itself. @param {HTMLElement} one */
  const isOffered = (one) => isSeen(one) && !one.matches(SCROLLERS) && (one.getAttribute("tabindex") !== "-1" || taken.has(one));
  const all = () => /** @type {HTMLElement[]} */ ([...root.querySelectorAll(FOCUSABLE)]);
  const settle = () => {
    frame = 0;
    for (const pane of root.querySelectorAll(SCROLLERS)) scrollable(/** @type {HTMLElement} */ (pane), pane === stop);
    if (!stop || !root.contains(stop) || !isSeen(stop)) stop = all().find(isOffered) ?? root.querySelector(FOCUSABLE); // before it is on the page nothing is seen
    for (const one of all()) {
      const index = one === stop || one.role === "tabpanel" ? "0" : "-1";
      if (one.getAttribute("tabindex") === index) continue;
      if (index === "-1") taken.add(one);
      one.setAttribute("tabindex", index);
    }
  };
  const soon = () => (frame ||= requestAnimationFrame(settle)); // once, however much is drawn
  new MutationObserver(soon).observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["tabindex", "hidden"] });
  root.addEventListener("focusin", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    // By a click, of which the second half would meet something else if the page scrolled now.
    if (target.matches("[data-inside]")) return /** @type {HTMLElement | null} */ (target.closest(SCROLLERS))?.focus({ preventScroll: true });
    stop = target;
    settle();
  });
  root.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.matches(SCROLLERS) && event.key !== "F6") return; // it scrolls
    const writes = target instanceof HTMLInputElement; // left and right are its own, as up and down are of a choice
    const own = writes ? /Left|Right/ : target instanceof HTMLSelectElement ? /Up|Down/ : /^$/;
    const step = FORWARD.includes(event.key) ? 1 : BACKWARD.includes(event.key) ? -1 : 0;
    if (event.key === "F6") next(root, target, event.shiftKey ? -1 : 1);
    else if (own.test(event.key) || /^.$/.test(event.key)) return event.stopPropagation(); // in a notebook these are commands
    else if (step) {
      const offered = all().filter(isOffered);
      offered[(offered.indexOf(target) + step + offered.length) % offered.length]?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  root.dataset.lmSuppressShortcuts = "true"; // those of JupyterLab that are not for what has the focus alone
  settle();
}

/**
 * A pane that scrolls can have the focus. So can the first thing in one that holds nothing else which can: axe takes a pane for out
 * of the keyboard's reach where Tab does not lead to it, and knows nothing of F6.
 * @param {HTMLElement} pane @param {boolean} has whether it has the focus
 */
function scrollable(pane, has) {
  if (pane.role === "tabpanel") return; // which Tab leads to
  const scrolls = has || pane.matches(ALWAYS) || pane.scrollHeight > pane.clientHeight + ROOM || pane.scrollWidth > pane.clientWidth + ROOM;
  if (scrolls && !pane.querySelector(FOCUSABLE)) {
    const first = pane.querySelector("[role=row]") ?? (pane.role === "rowgroup" ? null : pane.firstElementChild);
    first?.setAttribute("tabindex", "-1");
    first?.toggleAttribute("data-inside", true);
  }
  if (scrolls === pane.hasAttribute("tabindex")) return;
  if (scrolls) pane.setAttribute("tabindex", "-1");
  else pane.removeAttribute("tabindex");
}

/** Puts the focus into the next pane: where it scrolls on itself first, then on what is in it. @param {HTMLElement} root @param {HTMLElement} target @param {number} step */
function next(root, target, step) {
  const panes = /** @type {HTMLElement[]} */ ([...root.querySelectorAll(PANES)].filter((one) => one.getClientRects().length));
  const paneOf = (/** @type {HTMLElement} */ one) => panes.findLast((pane) => pane !== one && pane.contains(one)); // the innermost
  const places = panes.flatMap((pane) => {
    const own = /** @type {HTMLElement[]} */ ([...pane.querySelectorAll(FOCUSABLE)]).find((one) => isSeen(one) && !one.matches(`${SCROLLERS}, [data-inside]`) && paneOf(one) === pane);
    return [pane.getAttribute("tabindex") === null || pane.role === "tabpanel" ? null : pane, own].filter((one) => one);
  });
  const here = places.indexOf(target);
  const at = here >= 0 ? here : places.findLastIndex((one) => one && paneOf(one) === paneOf(target));
  places[(at + step + places.length) % places.length]?.focus();
}

/** @param {HTMLElement} one */
function isSeen(one) {
  return one.getClientRects().length > 0 && !(/** @type {any} */ (one).disabled) && one.ariaHidden !== "true";
}
