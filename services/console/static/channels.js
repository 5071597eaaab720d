// Channels of the event and notification services, their consumers, and live events.

import { detailsOf, repeat, request } from "./api.js";
import { button, duration, element, problemNote, short, shortened } from "./dom.js";

const INTERVAL = 1_000;
/** The most live events that are shown. */
const MAX_LINES = 500;
/** The most characters of a name in a table. */
const MAX_NAME = 60;

const TITLES = { EventService: "Event service", NotificationService: "Notification service" };

export function showChannels(main, query) {
  const note = element("div", {});
  const services = element("div", { id: "channels" });
  const detail = element("section", { class: "card", id: "channel", hidden: true });
  main.append(element("section", { class: "card" }, element("div", { class: "row spread" }, element("h1", {}, "Channels"),
    element("span", { class: "muted small" }, "of the event and notification services of this process")), note, services), detail);
  let chosen = null;
  let tail = null;
  /** The counts of the last answer by service and channel, with their time in milliseconds. */
  let before = new Map();

  async function load() {
    try {
      const answer = await request("channels");
      const now = performance.now();
      const counts = new Map();
      // New rows take over the focus of the old ones.
      const focused = document.activeElement?.closest("[data-service] [data-channel]");
      const [service, channel] = [focused?.closest("[data-service]").dataset.service, focused?.dataset.channel];
      services.replaceChildren(...answer.services.map((service) => shownService(service, (channel) => {
        const key = `${service.service}/${channel.name}`;
        counts.set(key, { at: now, received: channel.received, delivered: channel.delivered });
        return rates(before.get(key), counts.get(key));
      }, chosen)));
      before = counts;
      const row = [...services.querySelectorAll("[data-channel]")].find((it) => it.dataset.channel === channel && it.closest("[data-service]").dataset.service === service);
      row?.querySelector("button").focus();
      note.replaceChildren();
    } catch (error) {
      note.replaceChildren(problemNote(detailsOf(error)));
    }
    await loadConsumers();
  }

  async function loadConsumers() {
    const of = chosen;
    if (!of) return;
    const list = detail.querySelector(".consumers");
    try {
      const answer = await request("channels/consumers", { query: of });
      if (chosen === of) list.replaceChildren(...shownConsumers(answer));
    } catch (error) {
      if (chosen === of) list.replaceChildren(problemNote(detailsOf(error)));
    }
  }

  /** Ends the live tail of the page. */
  function endTail() {
    const ended = tail;
    tail = null;
    if (!ended) return;
    ended.stop();
    // Without an answer the server ends it after some seconds.
    if (ended.number) request(`channels/tail/${ended.number}`, { method: "DELETE" }).catch(() => {});
  }

  async function beginTail() {
    endTail();
    const own = (tail = { number: null, stop: () => {} });
    const [lines, state, toggle] = [".lines", ".tail-state", ".tail-toggle"].map((name) => detail.querySelector(name));
    const show = (...children) => state.replaceChildren(...children);
    toggle.textContent = "Stop";
    try {
      const { tail: number } = await request("channels/tail", { method: "POST", query: chosen });
      own.number = number;
    } catch (error) {
      if (tail === own) {
        tail = null;
        toggle.textContent = "Watch";
        show(problemNote(detailsOf(error)));
      }
      return;
    }
    if (tail !== own) {
      request(`channels/tail/${own.number}`, { method: "DELETE" }).catch(() => {});
      return;
    }
    show(element("p", { class: "muted small" }, "Connected: events appear as they come, the newest first."));
    own.stop = repeat(INTERVAL, async () => {
      try {
        const { events } = await request(`channels/tail/${own.number}`);
        if (tail !== own) return;
        const time = new Date().toLocaleTimeString([], { hour12: false });
        for (const event of events) lines.prepend(shownEvent(event, time));
        while (lines.childElementCount > MAX_LINES) lines.lastElementChild.remove();
      } catch (error) {
        if (tail !== own) return;
        endTail();
        toggle.textContent = "Watch";
        show(problemNote(detailsOf(error)));
      }
    });
  }

  function update(query) {
    endTail();
    const [service, channel] = [query.get("service"), query.get("channel")];
    chosen = service && channel ? { service, channel } : null;
    detail.hidden = !chosen;
    if (!chosen) return detail.replaceChildren();
    const toggle = button("Watch", () => {
      if (tail) {
        endTail();
        toggle.textContent = "Watch";
        detail.querySelector(".tail-state").replaceChildren();
      } else beginTail();
    }, { class: "tail-toggle" });
    detail.replaceChildren(element("div", { class: "row spread" }, element("h2", {}, shortened(channel, MAX_NAME)),
      element("span", { class: "muted small" }, TITLES[service] || service)),
    element("h3", {}, "Consumers"), element("div", { class: "consumers" }),
    element("div", { class: "row spread" }, element("h3", {}, "Live events"), toggle),
    element("div", { class: "tail-state" }), element("div", { class: "lines", role: "log" }));
    loadConsumers();
  }

  update(query);
  const stop = repeat(INTERVAL, load);
  return {
    update,
    end: () => {
      stop();
      chosen = null;
      endTail();
    },
  };
}

