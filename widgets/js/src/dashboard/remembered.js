// How the reader last had the dashboard of a notebook: which views, where it stood, which tab was open.
//
// Kept in the page's storage, by the notebook's path: it is the reader's and not the notebook's, whose metadata would
// change for everybody who shares the file, with each look at another tab.

const PREFIX = "limelight-dashboard:";

/** @typedef {{panels?: string[], dock?: string, tab?: string, reset?: string, share?: number}} Layout */

export class Remembered {
  /** @param {string} path the notebook's */
  constructor(path) {
    this.key = PREFIX + path;
  }

  /** As it is now: another part of the page may have written it. @returns {Layout} */
  get layout() {
    try {
      return JSON.parse(localStorage.getItem(this.key) ?? "{}");
    } catch {
      return {}; // no storage here, or not ours: nothing is remembered
    }
  }

  /** @param {Layout} changed */
  keep(changed) {
    try {
      localStorage.setItem(this.key, JSON.stringify({ ...this.layout, ...changed }));
    } catch {
      // it is not remembered
    }
  }

  forget() {
    try {
      localStorage.removeItem(this.key);
    } catch {
      // there was nothing
    }
  }
}
