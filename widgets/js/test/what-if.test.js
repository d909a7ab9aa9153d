// The box of a trace cache: Enter asks, and an answer stands below the question that it is of.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { whatIf } from "../src/tables/what-if.js";

/** As much of an element as the box has. */
class Element extends EventTarget {
  constructor(name) {
    super();
    Object.assign(this, { name, children: [], attributes: {}, value: "", style: { setProperty() {} } });
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  removeAttribute(name) {
    delete this.attributes[name];
  }
  appendChild(child) {
    this.children.push(child);
  }
  append(...children) {
    this.children.push(...children);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  get textContent() {
    return this.children.map((child) => child.textContent).join("");
  }
  find(name) {
    return this.name === name ? this : this.children.map((child) => child.find?.(name)).find(Boolean);
  }
}

class Text extends Element {
  constructor(text) {
    super("");
    this.text = text;
  }
  get textContent() {
    return this.text;
  }
}

Object.assign(globalThis, { Node: Element, document: { createElement: (name) => new Element(name), createTextNode: (text) => new Text(text) } });

mock.timers.enable({ apis: ["setTimeout"] });

function asking() {
  const told = [];
  const box = whatIf((message) => told.push(message.call));
  const [form, input] = ["form", "input"].map((name) => box.element.find(name));
  const press = (key, more = {}) => {
    const event = Object.assign(new Event("keydown", { cancelable: true }), { key, ...more });
    let stopped = false;
    event.stopPropagation = () => (stopped = true);
    input.dispatchEvent(event);
    return [event.defaultPrevented, stopped];
  };
  return { told, box, form, input, press, said: () => box.element.children[1].textContent };
}

test("Enter asks by itself, once, and is no command of the notebook around it", () => {
  const { told, form, input, press, said } = asking();
  input.value = "f(x)";
  assert.deepEqual(press("Enter"), [true, true]);
  assert.deepEqual([told, said(), form.attributes["aria-busy"]], [["f(x)"], "…", "true"]);
  assert.deepEqual(press("a"), [false, false]);
  assert.deepEqual(press("Enter", { isComposing: true }), [false, false], "it ends a word of another script");
  form.dispatchEvent(new Event("submit", { cancelable: true }));
  assert.deepEqual(told, ["f(x)", "f(x)"]);
});

test("an answer goes when the question changes, and the same one comes again when it is asked again", () => {
  const { box, form, input, press, said } = asking();
  const answer = { call: "f(x)", error: "no f", asked: 1 };
  input.value = "f(x)";
  press("Enter");
  box.show(answer, "f(x)");
  assert.match(said(), /no f/);
  press("Enter");
  box.show(answer, "f(x)");
  assert.equal(said(), "…", "a view that is drawn anew has the old answer yet");
  box.show({ ...answer, asked: 2 }, "f(x)");
  assert.match(said(), /no f/);
  assert.equal(form.attributes["aria-busy"], undefined);
  input.dispatchEvent(new Event("input"));
  assert.equal(said(), "");
});

test("where nobody answers it says so after a while, until an answer comes", () => {
  const { box, input, press, said } = asking();
  input.value = "f(x)";
  press("Enter");
  mock.timers.tick(5000);
  assert.equal(said(), "…");
  mock.timers.tick(5000);
  assert.match(said(), /No answer yet: the kernel is busy, or was restarted/);
  box.show({ call: "f(x)", error: "no f", asked: 3 }, "f(x)");
  mock.timers.tick(10000);
  assert.match(said(), /no f/);
  press("Enter");
  input.dispatchEvent(new Event("input"));
  mock.timers.tick(10000);
  assert.equal(said(), "", "the question is another one");
});
