/** Figures and colours as people see them. */

/** `1:02:03` or `2:03`, from milliseconds. */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const two = (n) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** Milliseconds for people; an em dash for what was not measured. */
export function milliseconds(ms) {
  if (ms === null || ms === undefined) return "–";
  return ms < 9950 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Seconds with one decimal, from milliseconds: for what a person waits for. */
export function seconds(ms) {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
}

/** Numbers with one decimal and a unit, or an en dash when it is not known (unknown is not zero). */
export function amount(value, unit = "", digits = 0) {
  return value === null || value === undefined ? "–" : `${value.toFixed(digits)}${unit}`;
}

const TURNING = /[\u202a-\u202e\u2066-\u2069]/g; // characters that turn the direction of writing for what follows
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * Text from others within a sentence: where it is written from right to left it is isolated (first strong isolate, pop),
 * and it turns nothing around but itself.
 */
export function isolated(text) {
  const plain = String(text).replaceAll(TURNING, "");
  return plain.length < String(text).length || RIGHT_TO_LEFT.test(plain) ? `\u2068${plain}\u2069` : plain;
}

/** A hue for an id, the same on every page; SFUs named by number get hues far apart. */
export function hueOf(id) {
  const number = Number(/(\d+)$/.exec(id)?.[1] ?? NaN);
  if (!Number.isNaN(number)) return (175 + number * 137.5) % 360;
  return [...id].reduce((hash, char) => (hash * 31 + char.charCodeAt(0)) % 360, 7);
}

/** A badge that names an SFU. */
export function badge(sfu, { cordoned = false } = {}) {
  const element = document.createElement("span");
  element.className = "badge";
  paintBadge(element, sfu, { cordoned });
  return element;
}

/** Make an existing badge name `sfu`. */
export function paintBadge(element, sfu, { cordoned = false, text = sfu } = {}) {
  if (element.textContent !== text) element.textContent = text;
  element.style.setProperty("--hue", hueOf(sfu));
  element.dataset.cordoned = String(cordoned);
}

/** An element with text and properties. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
