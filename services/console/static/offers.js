// Offers of the trader.

import { detailsOf, request } from "./api.js";
import { button, element, problemNote, shortened } from "./dom.js";

/** The most characters of a value in the table. */
const MAX_VALUE = 60;

export function showOffers(main, query) {
  const types = element("datalist", { id: "offer-types" });
  const type = element("input", { id: "offer-type", list: "offer-types", required: true, "aria-label": "Service type", placeholder: "Service type" });
  const constraint = element("input", { id: "offer-constraint", "aria-label": "Constraint", placeholder: "Constraint: ppm > 20 and colour" });
  const preference = element("input", { id: "offer-preference", "aria-label": "Preference", placeholder: "Preference: min queue" });
  const note = element("div", {});
  const list = element("div", { id: "offers" });
  const form = element("form", {
    onsubmit: (event) => {
      event.preventDefault();
      const target = `#/offers?${new URLSearchParams({ type: type.value.trim(), constraint: constraint.value, prefer: preference.value })}`;
      if (location.hash === target) find();
      else location.hash = target;
    },
  }, element("div", { class: "row" }, type, constraint, preference, element("button", { class: "primary", type: "submit" }, "Query")));
  main.append(element("section", { class: "card" }, element("div", { class: "row spread" }, element("h1", {}, "Offers"),
    element("span", { class: "muted small" }, "of the trader of this process")), types, form, note, list));

  async function loadTypes() {
    try {
      const answer = await request("offers/types");
      types.replaceChildren(...answer.types.map((name) => element("option", { value: name })));
      if (!type.value && answer.types.length === 0) note.replaceChildren(element("p", { class: "muted" }, "The trader has no service types yet."));
    } catch (error) {
      note.replaceChildren(problemNote(detailsOf(error)));
    }
  }

  let asked = null;
  async function find() {
    list.replaceChildren();
    if (!type.value.trim()) return;
    const own = (asked = Symbol("query"));
    try {
      const answer = await request("offers", { query: { type: type.value.trim(), constraint: constraint.value, prefer: preference.value } });
      if (asked !== own) return;
      note.replaceChildren();
      list.replaceChildren(...shown(answer));
    } catch (error) {
      if (asked === own) note.replaceChildren(problemNote(detailsOf(error)));
    }
  }

  function update(query) {
    type.value = query.get("type") || "";
    constraint.value = query.get("constraint") || "";
    preference.value = query.get("prefer") || "";
    find();
  }

  update(query);
  loadTypes();
  return { update, end: () => { asked = null; } };
}

function shown({ offers, truncated, limits }) {
  if (offers.length === 0) return [element("p", { class: "muted" }, "No offer matches.")];
  const names = [...new Set(offers.flatMap(({ properties }) => Object.keys(properties)))];
  const value = (name, text) => element("td", { "data-label": name, title: text }, text === undefined ? "" : shortened(text, MAX_VALUE));
  const object = ({ reference, interface: id }) => element("td", { "data-label": "Object" }, reference
    ? button(shortened(id || "object", MAX_VALUE), () => { location.hash = `#/names?${new URLSearchParams({ reference })}`; }, { class: "tiny" })
    : "nil");
  const rows = offers.map((offer) => element("tr", {}, ...names.map((name) => value(name, offer.properties[name])), object(offer)));
  const head = element("thead", {}, element("tr", {}, ...[...names, "Object"].map((name) => element("th", { scope: "col" }, name))));
  const made = [element("div", { class: "scroll" }, element("table", { class: "stack" }, head, element("tbody", {}, ...rows)))];
  if (truncated) {
    const reason = limits.length > 0 ? ` (${limits.join(", ")})` : "";
    made.push(element("p", { class: "muted small" }, `There are more offers than are shown${reason}.`));
  }
  return made;
}
