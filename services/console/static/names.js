// The naming tree, with the chosen object beside it.

import { detailsOf, request } from "./api.js";
import { button, element } from "./dom.js";
import { showObject } from "./object.js";

export function showNames(main, query) {
  const tree = element("ul", { class: "tree", role: "tree", "aria-label": "Names" });
  const detail = element("div", { id: "object" });
  const filter = element("input", { type: "search", placeholder: "Filter", "aria-label": "Filter names", oninput: () => narrow(tree, filter.value) });
  const reference = element("input", { id: "reference", "aria-label": "Reference of an object", placeholder: "IOR:… or corbaloc:…" });
  const side = element("section", { class: "card" },
    element("div", { class: "row spread" }, element("h2", {}, "Names"), button("Refresh", load, { class: "tiny" })),
    element("p", {}, filter), tree,
    element("form", {
      onsubmit: (event) => {
        event.preventDefault();
        if (reference.value.trim()) open({ reference: reference.value.trim() });
      },
    }, element("p", { class: "small muted" }, "An object that has no name:"), element("div", { class: "row" }, reference, element("button", { class: "tiny" }, "Open"))));
  main.append(element("div", { class: "split" }, side, detail));
  let endObject = () => {};
  let chosen = null;

  function open(target) {
    location.hash = `#/names?${new URLSearchParams(target)}`;
  }

  function load() {
    fill(tree, "", open).then(mark);
  }

  function mark() {
    for (const node of tree.querySelectorAll(".node")) {
      if (chosen && node.dataset.path === chosen.path) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
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
  }

  tree.addEventListener("keydown", (event) => moveFocus(tree, event));
  load();
  update(query);
  return { update, end: () => endObject() };
}

/** Lists a context into a list. */
async function fill(list, path, open) {
  try {
    const { bindings, truncated } = await request("names", { query: { path } });
    list.replaceChildren(...bindings.map((binding) => entry(binding, open)));
    if (bindings.length === 0) list.append(element("li", { class: "muted small" }, path ? "No names" : "No names are bound yet."));
    if (truncated) list.append(element("li", { class: "muted small" }, `Only the first ${bindings.length} names are shown.`));
  } catch (error) {
    const { title, detail } = detailsOf(error);
    list.replaceChildren(element("li", { class: "problem", role: "alert" }, detail ? `${title}: ${detail}` : title,
      " ", button("Try again", () => fill(list, path, open), { class: "tiny" })));
  }
}

function entry(binding, open) {
  const isContext = binding.kind === "context";
  const mark = element("span", { class: "mark", "aria-hidden": "true" }, isContext ? "›" : "•");
  const node = button([mark, element("span", {}, binding.name)], () => {
    open({ path: binding.path });
    if (isContext) toggle();
  }, { class: "node", role: "treeitem", "data-path": binding.path, "aria-expanded": isContext ? "false" : null });
  const item = element("li", { role: "none" }, node);
  let below = null;
  function toggle() {
    if (below) {
      below.remove();
      below = null;
    } else {
      below = element("ul", { role: "group" }, element("li", { class: "muted small" }, "…"));
      item.append(below);
      fill(below, binding.path, open);
    }
    node.setAttribute("aria-expanded", String(below !== null));
  }
  return item;
}

/** Hides the names of the tree, as far as it was opened, that do not contain the text. */
function narrow(tree, text) {
  const wanted = text.toLowerCase();
  const visit = (item) => {
    const node = item.querySelector(":scope > .node");
    const below = [...item.querySelectorAll(":scope > ul > li")].map(visit).some(Boolean);
    const fits = !node || node.dataset.path.toLowerCase().includes(wanted) || below;
    item.hidden = !fits;
    return fits;
  };
  for (const item of tree.children) visit(item);
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
