// What a page does: draws its figures, follows the colours of the system, sorts tables, saves and copies.
// It asks no network. Everything works by keys.

const content = JSON.parse(document.getElementById("page-data").textContent);
const places = [...document.querySelectorAll(".canvas[data-figure]")];
const views = new Map(); // from a place to what drew it
const hidden = new Map(); // from a column to the names in it that are not drawn
const night = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function say(text) {
  document.getElementById("said").textContent = text;
}

// ---- colours

function dark() {
  if (printing) return false;
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : night.matches;
}

function painted(value) {
  return JSON.parse(JSON.stringify(value).replace(/#[0-9a-f]{6}\b/g, (colour) => content.dark[colour] ?? colour));
}

const choice = document.getElementById("theme");
const next = { "": "light", light: "dark", dark: "" };
choice.addEventListener("click", () => {
  const theme = next[document.documentElement.dataset.theme ?? ""];
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  choice.textContent = `Colours: ${theme || "as the system"}`;
  redraw();
});
night.addEventListener("change", () => redraw());

// ---- data

// The names of the data that a specification draws.
function sources(value, found = new Set()) {
  if (Array.isArray(value)) value.forEach((item) => sources(item, found));
  else if (value && typeof value === "object") {
    if (typeof value.data?.name === "string") found.add(value.data.name);
    Object.values(value).forEach((item) => sources(item, found));
  }
  return found;
}

function rows(name, all = false) {
  const columns = content.data[name];
  const names = Object.keys(columns);
  const made = [];
  const count = names.length ? columns[names[0]].length : 0;
  for (let index = 0; index < count; index++) {
    if (!all && [...hidden].some(([column, gone]) => columns[column] && gone.has(columns[column][index]))) continue;
    made.push(Object.fromEntries(names.map((column) => [column, columns[column][index]])));
  }
  return made;
}

// ---- figures

// Entries of a legend side by side: as many as fit.
function legendColumns(spec, width) {
  let longest = 0;
  let entries = 0;
  const look = (value) => {
    if (!value || typeof value !== "object") return;
    const names = value.color?.scale?.domain;
    if (Array.isArray(names)) {
      entries = Math.max(entries, names.length);
      names.forEach((name) => (longest = Math.max(longest, String(name).length)));
    }
    Object.values(value).forEach(look);
  };
  look(spec);
  if (!entries) return 0;
  const columns = Math.max(1, Math.floor(width / (44 + 6.6 * Math.min(longest, 24))));
  return Math.min(columns, entries);
}

async function embed(place, width) {
  const figure = content.figures[place.dataset.figure];
  let spec = { ...figure.spec, autosize: { type: "fit-x", contains: "padding" } };
  let config = structuredClone(figure.config);
  config.legend = { ...config.legend, columns: legendColumns(spec, width ?? place.clientWidth) };
  if (dark() && width === undefined) {
    spec = painted(spec);
    config = painted(config);
  }
  if (width !== undefined) spec.width = width;
  spec.datasets = Object.fromEntries([...sources(spec)].map((name) => [name, rows(name)]));
  return window.vegaEmbed(width === undefined ? place : document.createElement("div"), spec, {
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    ast: true, // expressions are interpreted: the page's policy forbids to make programs of text
    config,
    tooltip: { theme: dark() ? "dark" : "light" },
  });
}

async function draw(place) {
  const turn = (place.turn ?? 0) + 1;
  place.turn = turn;
  try {
    views.get(place)?.finalize();
    views.delete(place);
    const { spec } = content.figures[place.dataset.figure];
    // Axes have no extent without rows.
    if ([...sources(spec)].every((name) => rows(name).length === 0)) {
      place.textContent = "All that this figure draws is left out above.";
      place.dataset.drawn = dark() ? "dark" : "light";
      return;
    }
    const result = await embed(place);
    if (place.turn === turn) views.set(place, result);
    else result.finalize();
    place.style.minHeight = "";
    place.dataset.drawn = dark() ? "dark" : "light";
  } catch (error) {
    console.error(error);
    place.textContent = "This figure could not be drawn; its data stand below.";
  }
}

function redraw() {
  return Promise.all(places.filter((place) => place.turn).map(draw));
}

// Near the window at once, the rest when there is nothing else to do.
const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting && !target.turn) draw(target);
  },
  { rootMargin: "500px" },
);
places.forEach((place) => near.observe(place));
const idle = window.requestIdleCallback ?? ((call) => setTimeout(call, 200));
function later() {
  const place = places.find((candidate) => !candidate.turn);
  if (place) draw(place).then(() => idle(later));
}
window.addEventListener("load", () => idle(later));

let widths = window.innerWidth;
let waiting;
window.addEventListener("resize", () => {
  if (window.innerWidth === widths || printing) return;
  widths = window.innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(redraw, 200);
});

