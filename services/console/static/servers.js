// Servers of the activator.

import { detailsOf, repeat, request } from "./api.js";
import { button, element, problemNote } from "./dom.js";

const KINDS = { RUNNING: "good", STARTING: "warn", STOPPING: "warn", BACKOFF: "bad", FAILED: "bad", STOPPED: "" };
const INTERVAL = 1_000;

export function showServers(main) {
  const list = element("div", { id: "servers" });
  const note = element("div", {});
  const output = element("section", { class: "card", hidden: true });
  main.append(element("section", { class: "card" }, element("div", { class: "row spread" }, element("h1", {}, "Servers"),
    element("span", { class: "muted small" }, "of the activator of this process")), note, list), output);
  let chosen = null;
  let last = "";

  async function load() {
    try {
      const { servers } = await request("servers");
      const text = JSON.stringify(servers);
      // The rows stay as they are while nothing changes, and so does the focus.
      if (text !== last) list.replaceChildren(table(servers));
      last = text;
      note.classList.contains("listing") && note.replaceChildren();
    } catch (error) {
      note.className = "listing";
      note.replaceChildren(problemNote(detailsOf(error)));
    }
    if (chosen) await loadOutput();
  }

  async function act(server, action) {
    note.className = "";
    try {
      await request(`servers/${encodeURIComponent(server)}/${action}`, { method: "POST" });
      note.replaceChildren();
    } catch (error) {
      note.replaceChildren(problemNote(detailsOf(error)));
    }
    await load();
  }

  async function loadOutput() {
    const pre = output.querySelector("pre");
    try {
      const { text, truncated } = await request(`servers/${encodeURIComponent(chosen)}/output`);
      const box = output.querySelector(".output");
      const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
      pre.textContent = (truncated ? "…\n" : "") + (text || "The server has written nothing.");
      if (isAtEnd) box.scrollTop = box.scrollHeight;
    } catch (error) {
      const { title, detail } = detailsOf(error);
      pre.textContent = `${title}: ${detail || ""}`;
    }
  }

  function open(server) {
    chosen = server;
    output.hidden = false;
    output.replaceChildren(element("div", { class: "row spread" }, element("h2", {}, `Output of ${server}`),
      button("Close", () => {
        chosen = null;
        output.hidden = true;
      }, { class: "tiny" })), element("div", { class: "output", tabindex: "0", role: "region", "aria-label": `Output of ${server}` }, element("pre", {})));
    loadOutput();
  }

  function table(servers) {
    if (!servers.length) {
      return element("p", { class: "empty" }, "No servers are registered: ", element("code", {}, "spandrel activator add NAME --command COMMAND"), " adds one.");
    }
    const cell = (label, content, attributes = {}) => element("td", { "data-label": label, ...attributes }, element("span", {}, content));
    const rows = servers.map((server) => {
      const isUp = ["RUNNING", "STARTING"].includes(server.state);
      return element("tr", { "data-server": server.name },
        cell("Server", [element("strong", {}, server.name), server.description ? element("div", { class: "muted small" }, server.description) : null].filter(Boolean)),
        cell("State", [element("span", { class: `badge ${KINDS[server.state] || ""}`, "data-state": server.state }, server.state.toLowerCase()),
          server.enabled ? null : element("span", { class: "badge warn" }, "disabled"),
          server.last_failure ? element("div", { class: "problem" }, server.last_failure) : null].filter(Boolean)),
        cell("Process", server.pid ? String(server.pid) : "–", { class: "number" }),
        cell("Starts", String(server.starts), { class: "number" }),
        cell("Failures", String(server.failures), { class: "number" }),
        cell("Waiting", String(server.waiting), { class: "number" }),
        cell("Command", server.command ? element("code", {}, server.command) : "started elsewhere"),
        element("td", {}, element("div", { class: "row" },
          button("Start", () => act(server.name, "start"), { class: "tiny start", disabled: isUp || !server.command || !server.enabled }),
          button("Drain", () => act(server.name, "drain"), { class: "tiny drain", disabled: !isUp, title: "End it after its running requests" }),
          button("Stop", () => act(server.name, "stop"), { class: "tiny danger stop", disabled: server.state === "STOPPED", title: "End it by a signal at once" }),
          button("Output", () => open(server.name), { class: "tiny output-of" }))));
    });
    const heads = [["Server"], ["State"], ["Process", 1], ["Starts", 1], ["Failures", 1], ["Waiting", 1], ["Command"], [element("span", { class: "away" }, "Actions")]];
    return element("div", { class: "scroll" }, element("table", { class: "stack" },
      element("thead", {}, element("tr", {}, heads.map(([text, number]) => element("th", { scope: "col", class: number ? "number" : null }, text)))),
      element("tbody", {}, rows)));
  }

  return { end: repeat(INTERVAL, load) };
}
