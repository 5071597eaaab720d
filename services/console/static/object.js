// An object: its state, its interface with documentation, and forms to call its operations.

import { detailsOf, repeat, request } from "./api.js";
import { button, duration, element, problemNote, shortened } from "./dom.js";
import { Context, Invalid, editor, field } from "./editors.js";

const STATES = {
  exists: ["good", "exists"], gone: ["bad", "does not exist"], unreachable: ["bad", "not reachable"], denied: ["warn", "not permitted"],
  unknown: ["", "not known"],
};
/** The time between two looks at the state of an object, in milliseconds. */
const STATE_INTERVAL = 2_000;
/** The longest time limit of a call in seconds, as in the server. */
const MAX_TIMEOUT = 60;
/** The most characters of a name in a heading. */
const MAX_HEADING = 120;

/** Shows an object below an element; returns a function that ends it. */
export function showObject(below, target) {
  let ended = false;
  let endState = () => {};
  below.replaceChildren(element("section", { class: "card muted" }, "…"));
  request("object", { query: target, timeout: 30_000 }).then((object) => {
    if (ended) return;
    const badge = element("span", { id: "state" });
    const note = element("div", {});
    below.replaceChildren(head(target, object, badge, note), ...contents(target, object));
    showState(object.state, badge, note);
    endState = repeat(STATE_INTERVAL, async () => {
      try {
        showState(await request("state", { query: target }), badge, note);
      } catch (error) {
        const { title, detail } = detailsOf(error);
        showState({ state: "unknown", detail: `${title}: ${detail || ""}` }, badge, note);
      }
    });
  }, (error) => {
    if (ended) return;
    below.replaceChildren(element("section", { class: "card" }, element("h2", { class: "title" }, shortened(target.path ?? "Reference", MAX_HEADING)), problemNote(detailsOf(error)),
      button("Try again", () => { endState = showObject(below, target); })));
  });
  return () => {
    ended = true;
    endState();
  };
}

function showState({ state, detail }, badge, note) {
  const [kind, text] = STATES[state] || STATES.unknown;
  badge.className = `badge ${kind}`;
  badge.textContent = text;
  badge.dataset.state = state;
  note.className = detail ? `note ${kind}` : "";
  note.textContent = detail;
}

function head(target, object, badge, note) {
  const name = target.path === undefined ? "Object by reference" : target.path || "The root context";
  const heading = shortened(name, MAX_HEADING);
  const copy = button("Copy the reference", async () => {
    try {
      await navigator.clipboard.writeText(object.reference);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not permitted by the browser";
    }
  }, { class: "tiny" });
  return element("section", { class: "card" },
    element("div", { class: "row spread" }, element("div", { class: "row" }, element("h2", { class: "title" }, heading), badge), copy),
    note,
    element("dl", { class: "facts" },
      heading === name ? null : [element("dt", {}, "Name"), element("dd", { class: "mono long", tabindex: "0" }, name)],
      element("dt", {}, "Interface"), element("dd", { class: "mono" }, object.interface?.id || object.type || "not in the reference"),
      object.interface?.bases.length ? [element("dt", {}, "Inherits"), element("dd", { class: "mono" }, object.interface.bases.join(", "))] : null,
      element("dt", {}, "Address"), element("dd", { class: "mono" }, object.addresses.join(", ") || "none for TCP without TLS")),
    object.interface?.documentation ? element("p", { class: "doc", id: "documentation" }, object.interface.documentation) : null);
}

function contents(target, object) {
  if (!object.interface) {
    return [element("section", { class: "card" }, element("h3", {}, "Interface"), element("div", { class: "note warn" }, object.problem))];
  }
  const { operations, attributes, undescribed, types, comments } = object.interface;
  const context = new Context(types, comments);
  const sections = [];
  if (operations.length) {
    sections.push(element("section", { class: "card" }, element("h3", {}, "Operations"), operations.map((it) => operation(target, it, context))));
  }
  if (attributes.length) {
    sections.push(element("section", { class: "card" }, element("h3", {}, "Attributes"), attributes.map((it) => attribute(target, it, context))));
  }
  if (undescribed.length) {
    sections.push(element("section", { class: "card" }, element("h3", {}, "Not callable"),
      undescribed.map((it) => element("p", {}, element("code", {}, it.name), `: ${it.reason}`))));
  }
  return sections;
}

/** A declaration with its name in bold. */
function declaration(text, name) {
  const at = text.search(new RegExp(`\\b${name}\\b(?=\\(|$| (get|set)?raises)`));
  if (at < 0) return element("code", {}, text);
  return element("code", {}, text.slice(0, at), element("strong", {}, name), text.slice(at + name.length));
}

