// A part of a dashboard, as a model for the view that draws it: its messages bear its name, and take the dashboard's comm.

export class Part {
  /** @param {any} model the dashboard's @param {string} name "" for what the dashboard keeps for itself */
  constructor(model, name) {
    this.model = model;
    this.name = name;
    this.left = false;
  }

  /** @param {string} key */
  get(key) {
    return this.name && key === "snapshot" ? this.model.get("parts")[this.name] : this.model.get(key);
  }

  /** Of the messages only its own. @param {string} event @param {(...args: any[]) => void} listener */
  on(event, listener) {
    const ours = (/** @type {any} */ content, /** @type {any} */ buffers) => !this.left && (content?.part ?? "") === this.name && listener(content, buffers);
    this.model.on(event, event === "msg:custom" ? ours : listener);
  }

  /** Its listeners go with the model. */
  off() {}

  /** @param {any} content */
  send(content) {
    this.model.send(this.name ? { ...content, part: this.name } : content);
  }
}