function rates(then, now) {
  const seconds = then ? (now.at - then.at) / 1_000 : 0;
  const rate = (name) => (seconds > 0 && now[name] >= then[name] ? (now[name] - then[name]) / seconds : NaN);
  return { received: rate("received"), delivered: rate("delivered") };
}

function table(heads, rows) {
  const head = element("thead", {}, element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name))));
  const cells = (row) => row.map((cell, at) => element("td", { "data-label": heads[at] }, cell));
  return element("div", { class: "scroll" }, element("table", { class: "stack" }, head,
    element("tbody", {}, ...rows.map(({ cells: row, ...attributes }) => element("tr", attributes, ...cells(row))))));
}

function shownService({ service, channels, truncated, problem }, rateOf, chosen) {
  const heads = ["Channel", "Consumers", "Suppliers", "Received/s", "Delivered/s", "Dropped", "Expired", "Queue", "Lag"];
  const row = (channel) => {
    const { received, delivered } = rateOf(channel);
    const isChosen = chosen && chosen.service === service && chosen.channel === channel.name;
    const title = channel.alias ? `${channel.name} (${channel.alias})` : channel.name;
    const open = button(shortened(title, MAX_NAME), () => {
      location.hash = `#/channels?${new URLSearchParams({ service, channel: channel.name })}`;
    }, { class: "tiny", "aria-pressed": isChosen ? "true" : "false" });
    return { "data-channel": channel.name, cells: [open, short(channel.consumers), short(channel.suppliers), short(received), short(delivered),
      short(channel.dropped), short(channel.expired), short(channel.longest_queue), lag(channel.lag_ms)] };
  };
  const parts = [element("h2", {}, TITLES[service] || service)];
  if (problem) parts.push(problemNote(problem));
  else if (channels.length === 0) parts.push(element("p", { class: "muted" }, "There are no channels."));
  else parts.push(table(heads, channels.map(row)));
  if (truncated) parts.push(element("p", { class: "muted small" }, "There are more channels than are shown."));
  return element("div", { "data-service": service }, ...parts);
}

function shownConsumers({ consumers, truncated }) {
  if (consumers.length === 0) return [element("p", { class: "muted" }, "No consumer is connected.")];
  const heads = ["Consumer", "Kind", "Queue", "Lag", "Delivered", "Dropped", "Expired", "Failures", "Object"];
  const rows = consumers.map((it) => ({ cells: [it.consumer, it.pushed ? "push" : "pull", `${short(it.queued)} (${short(it.queued_octets)} octets)`,
    lag(it.lag_ms), short(it.delivered), short(it.dropped), short(it.expired), short(it.failures),
    it.reference ? button("open", () => { location.hash = `#/names?${new URLSearchParams({ reference: it.reference })}`; }, { class: "tiny" }) : "–"] }));
  const parts = [table(heads, rows)];
  if (truncated) parts.push(element("p", { class: "muted small" }, "There are more consumers; those with the longest queues are shown."));
  return parts;
}

function lag(milliseconds) {
  return milliseconds > 0 ? duration(milliseconds / 1_000) : "0";
}

function shownEvent({ type, text }, time) {
  return element("div", { class: "line event" }, element("span", { class: "muted" }, time), element("span", { class: "type" }, type),
    element("span", { class: "text" }, text));
}
