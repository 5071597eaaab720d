// The last lines of the process's log.

import { detailsOf, repeat, request } from "./api.js";
import { element, problemNote } from "./dom.js";

const INTERVAL = 1_000;
/** The most lines that are shown. */
const MAX_LINES = 1_000;
const LEVELS = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

export function showLog(main) {
  const lines = element("div", { class: "lines", id: "lines", role: "log" });
  const level = element("select", { "aria-label": "Lowest level", onchange: narrow }, LEVELS.map((it) => element("option", { value: it }, it.toLowerCase())));
  level.value = "TRACE";
  const search = element("input", { type: "search", placeholder: "Filter", "aria-label": "Filter lines", oninput: narrow });
  const note = element("div", {});
  const empty = element("p", { class: "empty" }, "No lines yet. The variable ", element("code", {}, "SPANDREL_LOG"), " selects the levels; without it the console keeps those from info on.");
  main.append(element("section", { class: "card" }, element("div", { class: "row spread" }, element("h1", {}, "Log"),
    element("div", { class: "row" }, level, search)), note, empty, lines));
  let seen = 0;

  function fits(line) {
    return LEVELS.indexOf(line.dataset.level) <= LEVELS.indexOf(level.value) && line.textContent.toLowerCase().includes(search.value.toLowerCase());
  }

  function narrow() {
    for (const line of lines.children) line.hidden = !fits(line);
  }

  async function load() {
    try {
      const answer = await request("log", { query: { after: seen } });
      // Another process counts anew.
      if (answer.written < seen) lines.replaceChildren();
      seen = answer.written;
      for (const text of answer.lines) {
        // The newest line is the first.
        const line = shown(text);
        line.hidden = !fits(line);
        lines.prepend(line);
      }
      while (lines.childElementCount > MAX_LINES) lines.lastElementChild.remove();
      empty.hidden = lines.childElementCount > 0;
      note.replaceChildren();
    } catch (error) {
      note.replaceChildren(problemNote(detailsOf(error)));
    }
  }

  return { end: repeat(INTERVAL, load) };
}

function shown(text) {
  let line;
  try {
    line = JSON.parse(text);
  } catch {
    line = { fields: { message: text } };
  }
  const { message = "", ...fields } = line.fields || {};
  const level = LEVELS.includes(line.level) ? line.level : "INFO";
  const time = line.timestamp ? new Date(line.timestamp).toLocaleTimeString([], { hour12: false }) : "";
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join("");
  return element("div", { class: `line ${level}`, "data-level": level }, element("span", { class: "muted" }, time), element("span", { class: "level" }, level),
    element("span", { class: "text" }, message, element("span", { class: "muted" }, `${rest}  ${line.target || ""}`)));
}
