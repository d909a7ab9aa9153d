// A large picture comes into the page in pieces: each is laid out by itself, and the page has its turn in between.

const AT_ONCE = 100; // elements of a list, which take some 10 ms to be laid out

/**
 * Puts a picture in the place of what a stage shows. What was there stays in sight until all is laid out.
 * @param {Element} stage @param {SVGElement} made a group of lists of elements @param {() => Promise<void> | undefined} breathe
 * @param {() => boolean} ended whether it is no longer wanted @returns {Promise<boolean>} whether it is there
 */
export async function attach(stage, made, breathe, ended) {
  const long = [...made.children].filter((list) => list.childElementCount > AT_ONCE);
  if (!long.length) {
    stage.replaceChildren(made);
    return true;
  }
  const waiting = long.map((list) => /** @type {[Element, Element[]]} */ ([list, [...list.children]]));
  for (const list of long) list.replaceChildren();
  const before = [...stage.children];
  made.style.opacity = "0"; // not `visibility`, which all that is in it would inherit, once more when it ends
  made.style.pointerEvents = "none";
  stage.append(made);
  for (const [list, elements] of waiting) {
    for (let start = 0; start < elements.length; start += AT_ONCE) {
      list.append(...elements.slice(start, start + AT_ONCE));
      /** @type {SVGGraphicsElement} */ (made).getBBox?.(); // has the page lay it out now
      const pause = breathe();
      if (pause) await pause;
      if (ended()) {
        made.remove();
        return false;
      }
    }
  }
  for (const one of before) one.remove();
  made.style.opacity = made.style.pointerEvents = "";
  return true;
}
