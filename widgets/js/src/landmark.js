// Names of landmarks: a reader who jumps from one to the next must be able to tell them apart.

/**
 * Names a view, with a number where another view of the page has the name already.
 * @param {HTMLElement} root @param {string} name "Graph of train_step"
 */
export function nameLandmark(root, name) {
  if (root.dataset.landmark === name) return;
  root.dataset.landmark = name;
  const same = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-landmark]"))].filter(
    (other) => other !== root && other.dataset.landmark === name,
  );
  const taken = new Set(same.map((other) => other.getAttribute("aria-label")));
  let number = 1;
  const numbered = () => (number === 1 ? name : `${name}, view ${number}`);
  while (taken.has(numbered())) number += 1;
  root.setAttribute("aria-label", numbered());
}
