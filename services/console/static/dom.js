// Elements of the page. Text is always set as text: nothing that an object returns becomes markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (`class`, `on…` listeners) and children (elements and texts; null is left out). */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A button. */
export function button(text, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, text);
}

/** An element of a drawing. */
export function drawing(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A text that is not longer than so many characters: the middle of a long one is left out. */
export function shortened(text, most) {
  const characters = [...text];
  if (characters.length <= most) return text;
  const end = Math.floor(most / 4);
  return `${characters.slice(0, most - end - 1).join("")}…${characters.slice(-end).join("")}`;
}

let ids = 0;

/** The id of an element, which gets one. */
export function idOf(made) {
  if (!made.id) {
    ids += 1;
    made.id = `e${ids}`;
  }
  return made.id;
}

/** Names the controls in an element that have no name of their own, by a text or by the elements that have it. */
export function nameControls(within, name) {
  for (const control of [within, ...within.querySelectorAll("input, select, textarea")]) {
    if (!control.matches("input, select, textarea")) continue;
    if (control.hasAttribute("aria-label") || control.hasAttribute("aria-labelledby") || control.closest("label")) continue;
    if (typeof name === "string") control.setAttribute("aria-label", name);
    else control.setAttribute("aria-labelledby", name.map(idOf).join(" "));
  }
}

/** A problem of a request, as the server describes it; the members of an exception by their names. */
export function problemNote(problem) {
  const members = Object.entries(problem.exception?.members || {});
  return element("div", { class: "note bad", role: "alert" },
    element("strong", {}, problem.title || "The request failed"),
    problem.detail && problem.detail !== problem.title ? element("div", {}, problem.detail) : null,
    members.length ? element("dl", { class: "facts exception" }, members.map(([name, value]) => [
      element("dt", {}, name), element("dd", {}, typeof value === "object" ? element("pre", {}, JSON.stringify(value, null, 2)) : String(value))])
      .flat()) : null);
}

/** A number for people: three significant digits. */
export function short(number) {
  if (!Number.isFinite(number)) return "–";
  if (number === 0) return "0";
  const units = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [unit, letter] = units.find(([unit]) => Math.abs(number) >= unit) || [1, ""];
  const scaled = number / unit;
  return (Math.abs(scaled) >= 100 ? scaled.toFixed(0) : String(Number(scaled.toPrecision(3)))) + letter;
}

/** A duration for people. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1e-3) return `${Number((seconds * 1e6).toPrecision(3))} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  return `${Number(seconds.toPrecision(3))} s`;
}
