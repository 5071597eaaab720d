
"use strict";
(() => {
  const STATES = { "runs": "runs here", "needs-peer": "needs a peer", "not-built": "not built yet", "no-counterpart": "no counterpart" };
  const COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"];
  const report = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const make = (parent, name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    parent.append(element);
    return element;
  };

  // A table whose columns are sorted by a click on their headings.
  const table = (parent, columns, rows, mark) => {
    const whole = make(parent, "table");
    const head = make(make(whole, "thead"), "tr");
    const body = make(whole, "tbody");
    let sorted = -1;
    columns.forEach(([title, , isNumber], index) => {
      const heading = make(head, "th", title, isNumber ? "number" : "");
      heading.addEventListener("click", () => {
        const direction = sorted === index ? -1 : 1;
        sorted = direction === 1 ? index : -1;
        const value = (row) => row.children[index].textContent;
        const order = (a, b) => isNumber ? parseFloat(value(a)) - parseFloat(value(b)) : value(a).localeCompare(value(b));
        body.append(...[...body.children].sort((a, b) => direction * order(a, b)));
      });
    });
    for (const row of rows) {
      const line = make(body, "tr");
      if (mark) mark(line, row);
      for (const [, value, isNumber, kind] of columns) make(line, "td", value(row), [isNumber ? "number" : "", kind || ""].join(" ").trim());
    }
  };

  // A chart of the medians of each series over the points that have more than one value.
  const chart = (parent, figures) => {
    const units = new Set(figures.map((figure) => figure.unit));
    const points = [...new Set(figures.map((figure) => figure.point))];
    if (units.size !== 1 || points.length < 2 || points.length > 200) return;
    const parts = points.map((point) => point.split("/"));
    const varies = parts[0].map((part, index) => parts.some((other) => other[index] !== part));
    const labels = parts.map((all) => all.filter((_, index) => varies[index]).join(" "));
    const series = [...new Set(figures.map((figure) => figure.series))];
    const values = figures.map((figure) => figure.median).filter((value) => value > 0);
    if (!values.length) return;
    const [width, height, left, bottom] = [760, 300, 70, 60];
    const low = Math.log10(Math.min(...values)) - 0.05, high = Math.log10(Math.max(...values)) + 0.05;
    const x = (index) => left + (width - left - 20) * index / (points.length - 1);
    const y = (value) => (height - bottom) - (height - bottom - 15) * (Math.log10(value) - low) / (high - low);
    const space = "http://www.w3.org/2000/svg";
    const draw = (owner, name, attributes, text) => {
      const element = document.createElementNS(space, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (text !== undefined) element.textContent = text;
      owner.append(element);
      return element;
    };
    const svg = draw(parent, "svg", { viewBox: `0 0 ${width} ${height + 16 * series.length}`, width, role: "img" });
    for (let step = 0; step <= 4; step++) {
      const value = 10 ** (low + (high - low) * step / 4);
      draw(svg, "line", { x1: left, x2: width - 20, y1: y(value), y2: y(value), stroke: "#8884" });
      draw(svg, "text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, Number(value.toPrecision(3)));
    }
    const every = Math.ceil(points.length / 16);
    labels.forEach((label, index) => {
      if (index % every) return;
      draw(svg, "text", { transform: `translate(${x(index)} ${height - bottom + 12}) rotate(35)` }, label);
    });
    series.forEach((name, number) => {
      const colour = COLOURS[number % COLOURS.length];
      const own = figures.filter((figure) => figure.series === name && figure.median > 0);
      const places = own.map((figure) => [x(points.indexOf(figure.point)), y(figure.median), figure]);
      draw(svg, "polyline", { points: places.map(([a, b]) => `${a},${b}`).join(" "), fill: "none", stroke: colour, "stroke-width": 1.5 });
      for (const [a, b, figure] of places) {
        const dot = draw(svg, "circle", { cx: a, cy: b, r: 3, fill: colour });
        draw(dot, "title", {}, `${name} ${figure.point}: ${figure.median} ${figure.unit}`);
      }
      draw(svg, "text", { x: left, y: height + 12 + 16 * number, style: `fill: ${colour}` }, `${name} (${[...units][0]}, logarithmic)`);
    });
  };

  const show = (entry) => {
    const whole = make(by("entries"), "details");
    const line = make(whole, "summary");
    make(line, "span", entry.name, "name");
    make(line, "span", entry.title);
    make(line, "span", STATES[entry.state], "state");
    make(whole, "p", `Section ${entry.section}.` + (entry.command ? ` ${entry.command}` : ""), "note");
    if (entry.reason) make(whole, "p", entry.reason, "note");
    if (entry.note) make(whole, "p", `Note: ${entry.note}.`, "note");
    const notRun = entry.missing.filter((missing) => !missing.failure).length;
    if (notRun) make(whole, "p", `${notRun} of its points are not run.`, "note");
    for (const missing of entry.missing) {
      if (missing.failure) make(whole, "p", `${missing.point}: failed: ${missing.failure}`, "note");
    }
    for (const absent of entry.absent) make(whole, "p", `Absent: ${absent}.`, "note");
    if (entry.ratios.length && entry.figures.length) {
      table(whole, [
        ["Ratio of", (row) => row.title],
        ["in the paper", (row) => String(row.paper), true],
        ["here", (row) => row.here === null ? "-" : String(row.here), true],
      ], entry.ratios);
    }
    if (entry.figures.length) {
      const place = make(whole, "div");
      whole.addEventListener("toggle", () => { if (whole.open && !place.children.length) chart(place, entry.figures); });
      table(whole, [
        ["point", (row) => row.point],
        ["series", (row) => row.series],
        ["median", (row) => String(row.median), true],
        ["unit", (row) => row.unit],
        ["lowest", (row) => String(row.low), true],
        ["highest", (row) => String(row.high), true],
        ["rounds", (row) => String(row.rounds), true],
        ["counted", (row) => row.counted],
        ["cut", (row) => row.cut || "", false, "cut"],
      ], entry.figures, (element) => { element.dataset.row = entry.name; });
    }
    const text = [entry.name, entry.title, entry.reason, entry.note].join(" ").toLowerCase();
    return { entry, whole, text };
  };

  for (const machine of report.machines) make(by("machines"), "li", machine);
  const count = (state) => report.entries.filter((entry) => entry.state === state).length;
  by("summary").textContent = (report.form === "short" ? "A short run: its figures show that everything runs, and nothing else. " : "")
    + `${report.entries.length} figures and tables: `
    + Object.entries(STATES).map(([state, name]) => `${count(state)} ${name}`).join(", ") + ".";
  for (const [state, name] of Object.entries(STATES)) make(by("state"), "option", name).value = state;
  const shown = report.entries.map(show);
  const filter = () => {
    const words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { entry, whole, text } of shown) {
      whole.hidden = !words.every((word) => text.includes(word))
        || (by("state").value !== "" && entry.state !== by("state").value)
        || (by("measured").checked && !entry.figures.length);
    }
  };
  for (const id of ["search", "state", "measured"]) by(id).addEventListener("input", filter);
  by("open").addEventListener("click", () => { for (const { whole } of shown) if (!whole.hidden) whole.open = true; });
})();