function folded(name, text, documentation, make) {
  const body = element("div", {});
  const all = element("details", { class: "operation", "data-name": name },
    element("summary", {}, declaration(text, name), documentation ? element("span", { class: "doc" }, documentation) : null), body);
  // The form is made when it is opened.
  all.addEventListener("toggle", () => {
    if (all.open && !body.hasChildNodes()) body.append(...make());
  });
  return all;
}

function operation(target, it, context) {
  return folded(it.name, it.declaration, it.documentation, () => {
    const sent = it.parameters.filter((parameter) => parameter.mode !== "out");
    const raised = it.exceptions.map(({ spec, id }) => element("li", {}, element("code", {}, spec), context.comments[id]?.text ? ` – ${context.comments[id].text}` : ""));
    return [
      raised.length ? element("div", { class: "small muted" }, "Raises:", element("ul", {}, raised)) : null,
      form(target, { operation: it.name, parameters: sent, context, oneway: it.oneway, text: it.oneway ? "Send" : "Call" }),
    ].filter(Boolean);
  });
}

function attribute(target, it, context) {
  return folded(it.name, it.declaration, it.documentation, () => {
    const get = form(target, { operation: it.name, parameters: [], context, text: "Get" });
    if (it.readonly) return [get];
    const value = { name: "value", type: it.type, spec: it.spec, mode: "in" };
    return [get, form(target, { operation: it.name, set: true, parameters: [value], context, text: "Set" })];
  });
}

/** The name of a field with those of the fields around it. */
function fieldOf(input) {
  const names = [];
  for (let field = input?.closest(".field"); field; field = field.parentElement.closest(".field")) names.unshift(field.dataset.field);
  return names.join(".");
}

/** A form for the arguments, or their JSON, and the outcome of the call below it. */
function form(target, { operation, set = false, parameters, context, oneway = false, text }) {
  const editors = parameters.map((parameter) => [parameter, editor(parameter.type, context)]);
  const fields = element("div", {}, editors.map(([parameter, made]) => (
    field(parameter.name, parameter.type, `${parameter.mode} ${parameter.spec}`, context.comment(parameter.type), made))));
  const json = element("textarea", { hidden: true, "aria-label": "Arguments as JSON", rows: 8, spellcheck: "false" });
  const timeout = element("input", { type: "number", min: "0.1", max: String(MAX_TIMEOUT), step: "any", value: "5", size: 4, "aria-label": "Time limit in seconds" });
  const outcome = element("div", { class: "outcome", "aria-live": "polite" });
  const values = () => Object.fromEntries(editors.map(([parameter, made]) => [parameter.name, made.value()]));
  const isRaw = element("input", { type: "checkbox", class: "raw" });
  isRaw.addEventListener("change", () => {
    if (isRaw.checked) {
      try {
        json.value = JSON.stringify(values(), null, 2);
      } catch {
        json.value = "{}";
      }
    }
    json.hidden = !isRaw.checked;
    fields.hidden = isRaw.checked;
  });
  const submit = element("button", { class: "primary", type: "submit" }, text);
  return element("form", {
    novalidate: true,
    onsubmit: async (event) => {
      event.preventDefault();
      let given;
      try {
        given = isRaw.checked ? json.value : JSON.stringify(values());
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        const { input } = error;
        outcome.replaceChildren(element("div", { class: "note bad", role: "alert" },
          `The argument “${fieldOf(input)}” is not a value of its type: ${error.message}.`));
        input?.focus();
        return;
      }
      const limit = Number(timeout.value);
      submit.disabled = true;
      outcome.replaceChildren(element("p", { class: "muted" }, "…"));
      try {
        const body = { ...target, operation, set, arguments: given, timeout: limit };
        const answer = await request("call", { method: "POST", body, timeout: (limit + 30) * 1000 });
        outcome.replaceChildren(shown(answer, oneway));
      } catch (error) {
        outcome.replaceChildren(problemNote(detailsOf(error)));
      }
      submit.disabled = false;
    },
  },
  fields, json,
  element("div", { class: "row" }, submit,
    parameters.length ? element("label", { class: "row small" }, isRaw, "Arguments as JSON") : null,
    element("label", { class: "row small muted" }, "Time limit", timeout, "s")),
  outcome);
}

function shown(answer, oneway) {
  const time = element("span", { class: "muted small" }, oneway ? "sent" : `after ${duration(answer.seconds)}`);
  let text = answer.outcome;
  try {
    const { result, out } = JSON.parse(answer.outcome);
    const outs = Object.keys(out || {});
    const value = outs.length ? { ...(result === undefined ? {} : { result }), ...out } : result;
    text = value === undefined ? "" : JSON.stringify(value, null, 2);
  } catch {
    // The text of the server is shown.
  }
  return element("div", { class: "note good", "data-outcome": answer.outcome }, element("div", { class: "row" }, element("strong", {}, "Done"), time),
    text ? element("pre", {}, text) : null);
}
