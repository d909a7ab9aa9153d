// How the reader last had the dashboard of a notebook: which views, where it stood, which tab was open.
//
// Kept in the page's storage, by the notebook's path: it is the reader's and not the notebook's, whose metadata would
// change for everybody who shares the file, with each look at another tab.

const PREFIX = "limelight-dashboard:";

/** @typedef {{panels?: string[], dock?: string, tab?: string}} Layout */

export class Remembered {
  /** @param {string} path the notebook's */
  constructor(path) {
    this.key = PREFIX + path;
    /** @type {Layout} */
    this.layout = {};
    try {
      this.layout = JSON.parse(localStorage.getItem(this.key) ?? "{}");
    } catch {
      // no storage here, or not ours: nothing is remembered
    }
  }

  /** @param {Layout} changed */
  keep(changed) {
    this.layout = { ...this.layout, ...changed };
    this.write();
  }

  forget() {
    this.layout = {};
    this.write();
  }

  write() {
    try {
      if (Object.keys(this.layout).length) localStorage.setItem(this.key, JSON.stringify(this.layout));
      else localStorage.removeItem(this.key);
    } catch {
      // it holds for this page alone
    }
  }
}
