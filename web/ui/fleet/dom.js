/** Elements that stay: painted only where something changed, so that nothing flickers and focus is never lost. */

import { make } from "../format.js";

/** Set text, if it is another one. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** Set data attributes; null takes one away. */
export function data(element, values) {
  for (const [name, value] of Object.entries(values)) {
    if (value === null) delete element.dataset[name];
    else if (element.dataset[name] !== String(value)) element.dataset[name] = value;
  }
}

/** Set a custom property of the style. */
export function style(element, name, value) {
  if (element.style.getPropertyValue(name) !== String(value)) element.style.setProperty(name, value);
}

const kept = new WeakMap();

/** The children of `parent` become one element an item: `create(item)` once a key, `paint(element, item)` each time. */
export function keyed(parent, items, keyOf, create, paint) {
  const old = kept.get(parent) ?? new Map();
  const now = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (now.has(key)) continue; // the same thing told twice is shown once
    const element = old.get(key) ?? create(item);
    paint(element, item);
    now.set(key, element);
  }
  for (const [key, element] of old) if (!now.has(key)) element.remove();
  let place = parent.firstChild;
  for (const element of now.values()) {
    if (element === place) place = place.nextSibling;
    else parent.insertBefore(element, place);
  }
  kept.set(parent, now);
  return now;
}

/** An element with named parts inside: `parts({bar: make("i")})` gives an element whose `.parts.bar` can be painted. */
export function shell(tag, className, ...children) {
  return make(tag, { className }, ...children.filter(Boolean));
}

/** Terms and values: `paint({Load: "54 %"})`. */
export function facts() {
  const list = make("dl", { className: "facts" });
  const paint = (pairs) => keyed(
    list,
    Object.entries(pairs).filter(([, value]) => value !== null).flatMap(([term, value]) => [["dt", term, term], ["dd", term, value]]),
    ([tag, term]) => `${tag} ${term}`,
    ([tag]) => make(tag),
    (element, [, , value]) => text(element, value),
  );
  return { list, paint };
}
