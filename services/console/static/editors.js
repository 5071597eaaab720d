// Editors for values of IDL types. A type has the JSON form of CORBA::TypeCode, and a value that of docs/json.md.

import { button, element, nameControls } from "./dom.js";

const INTEGERS = {
  octet: [0n, 255n], short: [-32768n, 32767n], "unsigned short": [0n, 65535n], long: [-(2n ** 31n), 2n ** 31n - 1n],
  "unsigned long": [0n, 2n ** 32n - 1n], "long long": [-(2n ** 63n), 2n ** 63n - 1n], "unsigned long long": [0n, 2n ** 64n - 1n],
};
const BASIC = ["boolean", ...Object.keys(INTEGERS), "float", "double", "char", "wchar", "string", "wstring", "any", "TypeCode"];
const FLOATS = /^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$/;

/** An input that is not a value of its type: the reason, and the element in which it was entered. */
export class Invalid extends Error {
  input = null;
}

/**
 * What editors of a form share: `named` has the types that the interface names, `comments` their documentation, `around` the types
 * around a type, to which recursive ones refer.
 */
export class Context {
  constructor(named, comments, around = []) {
    Object.assign(this, { named, comments, around });
  }

  inside(type) {
    return type && typeof type === "object" && type.id ? new Context(this.named, this.comments, [...this.around, type]) : this;
  }

  comment(type, part = null) {
    const of = type && this.comments[type.id];
    return (of && (part === null ? of.text : of.parts[part])) || "";
  }
}

/** The text of a type for people. */
export function typeText(type) {
  if (typeof type === "string") return type;
  if (type.kind === "sequence") return `sequence<${typeText(type.type)}${type.bound ? `, ${type.bound}` : ""}>`;
  if (type.kind === "array") return `${typeText(type.type)}[${type.length}]`;
  return type.name || type.id || type.kind;
}

/** An editor: an element, and a function that returns its value or throws `Invalid`. */
export function editor(type, context) {
  if (typeof type === "string") return basic(type, context);
  const inside = context.inside(type);
  switch (type.kind) {
    case "typedef": return editor(type.type, inside);
    case "recursive": {
      const whole = context.around.findLast((it) => it.id === type.id) || context.named.find((it) => it.id === type.id)?.type;
      return whole ? editor(whole, context) : raw(`the type ${type.id}`);
    }
    case "enum": return enumeration(type, context);
    case "struct": case "exception": return structure(type.members, type, inside);
    case "union": return union(type, inside);
    case "sequence": return isOctet(type.type) ? octets(null) : list(type, inside);
    case "array": return isOctet(type.type) ? octets(type.length) : list(type, inside);
    case "interface": return reference();
    case "valuetype": return nullable(type, () => state(type, inside));
    case "valuebox": return nullable(type, () => boxed(type, inside));
    case "abstract interface": return raw(typeText(type), "null");
    default: return raw(typeText(type));
  }
}

/** A row with a name, a type, a comment and an editor. */
export function field(name, type, text, comment, made) {
  const label = element("span", {}, name);
  const value = element("div", { class: "value" }, made.element);
  nameControls(value, [label]);
  return element("div", { class: "field", "data-field": name },
    element("div", { class: "name" }, label, element("span", { class: "type" }, text ?? typeText(type)),
      comment ? element("p", { class: "doc" }, comment) : null),
    value);
}

function isOctet(type) {
  return type === "octet" || (type.kind === "typedef" && isOctet(type.type));
}

/** An input whose errors are shown beside it. */
function checked(input, read) {
  const note = element("span", { class: "problem", role: "alert", hidden: true });
  const get = () => {
    try {
      const value = read(input.value);
      input.removeAttribute("aria-invalid");
      note.hidden = true;
      return value;
    } catch (error) {
      input.setAttribute("aria-invalid", "true");
      note.textContent = error.message;
      note.hidden = false;
      error.input ??= input.hidden ? input.parentElement.querySelector("textarea") : input;
      throw error;
    }
  };
  input.addEventListener("change", () => {
    try {
      get();
    } catch {
      // The note shows it.
    }
  });
  return { element: element("div", { class: "value" }, input, note), value: get };
}