// Printing does not wait for figures to be drawn anew, so those that are drawn change their colours in place.
const light = Object.fromEntries(Object.entries(content.dark).map(([bright, deep]) => [deep, bright]));
function recolour(colours) {
  for (const part of document.querySelectorAll(".canvas svg :is([fill], [stroke])"))
    for (const name of ["fill", "stroke"]) {
      const colour = colours[part.getAttribute(name)];
      if (colour) part.setAttribute(name, colour);
    }
}
window.addEventListener("beforeprint", () => {
  if (dark()) recolour(light);
  printing = true;
  places.filter((place) => !place.turn).forEach(draw);
});
window.addEventListener("afterprint", () => {
  printing = false;
  if (dark()) {
    recolour(content.dark);
    places.filter((place) => place.dataset.drawn === "light").forEach(draw);
  }
});

// ---- which series are drawn

for (const group of document.querySelectorAll(".filter")) {
  group.addEventListener("change", () => {
    const gone = [...group.querySelectorAll("input:not(:checked)")].map((box) => box.value);
    hidden.set(group.dataset.field, new Set(gone));
    say(gone.length ? `Not drawn: ${gone.join(", ")}` : "All are drawn");
    redraw();
  });
}

// ---- saving

function save(name, kind, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say(`Saved ${link.download}`);
}

function csv(table) {
  const names = Object.keys(table[0] ?? {});
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...table.map((row) => names.map((name) => row[name]))].map((row) => row.map(cell).join(",")).join("\n");
}

// What a figure draws, without the columns that only the drawing needs.
function tableOf(place) {
  const [name] = sources(content.figures[place.dataset.figure].spec);
  if (name === undefined) return [];
  return rows(name, true).map((row) => Object.fromEntries(Object.entries(row).filter(([key]) => !key.startsWith("_"))));
}

// Pictures are saved in light colours, as papers want them.
const saves = {
  async svg(place) {
    const { view } = await embed(place, 720);
    return new Blob([await view.background("white").toSVG()], { type: "image/svg+xml" });
  },
  async png(place) {
    const { view } = await embed(place, 720);
    const canvas = await view.background("white").toCanvas(2);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  },
  async csv(place) {
    return new Blob([csv(tableOf(place)), "\n"], { type: "text/csv" });
  },
};
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-save]");
  if (!button) return;
  const figure = button.closest("figure");
  const kind = button.dataset.save;
  save(figure.dataset.title, kind, await saves[kind](figure.querySelector(".canvas")));
});

// ---- data as tables

const MOST_ROWS = 500;
function shown(value) {
  if (value === null || value === undefined) return "-";
  return typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 6 }) : String(value);
}
for (const fold of document.querySelectorAll("details.data")) {
  fold.addEventListener("toggle", () => {
    const place = fold.querySelector(".rows");
    if (!fold.open || place.firstChild) return;
    const all = tableOf(fold.closest("figure").querySelector(".canvas"));
    const names = Object.keys(all[0] ?? {});
    const table = document.createElement("table");
    table.createCaption().textContent =
      all.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${all.length} rows; the CSV has all` : `${all.length} rows`;
    const head = table.createTHead().insertRow();
    const numbers = names.map((name) => all.some((row) => typeof row[name] === "number"));
    names.forEach((name, index) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      if (numbers[index]) cell.className = "number";
      head.append(cell);
    });
    const body = table.createTBody();
    for (const row of all.slice(0, MOST_ROWS)) {
      const line = body.insertRow();
      names.forEach((name, index) => {
        const cell = line.insertCell();
        cell.textContent = shown(row[name]);
        if (numbers[index]) cell.className = "number";
      });
    }
    place.append(table);
  });
}

// ---- tables that sort

for (const button of document.querySelectorAll("button.sort")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const table = head.closest("table");
    const body = table.tBodies[0];
    const index = head.cellIndex;
    const number = head.classList.contains("number");
    const before = head.getAttribute("aria-sort");
    const direction = before ? (before === "ascending" ? -1 : 1) : number ? -1 : 1;
    const key = (row) => row.cells[index].dataset.sort ?? (number ? undefined : row.cells[index].textContent);
    const sorted = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined); // absent ones last
      const difference = number ? x - y : x.localeCompare(y, "en", { numeric: true });
      return direction * difference;
    });
    table.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    body.append(...sorted);
    say(`Sorted by ${button.textContent}, ${direction > 0 ? "ascending" : "descending"}`);
  });
}

// ---- commands to copy

for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
      say("Copied");
    } catch {
      window.getSelection().selectAllChildren(code); // no access to the clipboard: select it instead
      button.textContent = "Selected";
      say("Selected");
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

// ---- where one is

const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
const seen = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
  },
  { rootMargin: "-20% 0px -70% 0px" },
);
for (const name of links.keys()) seen.observe(document.getElementById(name));
