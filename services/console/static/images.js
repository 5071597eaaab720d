// Images of an image store: a list, and a viewer of tiles at zoom levels.

import { detailsOf, octets, request } from "./api.js";
import { button, element, problemNote } from "./dom.js";

/** The columns and rows of a tile. */
const TILE = 256;
/** The columns and rows of the viewer. */
const WIDTH = 768;
const HEIGHT = 512;
/** The tiles that are kept. */
const MAX_TILES = 96;

export function showImages(main, query) {
  const collection = element("input", { id: "image-collection", required: true, "aria-label": "Collection", placeholder: "Collection: radiology/ct" });
  const note = element("div", {});
  const list = element("div", { id: "images" });
  const stage = element("div", { id: "image-viewer" });
  const form = element("form", {
    onsubmit: (event) => {
      event.preventDefault();
      const target = `#/images?${new URLSearchParams({ collection: collection.value.trim() })}`;
      if (location.hash === target) find();
      else location.hash = target;
    },
  }, element("div", { class: "row" }, collection, element("button", { class: "primary", type: "submit" }, "Show")));
  main.append(element("section", { class: "card" }, element("div", { class: "row spread" }, element("h1", {}, "Images"),
    element("span", { class: "muted small" }, "of the image store of this process")), form, note, list, stage));
  let asked = null;
  let viewer = null;

  async function find(after = 0) {
    const own = (asked = Symbol("query"));
    if (after === 0) list.replaceChildren();
    if (!collection.value.trim()) return;
    try {
      const answer = await request("images", { query: { collection: collection.value.trim(), after } });
      if (asked !== own) return;
      note.replaceChildren();
      list.replaceChildren(rows(answer));
    } catch (error) {
      if (asked === own) note.replaceChildren(problemNote(detailsOf(error)));
    }
  }

  function rows({ images, last, truncated }) {
    if (images.length === 0 && !truncated) return element("p", { class: "muted" }, "There are no further images.");
    const cell = (name, ...content) => element("td", { "data-label": name }, ...content);
    const body = images.map((image) => element("tr", {},
      cell("Image", button(String(image.image), () => open(image), { class: "tiny" })),
      cell("Collection", image.collection),
      cell("Size", `${image.zoom[0][0]} × ${image.zoom[0][1]}`),
      cell("About", Object.entries(image.elements).map(([keyword, value]) => `${keyword}: ${value}`).join(", "))));
    const head = element("thead", {}, element("tr", {}, ...["Image", "Collection", "Size", "About"].map((name) => element("th", { scope: "col" }, name))));
    const more = truncated ? button("Next images", () => find(last), { id: "more-images" }) : null;
    return element("div", {}, element("div", { class: "scroll" }, element("table", { class: "stack" }, head, element("tbody", {}, ...body))), more);
  }

  function open(image) {
    viewer?.end();
    viewer = new Viewer(image, note);
    stage.replaceChildren(viewer.made);
    viewer.draw();
  }

  function update(query) {
    collection.value = query.get("collection") || "";
    find();
  }

  update(query);
  return { update, end: () => { asked = null; viewer?.end(); } };
}

/** A part of an image at a zoom level. It is moved by dragging and by the arrow keys, and zoomed by buttons, + and -. */
class Viewer {
  constructor(image, note) {
    this.image = image;
    this.note = note;
    this.level = image.zoom.length - 1;
    this.left = this.top = 0;
    this.tiles = new Map();
    this.isOpen = true;
    this.canvas = element("canvas", { width: WIDTH, height: HEIGHT, tabindex: 0, role: "img", "aria-label": `Image ${image.image}` });
    this.state = element("span", { id: "image-state", class: "muted small" });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("pointerdown", (event) => this.canvas.setPointerCapture(event.pointerId));
    this.canvas.addEventListener("pointermove", (event) => { if (event.buttons & 1) this.move(-event.movementX, -event.movementY); });
    this.made = element("div", {}, element("div", { class: "row" },
      button("+", () => this.zoom(-1), { id: "zoom-in", "aria-label": "Zoom in" }),
      button("−", () => this.zoom(1), { id: "zoom-out", "aria-label": "Zoom out" }), this.state), this.canvas);
  }

  end() {
    this.isOpen = false;
    this.tiles.clear();
  }

  key(event) {
    const steps = { ArrowLeft: [-64, 0], ArrowRight: [64, 0], ArrowUp: [0, -64], ArrowDown: [0, 64] };
    if (steps[event.key]) this.move(...steps[event.key]);
    else if (event.key === "+") this.zoom(-1);
    else if (event.key === "-") this.zoom(1);
    else return;
    event.preventDefault();
  }

  /** Another level, with the same pixel in the middle. */
  zoom(step) {
    const level = Math.min(Math.max(this.level + step, 0), this.image.zoom.length - 1);
    const scale = 2 ** (this.level - level);
    this.left = (this.left + WIDTH / 2) * scale - WIDTH / 2;
    this.top = (this.top + HEIGHT / 2) * scale - HEIGHT / 2;
    this.level = level;
    this.move(0, 0);
  }

  move(right, down) {
    const [columns, rows] = this.image.zoom[this.level];
    this.left = Math.round(Math.min(Math.max(this.left + right, 0), Math.max(columns - WIDTH, 0)));
    this.top = Math.round(Math.min(Math.max(this.top + down, 0), Math.max(rows - HEIGHT, 0)));
    this.draw();
  }

  draw() {
    const [columns, rows] = this.image.zoom[this.level];
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, WIDTH, HEIGHT);
    let missing = 0;
    for (let down = Math.floor(this.top / TILE); down * TILE < Math.min(this.top + HEIGHT, rows); down += 1) {
      for (let across = Math.floor(this.left / TILE); across * TILE < Math.min(this.left + WIDTH, columns); across += 1) {
        const tile = this.tile(across, down);
        if (tile) context.putImageData(tile, across * TILE - this.left, down * TILE - this.top);
        else missing += 1;
      }
    }
    this.state.textContent = `${columns} × ${rows}, level ${this.level}${missing ? ", loading" : ""}`;
  }

  /** A tile, or null while it is loaded. */
  tile(across, down) {
    const level = this.level;
    const key = `${level}/${across}/${down}`;
    if (!this.tiles.has(key)) {
      if (this.tiles.size >= MAX_TILES) this.tiles.delete(this.tiles.keys().next().value);
      this.tiles.set(key, null);
      octets("images/tile", { query: { image: this.image.image, level, across, down } }).then((pixels) => {
        if (!this.isOpen) return;
        this.tiles.set(key, this.pixels(pixels, level, across));
        this.draw();
      }, (error) => {
        this.tiles.delete(key);
        if (this.isOpen) this.note.replaceChildren(problemNote(detailsOf(error)));
      });
    }
    return this.tiles.get(key);
  }

  /** Samples as a canvas has them: red, green, blue and opacity of 8 bits. */
  pixels(samples, level, across) {
    const { samples: count, bits, zoom } = this.image;
    const width = Math.min(TILE, zoom[level][0] - across * TILE);
    const step = bits / 8;
    const data = new Uint8ClampedArray(samples.length / step / count * 4);
    const sample = (at, nth) => samples[(at * count + nth) * step + step - 1];
    for (let at = 0; at * 4 < data.length; at += 1) {
      for (let nth = 0; nth < 3; nth += 1) data[at * 4 + nth] = sample(at, count === 1 ? 0 : nth);
      data[at * 4 + 3] = count === 4 ? sample(at, 3) : 255;
    }
    return new ImageData(data, width);
  }
}