function basic(type, context) {
  if (INTEGERS[type]) return integer(type);
  if (type === "boolean") {
    const input = element("input", { type: "checkbox" });
    return { element: input, value: () => input.checked };
  }
  if (type === "float" || type === "double" || type === "long double") return float(type);
  if (type.startsWith("fixed")) {
    return checked(element("input", { inputmode: "decimal", value: "0" }), (text) => {
      if (!/^\s*[-+]?(\d+\.?\d*|\.\d+)\s*$/.test(text)) throw new Invalid(`expected a decimal number of type ${type}`);
      return text.trim();
    });
  }
  if (type === "char" || type === "wchar") {
    return checked(element("input", { size: 3, maxlength: 2, value: "a" }), (text) => {
      if ([...text].length !== 1) throw new Invalid("expected one character");
      return text;
    });
  }
  if (/^w?string/.test(type)) return text(type);
  if (type === "any") return any(context);
  if (type === "TypeCode" || type === "CORBA::TypeCode") return typeCode(context);
  if (type === "Object" || type === "CORBA::Object") return reference();
  const inner = /^sequence<(.*?)(?:, (\d+))?>$/.exec(type);
  if (inner) return editor({ kind: "sequence", type: inner[1], bound: inner[2] }, context);
  if (type === "null" || type === "void") return { element: element("span", { class: "muted" }, "no value"), value: () => null };
  return raw(type);
}

function integer(type) {
  const [least, most] = INTEGERS[type];
  return checked(element("input", { inputmode: "numeric", value: "0", size: 22 }), (text) => {
    const digits = text.trim();
    if (!/^-?(\d+|0x[0-9a-fA-F]+)$/.test(digits)) throw new Invalid(`expected an integer of type ${type}`);
    const value = digits.startsWith("-") ? -BigInt(digits.slice(1)) : BigInt(digits);
    if (value < least || value > most) throw new Invalid(`expected an integer from ${least} to ${most}`);
    // Larger numbers are texts, so that no digit is lost.
    return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : String(value);
  });
}

function float(type) {
  return checked(element("input", { inputmode: "decimal", value: "0", size: 22 }), (text) => {
    const trimmed = text.trim();
    if (/^(NaN|-?Infinity)(:0x[0-9a-fA-F]+)?$/.test(trimmed)) return trimmed;
    if (type === "long double" && /^0x[0-9a-fA-F]{32}$/.test(trimmed)) return trimmed;
    if (!FLOATS.test(trimmed)) throw new Invalid("expected a number, NaN, Infinity or -Infinity");
    return Number(trimmed);
  });
}

function text(type) {
  const bound = Number(/<(\d+)>/.exec(type)?.[1] || Infinity);
  const input = element("input", { class: "wide" });
  const long = element("textarea", { hidden: true, rows: 4 });
  const more = button("Several lines", () => {
    long.value = input.value;
    long.hidden = false;
    input.hidden = more.hidden = true;
    long.focus();
  }, { class: "quiet tiny" });
  const made = checked(input, () => {
    const value = long.hidden ? input.value : long.value;
    if ([...value].length > bound) throw new Invalid(`expected at most ${bound} characters`);
    return value;
  });
  made.element.classList.add("beside");
  made.element.append(long, more);
  return made;
}

function enumeration(type, context) {
  const options = type.members.map((name) => element("option", { value: name, title: context.comment(type, name) || null }, name));
  const input = element("select", {}, options);
  const comment = element("span", { class: "muted small" });
  const show = () => { comment.textContent = context.comment(type, input.value); };
  input.addEventListener("change", show);
  show();
  return { element: element("div", { class: "value" }, input, comment), value: () => input.value };
}

function structure(members, type, context) {
  const editors = members.map((member) => [member.name, editor(member.type, context), member]);
  const rows = editors.map(([name, made, member]) => field(name, member.type, null, context.comment(type, name), made));
  return {
    element: element("div", { class: "group" }, rows),
    value: () => Object.fromEntries(editors.map(([name, made]) => [name, made.value()])),
  };
}

function originalOf(type) {
  return type.kind === "typedef" ? originalOf(type.type) : type;
}

