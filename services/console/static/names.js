// The naming tree, with the chosen object beside it.

import { detailsOf, request } from "./api.js";
import { button, element, shortened } from "./dom.js";
import { showObject } from "./object.js";

/** The time without a key before a search begins, in milliseconds. */
const SEARCH_DELAY = 250;
/** The most pages that are read to show one name. */
const MAX_PAGES = 100;
/** The most characters of a name in the tree. */
const MAX_NAME = 80;

export function showNames(main, query) {
  const tree = element("ul", { class: "tree", role: "tree", "aria-label": "Names" });
  const found = element("ul", { class: "tree", role: "tree", "aria-label": "Found names", hidden: true });
  const detail = element("div", { id: "object" });
  const filter = element("input", { type: "search", placeholder: "Filter", "aria-label": "Filter names", oninput: search });
  const reference = element("input", { id: "reference", "aria-label": "Reference of an object", placeholder: "IOR:… or corbaloc:…" });
  const side = element("section", { class: "card", "aria-label": "Names" },
    element("div", { class: "row spread" }, element("h1", { class: "minor" }, "Names"), button("Refresh", load, { class: "tiny" })),
    element("p", {}, filter), tree, found,
    element("form", {
      onsubmit: (event) => {
        event.preventDefault();
        if (reference.value.trim()) open({ reference: reference.value.trim() });
      },
    }, element("p", { class: "small muted" }, "An object that has no name:"), element("div", { class: "row" }, reference, element("button", { class: "tiny" }, "Open"))));
  main.append(element("div", { class: "split" }, side, detail));
  let endObject = () => {};
  let chosen = null;
  let searching = null;

  function open(target) {
    location.hash = `#/names?${new URLSearchParams(target)}`;
  }

  /** Lists the root anew, and opens the contexts around the chosen name. */
  async function load() {
    await fill(tree, "", open);
    if (chosen?.path) await reveal(tree, chosen.path, true);
    mark();
  }

  /** Searches all contexts of the process, also those that are not opened. */
  function search() {
    clearTimeout(searching);
    const text = filter.value.trim();
    tree.hidden = text !== "";
    found.hidden = text === "";
    if (!text) return;
    searching = setTimeout(async () => {
      const answer = await list(found, () => request("search", { query: { text } }), open, "No name has this text.", search);
      if (answer && filter.value.trim() === text) mark();
    }, SEARCH_DELAY);
  }

  function mark() {
    for (const node of side.querySelectorAll(".node")) {
      const isChosen = chosen !== null && node.dataset.path !== undefined && node.dataset.path === chosen.path;
      if (!isChosen) node.removeAttribute("aria-current");
      else if (!node.hasAttribute("aria-current")) {
        node.setAttribute("aria-current", "true");
        node.scrollIntoView({ block: "nearest" });
      }
    }
  }

  function update(query) {
    endObject();
    endObject = () => {};
    const [path, ior] = [query.get("path"), query.get("reference")];
    chosen = ior ? { reference: ior } : path === null ? null : { path };
    detail.replaceChildren();
    if (chosen) endObject = showObject(detail, chosen);
    else detail.append(element("section", { class: "card empty" }, "Choose a name to see its interface and to call it."));
    mark();
    // The heading of the object is shown, also if the page was scrolled beyond it.
    if (chosen && detail.getBoundingClientRect().top < document.querySelector("header").offsetHeight) detail.scrollIntoView({ block: "start" });
  }

  for (const list of [tree, found]) {
    list.addEventListener("keydown", (event) => moveFocus(list, event));
    list.addEventListener("focusin", (event) => event.target.matches(".node") && makeTabStop(list, event.target));
  }
  update(query);
  load();
  return {
    update,
    end: () => {
      clearTimeout(searching);
      endObject();
    },
  };
}

/** Lists the first page of a context. */
function fill(into, path, open) {
  return list(into, (from) => request("names", { query: { path, from } }), open, path ? "No names" : "No names are bound yet.", () => fill(into, path, open));
}

