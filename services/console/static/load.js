// The load of this process, or of a server of the activator: rates, latencies, errors and connections as charts, and all
// numbers.

import { detailsOf, repeat, request } from "./api.js";
import { drawing, duration, element, problemNote, short } from "./dom.js";

const INTERVAL = 1_000;
const SERVERS_INTERVAL = 5_000;
/** The samples of a chart: two minutes. */
const SAMPLES = 120;
/** The samples over which a latency is measured. */
const WINDOW = 10;

/** The quantile of a histogram's increase, in seconds: the bound of its bucket. */
export function quantile(now, before, part) {
  const old = new Map((before?.bounds || []).map((bound, at) => [bound, before.counts[at]]));
  const total = now.count - (before?.count || 0);
  if (total <= 0) return NaN;
  for (const [at, bound] of now.bounds.entries()) {
    if (now.counts[at] - (old.get(bound) || 0) >= total * part) return bound;
  }
  return now.bounds.at(-1) ?? NaN;
}

class Chart {
  constructor(title, names, format) {
    this.format = format;
    this.lines = names.map(() => []);
    this.figure = element("div", { class: "figure" }, "–");
    this.most = element("span", {}, "");
    this.svg = drawing("svg", { class: "chart", viewBox: `0 0 ${SAMPLES - 1} 50`, preserveAspectRatio: "none", role: "img", "aria-label": title });
    const legend = names.length > 1 ? element("div", { class: "legend" }, names.map((name, at) => element("span", { class: at ? "two" : null }, element("i", {}), name))) : null;
    this.element = element("section", { class: "card", "data-chart": title }, element("div", { class: "row spread" }, element("h2", { class: "minor" }, title), legend),
      this.figure, this.svg, element("div", { class: "axis" }, element("span", {}, "2 minutes ago"), this.most, element("span", {}, "now")));
    this.title = title;
  }

  add(values) {
    this.lines.forEach((line, at) => {
      line.push(values[at]);
      if (line.length > SAMPLES) line.shift();
    });
    const most = Math.max(0, ...this.lines.flat().filter(Number.isFinite));
    const text = values.map((value) => this.format(value));
    this.figure.replaceChildren(text[0], ...text.slice(1).map((it) => element("small", {}, ` / ${it}`)));
    this.figure.dataset.value = String(values[0]);
    this.most.textContent = most > 0 ? `maximum ${this.format(most)}` : "";
    this.svg.setAttribute("aria-label", `${this.title}: now ${text.join(" and ")}`);
    const drawn = [drawing("line", { class: "base", x1: 0, x2: SAMPLES - 1, y1: 49.5, y2: 49.5 })];
    this.lines.forEach((line, at) => {
      const offset = SAMPLES - line.length;
      const runs = [[]];
      line.forEach((value, place) => {
        if (Number.isFinite(value)) runs.at(-1).push([place + offset, 49 - (most > 0 ? (value / most) * 46 : 0)]);
        else if (runs.at(-1).length) runs.push([]);
      });
      for (const run of runs.filter((it) => it.length)) {
        // A sample without neighbours is drawn as a short line.
        if (run.length === 1) run.unshift([Math.max(run[0][0] - 1, 0), run[0][1]]);
        const points = run.map((point) => point.map((it) => it.toFixed(1)).join(",")).join(" ");
        if (at === 0) drawn.push(drawing("polygon", { class: "area", points: `${run[0][0]},49.5 ${points} ${run.at(-1)[0]},49.5` }));
        drawn.push(drawing("polyline", { class: at === 0 ? "one" : "two", points }));
      }
    });
    this.svg.replaceChildren(...drawn);
  }
}

export function showLoad(main) {
  // The charts of another process begin anew.
  const charts = element("div", {});
  let shown = { end() {} };
  const choice = element("select", { "aria-label": "Process", onchange: () => show(choice.value) }, element("option", { value: "" }, "this process"));
  main.append(element("div", { class: "row spread" }, element("h1", {}, "Load"),
    element("label", { class: "muted small" }, "of ", choice, ", measured each second")), charts);
  const show = (server) => {
    shown.end();
    charts.replaceChildren();
    shown = showProcess(charts, server);
  };
  /** Servers come and go. Those that show metrics can be chosen. */
  async function loadServers() {
    let names;
    try {
      names = (await request("servers")).servers.filter((server) => server.metrics).map((server) => server.name);
    } catch {
      return; // the charts show that the process is out of reach, and a policy may hide the servers
    }
    if (choice.value && !names.includes(choice.value)) names.push(choice.value);
    const now = [...choice.options].slice(1).map((option) => option.value);
    if (JSON.stringify(now) === JSON.stringify(names)) return;
    const chosen = choice.value;
    choice.replaceChildren(choice.options[0], ...names.map((name) => element("option", { value: name }, name)));
    choice.value = chosen;
  }
  show("");
  const endServers = repeat(SERVERS_INTERVAL, loadServers);
  return {
    end() {
      endServers();
      shown.end();
    },
  };
}

