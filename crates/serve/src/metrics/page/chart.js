// Charts that move on: lines or stacked areas over the last minutes, drawn as SVG, and bars that divide a whole.
//
// Colours are classes, so that light and dark need no drawing. What a chart shows stands beside it as text: the legend
// has the last values, or those of the instant that is pointed at, by mouse, by touch or with the arrow keys.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 172;
const EDGE = { left: 64, right: 10, top: 10, bottom: 24 };
// Milliseconds that a chart may reach back: the shortest that shows all there is.
const SPANS = [60_000, 120_000, 300_000, 600_000];
const LONGEST_SPAN = SPANS[SPANS.length - 1];

/** An element with attributes and children; texts become text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The same of SVG. */
function drawn(name, attributes = {}, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Sets a text, if it is another one: what is selected stays selected. */
function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** Multiples of a step from 0 to at least `most`, at least two. */
function multiples(step, most) {
  const count = Math.max(1, Math.ceil(most / step - 1e-6));
  return Array.from({ length: count + 1 }, (_, place) => place * step);
}

/** Round numbers from 0 to at least `most`, at most five. */
function tensTo(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  const step = [1, 2, 2.5, 5, 10].map((part) => part * power).find((size) => size >= (most / 4) * 0.999999);
  return multiples(step, most);
}

/** Round bytes from 0 to at least `most`, at most five. */
function powersTo(most) {
  return multiples(2 ** Math.ceil(Math.log2(most / 4)), most);
}

/** Round long times from 0 to at least `most` seconds. */
function timesTo(most) {
  const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const step = steps.find((size) => size >= most / 4) ?? 86400 * Math.ceil(most / 4 / 86400);
  return multiples(step, most);
}

/** Powers of ten around some values, at least one decade. */
function decades(least, most) {
  const first = Math.floor(Math.log10(least) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(most) - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, place) => 10 ** (first + place));
}

/** A chart of values over time. */
class Chart {
  /**
   * `series` are `{ name, look, value(reading, before, recent), always }`; without `always` one that was nothing but
   * zero is not shown. `options`: `title`, `note`, `format` of a value, `stacked`, `logarithmic`, `ticks` (a function
   * of the most; decimal ones without), `tick` (how these are said), `least` (what the scale reaches at least).
   */
  constructor(series, options) {
    this.options = options;
    this.series = series.map((one) => ({ ...one, points: [] }));
    this.times = [];
    this.dates = [];
    this.pointed = undefined;
    this.build();
  }

