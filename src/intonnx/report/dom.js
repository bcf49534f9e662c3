"use strict";
// What every part of the page uses: the facts, elements, numbers.

const FACTS = JSON.parse(document.getElementById("facts").textContent);
const byId = (id) => document.getElementById(id);

/** An element with attributes and children; text is never read as HTML. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A number in at most four digits, with a unit for large ones. */
function short(number) {
  if (number === 0 || !Number.isFinite(number)) return String(number);
  const size = Math.abs(number);
  if (size >= 1e4) {
    const power = Math.min(Math.floor(Math.log10(size) / 3), 4);
    return `${Number((number / 10 ** (3 * power)).toPrecision(3))}${["", "k", "M", "G", "T"][power]}`;
  }
  return size < 1e-3 ? number.toExponential(2) : String(Number(number.toPrecision(4)));
}

function percent(share) {
  if (share === 0) return "0";
  return share < 0.0001 ? "<0.01 %" : `${Number((100 * share).toPrecision(3))} %`;
}

function titleOf(operator) {
  return operator.name || FACTS.values[operator.results[0]]?.name || operator.title;
}

function errorText(error) {
  if (error === null) return "";
  if (error.unit === "relative") return `${error.largest.toExponential(1)} of max`;
  return `${short(error.largest)} ${error.largest === 1 ? "quantum" : "quanta"}`;
}