function showProcess(main, server) {
  const rate = (value) => `${short(value)}/s`;
  const charts = {
    served: new Chart("Requests served", ["requests"], rate),
    latency: new Chart("Latency of requests", ["p50", "p99"], duration),
    errors: new Chart("Errors", ["requests", "calls"], rate),
    made: new Chart("Calls made", ["calls"], rate),
    calling: new Chart("Latency of calls", ["p50", "p99"], duration),
    connections: new Chart("Open connections", ["accepted", "opened"], short),
  };
  const note = element("div", {});
  const operations = element("tbody", {});
  const connections = element("tbody", {});
  const numbers = element("tbody", {});
  const heads = (names) => element("thead", {}, element("tr", {}, names.map((name, at) => element("th", { scope: "col", class: at ? "number" : null }, name))));
  main.append(note, element("div", { class: "charts" }, Object.values(charts).map((chart) => chart.element)),
    element("section", { class: "card" }, element("h2", {}, "Operations"), element("div", { class: "scroll", tabindex: "0" },
      element("table", {}, heads(["Operation", "Per second", "Requests", "Errors", "Mean", "p50", "p99"]), operations))),
    element("section", { class: "card" }, element("h2", {}, "Connections"), element("div", { class: "scroll", tabindex: "0" },
      element("table", {}, heads(["Peer", "Requests", "Octets"]), connections))),
    element("details", { class: "card" }, element("summary", {}, element("h2", { class: "button-like" }, "All counters")), element("div", { class: "scroll", tabindex: "0" }, element("table", {}, numbers))));

  /** The last samples with their times in seconds. */
  const samples = [];
  async function load() {
    let sample;
    try {
      sample = { time: performance.now() / 1000, ...await request("load", { query: server ? { server } : {} }) };
      note.replaceChildren();
    } catch (error) {
      note.replaceChildren(problemNote(detailsOf(error)));
      return;
    }
    const last = samples.at(-1);
    // Another process counts from zero.
    if (last && sample.sides.server.count < last.sides.server.count) samples.length = 0;
    samples.push(sample);
    if (samples.length > WINDOW) samples.shift();
    draw(sample, last && samples.length > 1 ? last : null, samples.length > 1 ? samples[0] : null);
  }

  function draw(now, last, first) {
    const per = (side, what) => (last ? (now.sides[side][what] - last.sides[side][what]) / (now.time - last.time) : NaN);
    const latency = (side) => [0.5, 0.99].map((part) => (first ? quantile(now.sides[side], first.sides[side], part) : NaN));
    charts.served.add([per("server", "count")]);
    charts.made.add([per("client", "count")]);
    charts.errors.add([per("server", "errors"), per("client", "errors")]);
    charts.latency.add(latency("server"));
    charts.calling.add(latency("client"));
    const open = (side) => now.numbers[`spandrel_connections_open{side="${side}"}`] ?? NaN;
    charts.connections.add([open("server"), open("client")]);
    const key = (it) => `${it.side} ${it.interface} ${it.operation}`;
    const before = new Map((last?.operations || []).map((it) => [key(it), it.times.count]));
    const number = (text) => element("td", { class: "number" }, text);
    operations.replaceChildren(...now.operations.map((it) => {
      const { times } = it;
      const rate = last ? (times.count - (before.get(key(it)) ?? 0)) / (now.time - last.time) : NaN;
      return element("tr", { "data-operation": it.operation },
        element("td", {}, element("strong", {}, it.operation), " ", element("span", { class: "badge" }, it.side === "server" ? "served" : "called"),
          element("div", { class: "muted small mono" }, it.interface)),
        number(`${short(rate)}/s`), number(String(times.count)), number(String(times.errors)), number(duration(times.seconds / times.count)),
        number(duration(quantile(times, null, 0.5))), number(duration(quantile(times, null, 0.99))));
    }));
    if (!now.operations.length) operations.append(element("tr", {}, element("td", { colspan: 7, class: "muted" }, "No requests yet.")));
    connections.replaceChildren(...now.connections.map((it) => element("tr", {},
      element("td", { class: "mono" }, it.peer, " ", element("span", { class: "badge" }, it.side === "server" ? "accepted" : "opened")),
      number(short(it.requests)), number(short(it.octets)))));
    if (!now.connections.length) connections.append(element("tr", {}, element("td", { colspan: 3, class: "muted" }, "No connections are open.")));
    numbers.replaceChildren(...Object.entries(now.numbers).map(([name, value]) => element("tr", {}, element("td", { class: "mono" }, name), number(String(value)))));
  }

  return { end: repeat(INTERVAL, load) };
}