  build() {
    const { title, note } = this.options;
    this.legend = element("ul", { class: "legend" });
    for (const one of this.series) {
      const swatch = drawn("svg", { class: `swatch ${one.look}`, viewBox: "0 0 22 10", "aria-hidden": "true" });
      const mark = this.options.stacked
        ? drawn("rect", { class: "area", x: 4, width: 14, height: 10, rx: 2 })
        : drawn("path", { class: "line", d: "M1 5H21" });
      swatch.append(mark);
      one.shown = element("b", {}, UNKNOWN);
      one.entry = element("li", {}, swatch, `${one.name} `, one.shown);
      this.legend.append(one.entry);
    }
    this.when = element("span", { class: "when" });
    this.canvas = element("div", { class: "canvas", tabindex: "0", role: "img", "aria-label": title });
    const head = element("div", { class: "head" }, element("h3", {}, title), this.when);
    this.figure = element("figure", {}, head, this.canvas, this.legend);
    if (note) this.figure.append(element("figcaption", {}, note));
    this.canvas.addEventListener("pointermove", (event) => this.pointAt(event.offsetX));
    this.canvas.addEventListener("pointerdown", (event) => this.pointAt(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.point(undefined));
    this.canvas.addEventListener("blur", () => this.point(undefined));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** Takes the next reading; `before` is the last of the same run, `recent` one of about ten seconds ago, if any. */
  push(reading, before, recent) {
    // Where nothing is known lines are broken.
    if (reading.breaks && this.times.length) this.add(reading, () => undefined);
    this.add(reading, (one) => one.value(reading, before, recent));
    while (this.times.length && this.times[0] < reading.at - LONGEST_SPAN) this.drop();
    this.draw();
  }

  add(reading, value) {
    this.times.push(reading.at);
    this.dates.push(reading.date);
    for (const one of this.series) one.points.push(value(one));
  }

  drop() {
    this.times.shift();
    this.dates.shift();
    for (const one of this.series) one.points.shift();
    if (this.pointed !== undefined) this.pointed = Math.max(0, this.pointed - 1);
  }

  key(event) {
    const last = this.times.length - 1;
    const place = this.pointed ?? last;
    const places = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last, Escape: undefined };
    if (!(event.key in places) || last < 0) return;
    event.preventDefault();
    const next = places[event.key];
    this.point(next === undefined ? next : Math.min(last, Math.max(0, next)));
    const said = this.visible().map((one) => `${one.name} ${one.shown.textContent}`);
    announce(next === undefined ? "" : `${this.when.textContent}: ${said.join(", ")}`);
  }

  pointAt(x) {
    if (!this.times.length || !this.across) return;
    const at = this.across.timeOf(x);
    let nearest = 0;
    this.times.forEach((time, place) => {
      if (Math.abs(time - at) < Math.abs(this.times[nearest] - at)) nearest = place;
    });
    this.point(nearest);
  }

  point(place) {
    this.pointed = place;
    this.draw();
  }

  /** The series that are shown. */
  visible() {
    return this.series.filter((one) => one.always || one.points.some((value) => value > 0));
  }

  /** The values that are drawn, series by series: stacked ones as their upper ends. */
  heights(visible) {
    const sums = this.times.map(() => 0);
    return visible.map((one) =>
      one.points.map((value, place) => {
        if (!this.options.stacked || !known(value)) return known(value) ? value : undefined;
        sums[place] += value;
        return sums[place];
      }),
    );
  }

  draw() {
    const width = this.canvas.clientWidth;
    if (!width || !this.times.length) return;
    const visible = this.visible();
    const heights = this.heights(visible);
    this.measure(width, heights);
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" });
    svg.append(this.grid(width));
    const lower = visible.map((_, place) => (place ? heights[place - 1] : this.times.map(() => 0)));
    const marks = visible.map((one, place) => this.marks(one, heights[place], lower[place]));
    // The first series lies on top of the others.
    svg.append(...marks.reverse());
    if (this.pointed !== undefined) {
      const x = this.across.of(this.times[this.pointed]);
      svg.append(drawn("path", { class: "pointer", d: `M${x} ${EDGE.top}V${HEIGHT - EDGE.bottom}` }));
    }
    this.canvas.replaceChildren(svg);
    this.tell(visible);
  }

  /** Sets the scales. */
  measure(width, heights) {
    const now = this.times[this.times.length - 1];
    const age = now - this.times[0];
    const span = SPANS.find((one) => one >= age) ?? LONGEST_SPAN;
    const inner = width - EDGE.left - EDGE.right;
    this.across = {
      span,
      of: (time) => EDGE.left + inner * (1 - (now - time) / span),
      timeOf: (x) => now - span * (1 - (x - EDGE.left) / inner),
    };
    const values = heights.flat().filter((value) => known(value) && (value > 0 || !this.options.logarithmic));
    const deep = HEIGHT - EDGE.top - EDGE.bottom;
    if (this.options.logarithmic) {
      const ticks = values.length ? decades(Math.min(...values), Math.max(...values)) : [1e-5, 1e-4, 1e-3];
      const [low, high] = [Math.log10(ticks[0]), Math.log10(ticks[ticks.length - 1])];
      const of = (value) => EDGE.top + deep * (1 - (Math.log10(value) - low) / (high - low));
      this.up = { ticks, of };
    } else {
      const most = Math.max(...values, this.options.least ?? 1);
      const ticks = (this.options.ticks ?? tensTo)(most);
      const of = (value) => EDGE.top + deep * (1 - value / ticks[ticks.length - 1]);
      this.up = { ticks, of };
    }
  }

  grid(width) {
    const group = drawn("g", { class: "grid" });
    // Of many decades every second one is named.
    const every = Math.ceil((this.up.ticks.length - 1) / 5);
    this.up.ticks.forEach((tick, place) => {
      const y = this.up.of(tick);
      group.append(drawn("path", { d: `M${EDGE.left} ${y}H${width - EDGE.right}` }));
      if (place % every === 0) {
        const text = (this.options.tick ?? this.options.format)(tick);
        group.append(drawn("text", { x: EDGE.left - 8, y: y + 4, "text-anchor": "end" }, text));
      }
    });
    const now = this.times[this.times.length - 1];
    const minutes = this.across.span / 60_000;
    for (const part of [1, 0.5, 0]) {
      const back = part * minutes;
      const word = back === 0 ? "now" : back < 1 ? `−${back * 60} s` : `−${back} min`;
      const x = this.across.of(now - back * 60_000);
      const anchor = part === 1 ? "start" : part === 0 ? "end" : "middle";
      group.append(drawn("text", { x, y: HEIGHT - 6, "text-anchor": anchor }, word));
    }
    return group;
  }

  /** The line or area of a series, in pieces without gaps. */
  marks(one, upper, lower) {
    const group = drawn("g", { class: one.look });
    for (const piece of this.pieces(upper)) {
      const at = (heights) => (place) => {
        const [x, y] = [this.across.of(this.times[place]), this.up.of(heights[place] ?? 0)];
        return `${x.toFixed(1)} ${y.toFixed(1)}`;
      };
      const top = piece.map(at(upper));
      if (this.options.stacked) {
        const bottom = [...piece].reverse().map(at(lower));
        group.append(drawn("path", { class: "area", d: `M${[...top, ...bottom].join("L")}Z` }));
      } else if (piece.length > 1) {
        group.append(drawn("path", { class: "line", d: `M${top.join("L")}` }));
      } else {
        const [cx, cy] = top[0].split(" ");
        group.append(drawn("circle", { class: "dot", cx, cy, r: 2 }));
      }
    }
    const place = this.pointed;
    if (place !== undefined && known(upper[place]) && !(this.options.logarithmic && upper[place] <= 0)) {
      const [cx, cy] = [this.across.of(this.times[place]), this.up.of(upper[place])];
      group.append(drawn("circle", { class: "dot", cx, cy, r: 3.5 }));
    }
    return group;
  }

  /** Places of values that can be drawn, in runs. */
  pieces(heights) {
    const pieces = [];
    let open = false;
    heights.forEach((value, place) => {
      const draws = known(value) && (value > 0 || !this.options.logarithmic);
      if (draws && !open) pieces.push([]);
      if (draws) pieces[pieces.length - 1].push(place);
      open = draws;
    });
    return pieces;
  }

  /** Says the values that are shown. */
  tell(visible) {
    const last = this.times.length - 1;
    const place = this.pointed ?? last;
    for (const one of this.series) {
      one.entry.hidden = !visible.includes(one);
      say(one.shown, this.options.format(one.points[place]));
    }
    say(this.when, this.pointed === undefined ? "" : `at ${clock(this.dates[place])}`);
    const said = visible.map((one) => `${one.name} ${this.options.format(one.points[last])}`);
    this.canvas.setAttribute("aria-label", `${this.options.title}, now: ${said.join(", ") || "nothing"}`);
  }
}

/** A bar that divides a whole into parts `{ name, look }`, with a legend of their sizes. */
class Bar {
  constructor(title, parts, format) {
    this.format = format;
    this.total = element("b", {});
    this.track = element("div", { class: "track", "aria-hidden": "true" });
    this.legend = element("ul", { class: "legend" });
    this.parts = parts.map((part) => {
      const piece = element("div", { class: `piece ${part.look}` });
      const shown = element("b", {}, UNKNOWN);
      const swatch = element("span", { class: `swatch block ${part.look}`, "aria-hidden": "true" });
      const entry = element("li", {}, swatch, `${part.name} `, shown);
      this.track.append(piece);
      this.legend.append(entry);
      return { ...part, piece, shown, entry };
    });
    this.figure = element("div", { class: "bar" }, element("p", {}, `${title} `, this.total), this.track, this.legend);
  }

  /** Shows parts of a whole; what they leave stays empty. A part that is undefined is left out. */
  show(values, all) {
    say(this.total, this.format(all));
    this.parts.forEach((part, place) => {
      part.entry.hidden = !known(values[place]);
      part.piece.style.flexBasis = `${100 * share(values[place] ?? 0, all)}%`;
      say(part.shown, this.format(values[place]));
    });
  }
}

/** What is used of what there is: a bar with a sentence. */
class Gauge {
  constructor(title, format) {
    this.format = format;
    this.piece = element("div", { class: "piece accent" });
    this.text = element("b", {});
    const track = element("div", { class: "track thin", "aria-hidden": "true" }, this.piece);
    this.figure = element("div", { class: "bar" }, element("p", {}, `${title} `, this.text), track);
  }

  show(used, most) {
    const part = share(used, most);
    this.piece.style.flexBasis = `${100 * Math.min(1, part)}%`;
    say(this.text, `${this.format(used)} of ${this.format(most)}, ${percent(part)}`);
  }
}