/** Lists names into an element; each further page takes the place of the line that asks for it. */
async function list(into, page, open, none, again) {
  let answer;
  const asked = Symbol("request");
  into.asked = asked;
  try {
    answer = await page(0);
    // A later request has another answer.
    if (into.asked !== asked) return null;
  } catch (error) {
    if (into.asked !== asked) return null;
    const { title, detail } = detailsOf(error);
    into.replaceChildren(line(`${detail ? `${title}: ${detail}` : title} – try again`, again, "problem"));
    makeTabStop(into);
    return null;
  }
  into.replaceChildren(...answer.bindings.map((binding) => entry(binding, open)));
  if (answer.bindings.length === 0) into.append(remark(none));
  const goOn = ({ next, truncated }) => {
    into.more = null;
    if (next !== null) {
      const last = line("More names", async () => into.more(true), "more");
      into.more = async (takesFocus) => {
        const answer = await page(next);
        const items = answer.bindings.map((binding) => entry(binding, open));
        last.replaceWith(...items);
        goOn(answer);
        makeTabStop(into);
        if (takesFocus) items[0]?.querySelector(".node").focus();
      };
      into.append(last);
    } else if (truncated) into.append(remark("There are more names than the console reads."));
  };
  goOn(answer);
  makeTabStop(into);
  return answer;
}

function remark(text) {
  return element("li", { class: "muted small", role: "none" }, text);
}

/** A line of the tree that is no name. */
function line(text, onclick, kind) {
  return element("li", { role: "none" }, button(text, onclick, { class: `node ${kind}`, role: "treeitem", tabindex: "-1" }));
}

function entry(binding, open) {
  const isContext = binding.kind === "context";
  const mark = element("span", { class: "mark", "aria-hidden": "true" }, isContext ? "›" : "•");
  const name = shortened(binding.name, MAX_NAME);
  const node = button([mark, element("span", {}, name)], () => {
    open({ path: binding.path });
    if (isContext) toggle();
  }, {
    class: "node", role: "treeitem", tabindex: "-1", "data-path": binding.path, "aria-expanded": isContext ? "false" : null,
    title: name === binding.name ? null : binding.name,
  });
  const item = element("li", { role: "none" }, node);
  let below = null;
  /** Opens a context, and returns the list of its names once it is read. */
  async function expand() {
    below = element("ul", { role: "group" }, remark("…"));
    item.append(below);
    node.setAttribute("aria-expanded", "true");
    await fill(below, binding.path, open);
    return below;
  }
  function toggle() {
    if (!below) return expand();
    below.remove();
    below = null;
    node.setAttribute("aria-expanded", "false");
    return null;
  }
  if (isContext) item.expand = () => below || expand();
  return item;
}

/** The beginnings of a path, each with one component more. */
function beginnings(path) {
  return [...path.matchAll(/\\.|[^\\/]|\/|$/gs)].filter(([part]) => part === "/" || part === "").map(({ index }) => path.slice(0, index));
}

/** Opens the contexts around a name, and a context itself. Pages are read until the name is on one of them. */
async function reveal(tree, path, opens) {
  let within = tree;
  for (const beginning of beginnings(path)) {
    const find = () => [...within.children].find((item) => item.querySelector(":scope > .node")?.dataset.path === beginning);
    for (let pages = 0; !find() && within.more && pages < MAX_PAGES; pages += 1) {
      try {
        await within.more(false);
      } catch {
        return; // the line for more names is still there
      }
    }
    const item = find();
    if (!item?.expand || (beginning === path && !opens)) return;
    within = await item.expand();
  }
}

/** Makes one node of a tree the one that the tab key reaches: this one, or the first if there is none. */
function makeTabStop(list, node = null) {
  const tree = list.closest("[role=tree]");
  const stop = tree?.querySelector(".node[tabindex='0']");
  const chosen = node || stop || tree?.querySelector(".node");
  if (!chosen || chosen === stop) return;
  stop?.setAttribute("tabindex", "-1");
  chosen.setAttribute("tabindex", "0");
}

/** The arrow keys of a tree. */
function moveFocus(tree, event) {
  const nodes = [...tree.querySelectorAll(".node")].filter((node) => node.offsetParent);
  const at = nodes.indexOf(document.activeElement);
  const node = nodes[at];
  if (!node) return;
  const isOpen = node.getAttribute("aria-expanded") === "true";
  const moves = {
    ArrowDown: () => nodes[at + 1]?.focus(),
    ArrowUp: () => nodes[at - 1]?.focus(),
    ArrowRight: () => (node.getAttribute("aria-expanded") === "false" ? node.click() : nodes[at + 1]?.focus()),
    ArrowLeft: () => (isOpen ? node.click() : node.closest("ul").closest("li")?.querySelector(".node")?.focus()),
    Home: () => nodes[0].focus(),
    End: () => nodes[nodes.length - 1].focus(),
  };
  if (moves[event.key]) {
    event.preventDefault();
    moves[event.key]();
  }
}
