// The console: login, views and their addresses.

import { detailsOf, request, token } from "./api.js";
import { showChannels } from "./channels.js";
import { button, element, problemNote } from "./dom.js";
import { showImages } from "./images.js";
import { showLoad } from "./load.js";
import { showLog } from "./log.js";
import { showNames } from "./names.js";
import { showOffers } from "./offers.js";
import { showServers } from "./servers.js";

const VIEWS = { names: showNames, offers: showOffers, channels: showChannels, images: showImages, servers: showServers, load: showLoad, log: showLog };

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const logout = document.getElementById("logout");
const session = document.getElementById("session");
const lost = document.getElementById("lost");

/** Ends the view that is shown. */
let end = () => {};
/** The view that is shown, so that a change of its arguments need not show it anew. */
let shown = null;

/** A token in the address is kept for this tab, and removed from the address and the history. */
function takeToken() {
  const given = /^#token=([\w.~+/=-]+)$/.exec(location.hash);
  if (!given) return false;
  token.set(given[1]);
  history.replaceState(null, "", "#/names");
  return true;
}

function route() {
  if (takeToken()) return start();
  if (!token.get()) return showLogin();
  const [, name, rest] = /^#\/(\w+)\??(.*)$/.exec(location.hash) || [];
  const view = VIEWS[name] ? name : "names";
  const query = new URLSearchParams(rest || "");
  for (const link of nav.querySelectorAll("a")) {
    if (link.getAttribute("href") === `#/${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view[0].toUpperCase()}${view.slice(1)} – Spandrel console`;
  if (shown && shown.view === view && shown.update) return shown.update(query);
  end();
  main.replaceChildren();
  const made = VIEWS[view](main, query) || {};
  end = made.end || (() => {});
  shown = { view, update: made.update };
}

function showLogin(note = null) {
  end();
  end = () => {};
  shown = null;
  nav.hidden = logout.hidden = true;
  session.textContent = "";
  const input = element("input", { type: "password", id: "token", autocomplete: "off", required: true, class: "wide" });
  const form = element("form", {
    onsubmit: (event) => {
      event.preventDefault();
      token.set(input.value.trim());
      start();
    },
  }, element("label", { for: "token" }, "Token"), input, element("button", { class: "primary", type: "submit" }, "Log in"));
  main.replaceChildren(element("section", { class: "card login" },
    element("h1", {}, "Log in"),
    element("p", { class: "muted" }, "The process prints an address with a token at its start: a line that begins with “ready: Console”."),
    note, form));
  input.focus();
}

/** Checks the token, and shows the view of the address. */
async function start() {
  try {
    const about = await request("session");
    session.textContent = `${about.token} · process ${about.pid} · ${about.version}`;
    nav.hidden = logout.hidden = false;
    shown = null;
    route();
  } catch (error) {
    if (token.get()) {
      main.replaceChildren(problemNote(detailsOf(error)), button("Try again", start));
    }
  }
}

document.addEventListener("unauthorized", () => {
  if (!token.get()) return;
  token.remove();
  showLogin(element("div", { class: "note bad", role: "alert" }, "The token is not accepted. A process that was started again has a new one."));
});
document.addEventListener("reached", (event) => {
  const { since } = event.detail;
  lost.hidden = since === null;
  lost.textContent = since ? `The process of the console cannot be reached since ${since.toLocaleTimeString()}. What is shown is older. The console tries again.` : "";
});
logout.addEventListener("click", () => {
  token.remove();
  showLogin();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", route);
takeToken();
if (token.get()) start();
else showLogin();
