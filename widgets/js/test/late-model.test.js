// A model that took too long to load hears the kernel all the same.

import assert from "node:assert/strict";
import { test } from "node:test";

import { hearAlways } from "../src/late-model.js";

/** What ipywidgets' models are like, as far as it matters. */
class Model {
  constructor() {
    this.attributes = { theme: "auto" };
    this.listeners = [];
    this.heard = [];
    this.comm = { on_msg: (/** @type {any} */ take) => (this.comm.take = take), take: this._handle_comm_msg.bind(this) };
  }
  set(/** @type {string} */ name, /** @type {any} */ value) {
    if (this.attributes[name] === value) return;
    this.attributes[name] = value;
    for (const [of, told] of [...this.listeners]) if (of === `change:${name}`) told(this, value);
  }
  on(/** @type {string} */ of, /** @type {any} */ told) {
    this.listeners.push([of, told]);
  }
  off(/** @type {string} */ of, /** @type {any} */ told) {
    this.listeners = this.listeners.filter((one) => one[0] !== of || one[1] !== told);
  }
  async _handle_comm_msg(/** @type {any} */ message) {
    this.heard.push(message);
  }
}

/** As anywidget's after 2 seconds: `ready` was refused, and each message waits for it. */
class Late extends Model {
  async _handle_comm_msg(/** @type {any} */ message) {
    await Promise.reject(new Error("[anywidget] Failed to initialize model."));
    return super._handle_comm_msg(message);
  }
}

const lent = (/** @type {any} */ model) =>
  Object.fromEntries(["set", "on", "off"].map((name) => [name, model[name].bind(model)]).concat([["get", (/** @type {string} */ name) => model.attributes[name]]]));

test("a model that came late hears what the kernel says", async () => {
  const model = new Late();
  await assert.rejects(model.comm.take("lost"));
  hearAlways(lent(model));
  await model.comm.take("heard");
  assert.deepEqual(model.heard, ["heard"]);
  assert.deepEqual([model.attributes.theme, model.listeners], ["auto", []]); // and nothing else is another
});

test("where nothing stands in the way, nothing is changed", async () => {
  const model = new Model();
  const before = model.comm.take;
  hearAlways(lent(model));
  assert.equal(model.comm.take, before);
  const bare = { get: () => "auto", set() {}, on() {}, off() {} };
  hearAlways(bare); // one that tells nobody whose change it is
});
