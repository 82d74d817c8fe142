// When the server is asked, and what is said if it does not answer.
//
// Invariants: at most one question is on its way; a tab that nobody sees asks nothing; an answer that took long is
// followed by a pause as long as nine of it, so that a page takes at most a tenth of what a large volume can do.

// Milliseconds between two questions.
const PACE = 2000;
const PAUSES_AN_ANSWER = 9;
// Milliseconds that a point of a chart looks back where a single pause says too little.
const RECENT = 10_000;
// Seconds until the next attempt, attempt by attempt; the last one stays.
const WAITS = [1, 2, 4, 8, 15];
// Milliseconds in which an answer must have come.
const PATIENCE = 30_000;

const place = (id) => document.getElementById(id);
const page = {
  past: new Past(LONGEST_SPAN),
  /** The sections that are shown, and what they are shown for. */
  shown: undefined,
  paused: false,
  asking: false,
  failures: 0,
  timer: 0,
  /** Why the volume cannot be written to, as /health said last. */
  why: undefined,
};

/** Says something to those who do not see the page. */
function announce(text) {
  say(place("said"), text);
}

/** Shows a state: `good`, `fair` or `bad`, with a word or two. */
function state(kind, text, more = "") {
  const badge = place("state");
  badge.className = `badge ${kind}`;
  if (badge.textContent !== text) announce(`${text}. ${more}`);
  say(badge, text);
  say(place("more"), more);
}

async function answered(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  return { ok: answer.ok, status: answer.status, text: await answer.text() };
}

/** Asks once, shows what comes, and says when to ask again. */
async function ask() {
  clearTimeout(page.timer);
  if (page.asking || page.paused || document.hidden) return;
  page.asking = true;
  const began = performance.now();
  try {
    const { ok, status, text } = await answered("metrics");
    if (!ok) throw new Error(`it answered with status ${status}`);
    const reading = new Reading(text, performance.now(), new Date());
    if (reading.get("writable") === undefined) throw new Error("what answers is no volume");
    if (!page.paused) await take(reading);
    page.failures = 0;
    const took = performance.now() - began;
    next(Math.max(PACE - took, took * PAUSES_AN_ANSWER));
  } catch (error) {
    lost(error);
  } finally {
    page.asking = false;
  }
}

function next(milliseconds) {
  clearTimeout(page.timer);
  page.timer = setTimeout(ask, milliseconds);
}

async function take(reading) {
  const before = page.past.last;
  if (page.shown?.signature !== signature(reading)) {
    page.past = new Past(LONGEST_SPAN);
    page.shown = build(reading);
  }
  const restarted = page.past.push(reading);
  await health(reading);
  place("volume").removeAttribute("data-lost");
  say(place("when"), `Last answer ${clock(reading.date)}`);
  if (restarted) {
    say(place("note"), `The server was started anew before ${clock(reading.date)}: its counters began again.`);
  } else if (before && page.failures) {
    say(place("note"), `There was no answer from ${clock(before.date)} to ${clock(reading.date)}.`);
  }
  const recent = page.past.since(RECENT);
  const earlier = reading.begins ? undefined : page.past.readings[page.past.readings.length - 2];
  for (const { charts } of page.shown.sections) for (const chart of charts) chart.push(reading, earlier, recent);
  refresh(reading);
}

/** Shows the numbers of a reading. */
function refresh(reading) {
  page.shown.tiles.show(reading, page.past);
  for (const { show } of page.shown.sections) show(reading, page.past);
  page.shown.everything.show(reading);
}

/** Whether the volume can be written to, and otherwise why not: that is asked for only then. */
async function health(reading) {
  if (reading.get("writable") === 1) {
    page.why = undefined;
    state("good", "Serving", "It can be written to.");
    return;
  }
  page.why ??= (await answered("health")).text.trim();
  state(reading.get("failed") ? "bad" : "fair", "Read-only", page.why);
}

/** No answer came: says so, and tries again after a while. */
function lost(error) {
  const wait = WAITS[Math.min(page.failures, WAITS.length - 1)];
  page.failures += 1;
  page.why = undefined;
  place("volume").setAttribute("data-lost", "");
  const reason = error instanceof TypeError ? "it may have been stopped" : error.message;
  const since = page.past.last ? ` What is shown is from ${clock(page.past.last.date)}.` : "";
  const again = `It is asked again in ${wait} ${wait === 1 ? "second" : "seconds"}.`;
  state("bad", "No answer", `The server does not answer: ${reason}.${since} ${again}`);
  next(wait * 1000);
}

/** What decides which sections there are. */
function signature(reading) {
  const { labels } = reading.samples("info")[0] ?? { labels: {} };
  const ids = SECTIONS.filter((section) => section.applies(reading)).map((section) => section.id);
  return JSON.stringify([labels.name, labels.kind, labels.system, ids]);
}

/** Makes what a volume, or an array, is shown by. */
function build(reading) {
  const { labels } = reading.samples("info")[0] ?? { labels: {} };
  const name = labels.name ?? "A volume that does not answer";
  say(place("name"), name);
  const what = labels.kind === "array" ? "Array" : "Volume";
  say(place("system"), labels.system ? `${what} of ${bytes(reading.get("size_bytes"))}: ${labels.system}` : "");
  document.title = `${name} – Flashlore`;
  const top = tilesFor(reading);
  place("tiles").replaceChildren(top.list);
  const definitions = SECTIONS.filter((section) => section.applies(reading));
  const sections = definitions.map(({ build: make }) => make());
  const parts = definitions.map(({ id, title }, number) => {
    const heading = element("h2", { id: `${id}-title` }, title);
    const attributes = { id, class: "part", "aria-labelledby": `${id}-title` };
    return element("section", attributes, heading, ...sections[number].parts);
  });
  const all = everything();
  all.box.addEventListener("toggle", () => all.show(page.past.last));
  const last = element("section", { class: "part", "aria-label": "Every metric" }, all.box);
  place("sections").replaceChildren(...parts, last);
  const links = definitions.map(({ id, title }) => element("li", {}, element("a", { href: `#${id}` }, title)));
  place("contents").replaceChildren(...links);
  return { signature: signature(reading), tiles: top, sections, everything: all };
}

place("pause").addEventListener("click", () => {
  page.paused = !page.paused;
  const button = place("pause");
  button.setAttribute("aria-pressed", String(page.paused));
  if (page.paused) {
    state("neutral", "Paused", "Nothing is asked until this is resumed.");
  } else {
    ask();
  }
});
document.addEventListener("visibilitychange", () => {
  // A hidden page has no timer that does more than look at this.
  ask();
});
ask();