/** The JSON of a discriminator from its number. */
function labelOf(discriminator, label) {
  const type = originalOf(discriminator);
  if (type === "boolean") return label !== 0 && label !== "0";
  if (type === "char" || type === "wchar") return String.fromCodePoint(Number(label));
  if (type.kind === "enum") return type.members[Number(label)];
  return label;
}

function union(type, context) {
  const cases = type.members.map((member) => (
    { member, label: member.label === null ? null : labelOf(type.discriminator, member.label) }));
  const text = ({ label, member }) => (label === null ? `default: ${member.name}` : `${label}: ${member.name}`);
  const choice = element("select", { "aria-label": "Member" }, cases.map((it, at) => element("option", { value: String(at) }, text(it))));
  if (!cases.some((it) => it.label === null)) choice.append(element("option", { value: "none" }, "without a member"));
  const body = element("div", { class: "value" });
  let discriminator = null;
  let made = null;
  let chosen = null;
  function show() {
    chosen = cases[Number(choice.value)] || null;
    made = chosen && editor(chosen.member.type, context);
    discriminator = !chosen || chosen.label === null ? editor(type.discriminator, context) : null;
    body.replaceChildren(...[
      discriminator && field("_d", type.discriminator, null, "the discriminator", discriminator),
      chosen && field(chosen.member.name, chosen.member.type, null, context.comment(type, chosen.member.name), made),
    ].filter(Boolean));
  }
  choice.addEventListener("change", show);
  show();
  return {
    element: element("div", { class: "group" }, choice, body),
    value: () => ({ _d: discriminator ? discriminator.value() : chosen.label, ...(chosen ? { [chosen.member.name]: made.value() } : {}) }),
  };
}

function list(type, context) {
  const isFixed = type.kind === "array";
  const most = isFixed ? type.length : type.bound ? Number(type.bound) : Infinity;
  const items = [];
  const body = element("div", { class: "value" });
  const add = button("Add an element", () => {
    append();
    items.at(-1).row.querySelector("input, select, textarea, button")?.focus();
  }, { class: "tiny" });
  function renumber() {
    items.forEach((item, at) => { item.at.textContent = at; });
    add.disabled = items.length >= most;
  }
  function append() {
    const made = editor(type.type, context);
    const at = element("span", {});
    const label = element("span", { class: "at" }, element("span", { class: "away" }, "element "), at);
    const item = { made, at };
    const remove = isFixed ? null : button("Remove", () => {
      items.splice(items.indexOf(item), 1);
      item.row.remove();
      renumber();
      add.focus();
    }, { class: "quiet tiny" });
    item.row = element("div", { class: "item" }, label, element("div", { class: "value" }, made.element), remove);
    nameControls(item.row, [label]);
    items.push(item);
    body.append(item.row);
    renumber();
  }
  // A long array is written as JSON.
  if (isFixed && type.length > 256) return raw(typeText(type));
  if (isFixed) for (let at = 0; at < type.length; at += 1) append();
  return {
    element: element("div", { class: "group" }, body, isFixed ? null : add),
    value: () => items.map((item) => item.made.value()),
  };
}

function octets(length) {
  const form = element("select", { "aria-label": "Form of the octets" }, ["hexadecimal", "text", "Base64"].map((it) => element("option", {}, it)));
  const input = element("input", { class: "wide", value: "00".repeat(length || 0) });
  const made = checked(input, (text) => {
    const bytes = octetsOf(form.value, text);
    if (length !== null && bytes.length !== length) throw new Invalid(`expected ${length} octets, not ${bytes.length}`);
    return btoa(Array.from(bytes, (octet) => String.fromCharCode(octet)).join(""));
  });
  made.element.classList.add("beside");
  made.element.prepend(form);
  return made;
}

function octetsOf(form, text) {
  if (form === "text") return new TextEncoder().encode(text);
  if (form === "hexadecimal") {
    const digits = text.replace(/[\s:]/g, "");
    if (!/^([0-9a-fA-F]{2})*$/.test(digits)) throw new Invalid("expected pairs of hexadecimal digits");
    return Uint8Array.from(digits.match(/../g) || [], (pair) => Number.parseInt(pair, 16));
  }
  try {
    return Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  } catch {
    throw new Invalid("expected Base64");
  }
}

