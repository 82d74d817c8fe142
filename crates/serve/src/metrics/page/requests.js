// What is shown of whatever is served: requests, their times, what is not durable yet.
//
// Rates and percentiles are those of the last minute, unless they are drawn over time.

const KINDS = ["read", "write", "zero", "trim", "flush"];
const KIND_NAMES = { read: "Reads", write: "Writes", zero: "Writes of zeros", trim: "Trims", flush: "Flushes" };
const STRETCH = 60_000;

// Requests

function requests() {
  const looks = { read: "k-read", write: "k-write", zero: "k-zero", trim: "k-trim", flush: "k-flush" };
  const always = { read: true, write: true };
  const counts = KINDS.map((kind) =>
    rateOf(KIND_NAMES[kind], looks[kind], "requests_total", ["kind", kind], always[kind]),
  );
  const moved = ["read", "write"].map((kind) =>
    rateOf(kind === "read" ? "Read" : "Written", looks[kind], "request_bytes_total", ["kind", kind], true),
  );
  const charts = [
    new Chart(counts, { title: "Requests a second", format: aSecond, least: 4 }),
    new Chart(moved, { title: "Bytes a second", format: bytesASecond, ticks: powersTo, least: 4096 }),
  ];
  const clients = words();
  const failures = words();
  const show = (reading) => {
    const [writers, readers] = ["write", "read"].map((may) => reading.get("clients", ["may", may]) ?? 0);
    const people = (count) => `${whole(count)} ${count === 1 ? "client" : "clients"}`;
    say(clients, `${people(writers)} may write, ${people(readers)} may only read.`);
    const failed = KINDS.map((kind) => [kind, reading.get("request_errors_total", ["kind", kind]) ?? 0]);
    const some = failed.filter(([, count]) => count > 0);
    failures.hidden = !some.length;
    const named = some.map(([kind, count]) => `${KIND_NAMES[kind].toLowerCase()} ${whole(count)}`).join(", ");
    say(failures, `Failed since the server was started: ${named}. A full volume answers writes so.`);
  };
  return { parts: [clients, failures, panels(...charts)], charts, show };
}

// Response

// Of which the times are drawn.
const TIMED = [
  ["read", "Reads", "k-read"],
  ["write", "Writes", "k-write"],
  ["flush", "Flushes", "k-flush"],
];

function responses() {
  const heads = ["Last minute", "Requests", "Mean", "Median", "99 %", "99.9 %"];
  const rows = KINDS.map((kind) => KIND_NAMES[kind]);
  const table = new Table("Times of requests that succeeded", heads, rows, heads.indexOf("Median"));
  const mean = (kind, name, look) => ({
    name,
    look,
    always: true,
    value: (now, _, recent) => recent && timesBetween(now, recent, kind)?.mean,
  });
  const slow = (kind, name, look) => ({
    name,
    look,
    always: true,
    value: (now, _, recent) => recent && percentile(timesBetween(now, recent, kind)?.bands ?? [], 0.99),
  });
  const charts = [
    new Chart(TIMED.map((one) => mean(...one)), {
      title: "Mean time",
      note: "Each point is of the ten seconds before it.",
      format: time,
      logarithmic: true,
    }),
    new Chart(TIMED.map((one) => slow(...one)), {
      title: "Time within which 99 % are done",
      note: "Estimated; each point is of the ten seconds before it.",
      format: time,
      logarithmic: true,
    }),
  ];
  const quiet = words("No request in the last minute.");
  const show = (reading, past) => {
    const before = past.since(STRETCH);
    const seen = KINDS.map((kind) => before && timesBetween(reading, before, kind));
    KINDS.forEach((_, place) => table.set(place, seen[place] && timesRow(seen[place])));
    quiet.hidden = seen.some(Boolean);
    table.figure.hidden = !quiet.hidden;
  };
  const meaning = words(
    "Times are those inside the volume, without the network. Means are exact; percentiles are estimated, because ",
    "times are counted in bands (up to 10 µs, 30 µs, 100 µs, and so on).",
  );
  return { parts: [meaning, quiet, table.figure, panels(...charts)], charts, show };
}

function timesRow({ count, mean, bands }) {
  const last = bands.length > 1 ? bands[bands.length - 2][0] : 0;
  const about = (part) => {
    const at = percentile(bands, part);
    return at === last ? `> ${time(at)}` : time(at);
  };
  return [whole(count), time(mean), about(0.5), about(0.99), about(0.999)];
}

// Durability

function durability() {
  const charts = [
    new Chart([valueOf("Not durable yet", "k-flush", "changes_not_durable")], {
      title: "Changes that no flush has made durable yet",
      format: whole,
      least: 4,
    }),
  ];
  const rows = ["Checkpoints taken", "Times opened", "Stored pages known to be unreadable"];
  const table = new Table("State", ["What", "How many"], rows);
  const show = (reading) => {
    const row = (value) => (known(value) ? [whole(value)] : undefined);
    table.set(0, row(reading.get("checkpoints_total")));
    table.set(1, row(reading.get("opened_total")));
    table.set(2, row(reading.get("unreadable_pages")));
  };
  const meaning = words(
    "After a crash the volume is as it was at one instant, not earlier than the last flush that was answered. What ",
    "stands in the chart may be lost.",
  );
  return { parts: [meaning, panels(charts[0], table)], charts, show };
}
