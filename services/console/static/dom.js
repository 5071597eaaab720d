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

/** A problem of a request, as the server describes it. */
export function problemNote(problem) {
  const exception = problem.exception || problem.system_exception;
  return element("div", { class: "note bad", role: "alert" },
    element("strong", {}, problem.title || "The request failed"),
    problem.detail && problem.detail !== problem.title ? element("div", {}, problem.detail) : null,
    exception ? element("pre", { class: "exception" }, JSON.stringify(exception, null, 2)) : null);
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