function reference() {
  const input = element("input", { class: "wide", placeholder: "nil, or IOR:…, corbaloc:…, corbaname:…" });
  return checked(input, (text) => {
    const trimmed = text.trim();
    if (trimmed === "" || trimmed === "nil") return null;
    if (!/^(IOR|corbaloc|corbaname):/i.test(trimmed)) throw new Invalid("expected IOR:…, corbaloc:…, corbaname:… or nothing");
    return trimmed;
  });
}

/** A value that may be null. Its editor is made when it is not. */
function nullable(type, make) {
  let made = null;
  const body = element("div", { class: "value" });
  const input = element("input", { type: "checkbox" });
  input.addEventListener("change", () => {
    made = input.checked ? make() : null;
    body.replaceChildren(...(made ? [made.element] : []));
    nameControls(body, typeText(type));
  });
  return {
    element: element("div", { class: "value" }, element("label", { class: "row small" }, input, `a ${typeText(type)}, otherwise null`), body),
    value: () => (made ? made.value() : null),
  };
}

function state(type, context) {
  const members = [];
  for (let of = type; of && typeof of === "object"; of = of.base) members.unshift(...(of.members || []));
  return structure(members, type, context);
}

function boxed(type, context) {
  const made = editor(type.type, context);
  const content = originalOf(type.type);
  const isWrapped = content === "any" || content === "TypeCode" || ["union", "valuebox"].includes(content.kind);
  return { element: made.element, value: () => (isWrapped ? { _value: made.value() } : made.value()) };
}

/** A choice of a type: basic ones, those of the interface, and others in the JSON form. */
function typeChoice(context, changed) {
  const types = [...BASIC.map((name) => [name, name]), ["sequence<octet>", "sequence<octet>"], ["sequence<long>", "sequence<long>"],
    ["sequence<double>", "sequence<double>"], ["sequence<string>", "sequence<string>"],
    ...context.named.filter((it) => it.type.kind !== "exception").map((it) => [it.spec, it.type])];
  const select = element("select", { "aria-label": "Type of the any" }, types.map(([text], at) => element("option", { value: String(at) }, text)),
    element("option", { value: "other" }, "another type, as JSON"));
  select.value = String(BASIC.indexOf("string"));
  const other = element("textarea", { hidden: true, "aria-label": "Type as JSON", placeholder: '"sequence<short>" or {"kind":"struct",…}' });
  const parse = () => {
    if (select.value !== "other") return types[Number(select.value)][1];
    try {
      return JSON.parse(other.value);
    } catch {
      const error = new Invalid("expected a type as JSON");
      error.input = other;
      throw error;
    }
  };
  const update = () => {
    other.hidden = select.value !== "other";
    changed?.();
  };
  select.addEventListener("change", update);
  other.addEventListener("change", update);
  return { element: element("div", { class: "value" }, select, other), value: parse };
}

function any(context) {
  const isEmpty = element("input", { type: "checkbox" });
  const body = element("div", { class: "value" });
  let made = null;
  const choice = typeChoice(context, show);
  function show() {
    try {
      made = editor(choice.value(), new Context(context.named, context.comments));
    } catch {
      made = raw("the type");
    }
    body.replaceChildren(made.element);
    nameControls(body, "Value of the any");
  }
  isEmpty.addEventListener("change", () => { choice.element.hidden = body.hidden = isEmpty.checked; });
  show();
  return {
    element: element("div", { class: "group" }, element("label", { class: "row small" }, isEmpty, "without a value"), choice.element, body),
    value: () => (isEmpty.checked ? null : { _type: choice.value(), _value: made.value() }),
  };
}

function typeCode(context) {
  const choice = typeChoice(context);
  return { element: choice.element, value: choice.value };
}

/** A value as JSON. */
function raw(what, value = "") {
  return checked(element("textarea", { rows: 3, placeholder: `JSON of ${what}`, value }), (text) => {
    try {
      return JSON.parse(text);
    } catch {
      throw new Invalid("expected JSON");
    }
  });
}
