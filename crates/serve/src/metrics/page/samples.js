// Readings of /metrics and what follows from two of them: rates and percentiles.
//
// A reading is what one answer said: `values` by name and labels as they stand in a line, `families` in their order.
// Counters begin again when the server does, so that nothing is ever subtracted across a restart.

// Milliseconds between two readings after which nothing is known of the time between them.
const LONG = 30_000;

/** Reads the text format of Prometheus. Lines that are none of it are left out. */
function parseMetrics(text) {
  const values = new Map();
  const families = [];
  const named = new Map();
  for (const line of text.split("\n")) {
    const head = /^# (HELP|TYPE) (\S+) (.*)$/s.exec(line);
    if (head) {
      const [, what, name, rest] = head;
      let family = named.get(name);
      if (!family) {
        family = { name, help: "", type: "untyped", samples: [] };
        named.set(name, family);
        families.push(family);
      }
      family[what === "HELP" ? "help" : "type"] = rest;
      continue;
    }
    const sample = /^([A-Za-z_:][\w:]*)(\{.*\})? (\S+)$/s.exec(line);
    if (!sample) continue;
    const [, name, labels = "", number] = sample;
    const value = number === "+Inf" ? Infinity : Number(number);
    if (Number.isNaN(value)) continue;
    values.set(name + labels, value);
    const stem = name.replace(/_(bucket|sum|count)$/, "");
    const family = named.get(name) ?? named.get(stem);
    family?.samples.push({ name, labels: parseLabels(labels), key: name + labels, value });
  }
  return { values, families };
}

/** The labels of a sample, `{a="b",c="d"}`, as an object without a prototype. */
function parseLabels(text) {
  const labels = Object.create(null);
  for (const [, name, value] of text.matchAll(/([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/gs)) {
    labels[name] = value.replace(/\\(.)/gs, (_, letter) => (letter === "n" ? "\n" : letter));
  }
  return labels;
}

/** One answer of the server, at a time of a clock that is not set. */
class Reading {
  /** Takes an answer that came at `at` milliseconds of that clock, which is `date` for people. */
  constructor(text, at, date) {
    const { values, families } = parseMetrics(text);
    this.values = values;
    this.families = families;
    this.at = at;
    this.date = date;
    /** Nothing before it can be compared with it. */
    this.begins = true;
    /** Nothing is known of some time before it. */
    this.breaks = true;
  }

  /** A value; the name has no prefix, the label is a pair. Undefined if there is none. */
  get(name, label) {
    const labels = label ? `{${label[0]}="${label[1]}"}` : "";
    return this.values.get(`flashlore_${name}${labels}`);
  }

  /** The samples of a family; none if it is not there. */
  samples(name) {
    return this.families.find((family) => family.name === `flashlore_${name}`)?.samples ?? [];
  }

  /** Whether the server was started between an earlier reading and this one. */
  isOtherRunThan(before) {
    if (this.get("opened_total") !== before.get("opened_total")) return true;
    const grows = this.families.filter(({ type }) => type === "counter" || type === "histogram");
    return grows.some((family) =>
      family.samples.some((sample) => sample.value < (before.values.get(sample.key) ?? 0)),
    );
  }

  /** What a counter grew by in a second since an earlier reading of the same run. */
  rate(before, name, label) {
    const grown = this.grown(before, name, label);
    const seconds = before ? (this.at - before.at) / 1000 : 0;
    return grown === undefined || seconds <= 0 ? undefined : grown / seconds;
  }

  /** What a counter grew by since an earlier reading of the same run. */
  grown(before, name, label) {
    const [now, then] = [this.get(name, label), before?.get(name, label)];
    return now === undefined || then === undefined ? undefined : Math.max(0, now - then);
  }
}

/** Readings of the last minutes, oldest first. */
class Past {
  /** Keeps readings for so many milliseconds. */
  constructor(keep) {
    this.keep = keep;
    this.readings = [];
  }

  /** Adds a reading; whether the server was started since the one before. */
  push(reading) {
    const before = this.last;
    reading.begins = !before || reading.isOtherRunThan(before);
    reading.breaks = reading.begins || reading.at - before.at > LONG;
    this.readings.push(reading);
    // One older than that stays, for rates at the left edge.
    while (this.readings.length > 2 && this.readings[1].at < reading.at - this.keep) this.readings.shift();
    return Boolean(before) && reading.begins;
  }

  get last() {
    return this.readings[this.readings.length - 1];
  }

  /** The oldest reading of this run that is at most so many milliseconds older than the last; none without two. */
  since(most) {
    const { readings, last } = this;
    let found;
    for (let place = readings.length - 1; place > 0 && !readings[place].begins; place -= 1) {
      if (last.at - readings[place - 1].at > most && found) break;
      found = readings[place - 1];
    }
    return found;
  }
}

/** The times of one kind of requests between two readings: how many there were, their mean, and the bands. */
function timesBetween(now, before, kind) {
  const label = ["kind", kind];
  const count = now.grown(before, "request_seconds_count", label);
  if (!count) return undefined;
  const bands = [];
  for (const { name, labels, key, value } of now.samples("request_seconds")) {
    if (!name.endsWith("_bucket") || labels.kind !== kind) continue;
    const end = labels.le === "+Inf" ? Infinity : Number(labels.le);
    bands.push([end, Math.max(0, value - (before.values.get(key) ?? 0))]);
  }
  const mean = now.grown(before, "request_seconds_sum", label) / count;
  return { count, mean, bands };
}

/**
 * The time that a share of requests did not exceed, estimated from bands [end, requests up to there]: within a band
 * all times are taken to be equally likely on a scale of logarithms. Beyond the last end that end is answered.
 */
function percentile(bands, share) {
  const all = bands.length ? bands[bands.length - 1][1] : 0;
  if (!all) return undefined;
  let [begin, below] = [0, 0];
  for (const [end, count] of bands) {
    if (count >= share * all && count > below) {
      if (end === Infinity) return begin;
      const part = (share * all - below) / (count - below);
      // The first band begins at a third of its end, as the others do.
      const from = begin || end / 3;
      return from * (end / from) ** Math.max(0, part);
    }
    [begin, below] = [end, Math.max(below, count)];
  }
  return begin;
}
