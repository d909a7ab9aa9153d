// Light or dark, where somebody has asked for one; else views have the colours of the front end around them.

/** @param {HTMLElement} around an element around a view @param {any} model of the view */
export function themed(around, model) {
  const theme = model.get("theme");
  if (theme === "light" || theme === "dark") around.dataset.llTheme = theme;
  else delete around.dataset.llTheme;
}
