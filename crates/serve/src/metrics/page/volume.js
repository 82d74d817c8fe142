// What is shown of a volume: space and savings, content, history, collection, wear.

// Space and savings of a volume

const SAVERS = [
  ["dedup", "saved by sharing equal pages", "s-dedup"],
  ["delta", "saved by deltas", "s-delta"],
  ["compression", "saved by compression", "s-compression"],
];
const FORMS = [
  ["whole", "whole pages", "f-whole"],
  ["delta", "deltas", "f-delta"],
  ["compressed", "compressed pages", "f-compressed"],
];
const saved = (reading) => SAVERS.reduce((sum, [by]) => sum + (reading.get("saved_bytes", ["by", by]) ?? 0), 0);
/** What would be stored without any savings. */
const unsaved = (reading) => (reading.get("logical_bytes") ?? 0) + (reading.get("old_version_bytes") ?? 0);

function space() {
  const parts = (all) => all.map(([, name, look]) => ({ name, look }));
  const needed = new Bar("As plain pages it would take", [
    { name: "what clients can read now", look: "f-now" },
    { name: "old versions", look: "f-old" },
  ], bytes);
  const stored = new Bar("Stored and saved", parts([...FORMS, ...SAVERS]), bytes);
  const used = new Gauge("Capacity in use", bytes);
  const filled = new Gauge("Written to by clients", bytes);
  const charts = [
    new Chart(
      [
        valueOf("Clients can read", "f-now", "logical_bytes"),
        valueOf("Stored, old versions too", "k-write", "stored_bytes"),
        valueOf("Of old versions", "f-old", "old_version_bytes"),
      ],
      { title: "Bytes", format: bytes, ticks: powersTo, least: 4096 },
    ),
    new Chart(
      [{ name: "Saved", look: "s-dedup", always: true, value: (now) => share(saved(now), unsaved(now)) }],
      { title: "Saved against plain pages", format: percent, least: 1 },
    ),
  ];
  const show = (reading) => {
    const [logical, old] = [reading.get("logical_bytes"), reading.get("old_version_bytes")];
    needed.show([logical, old], unsaved(reading));
    const forms = FORMS.map(([as]) => reading.get("value_bytes", ["as", as]));
    const savings = SAVERS.map(([by]) => reading.get("saved_bytes", ["by", by]));
    stored.show([...forms, ...savings], unsaved(reading));
    used.show(reading.get("used_bytes"), reading.get("capacity_bytes"));
    filled.show(logical, reading.get("size_bytes"));
  };
  const meaning = words(
    "Both bars have the same scale. The first one is what clients wrote and what is remembered of before, a page ",
    "for a page; the second one is what that takes here. Old versions give way when their room is needed; when the ",
    "capacity is in use, writes fail.",
  );
  const gauges = element("div", { class: "panels" }, filled.figure, used.figure);
  return { parts: [meaning, needed.figure, stored.figure, gauges, panels(...charts)], charts, show };
}

function content() {
  const found = (name, look, what) => rateOf(name, look, "dedup_writes_total", ["found", what], true);
  const charts = [
    new Chart(
      [
        found("New content", "c-host", "nothing"),
        found("Known from elsewhere", "s-dedup", "elsewhere"),
        found("What was there already", "s-compression", "same"),
      ],
      { title: "Pages written, by what was found", format: aSecond, stacked: true, least: 4 },
    ),
    new Chart(
      [
        rateOf("As deltas", "f-delta", "encoded_writes_total", ["as", "delta"], true),
        rateOf("Compressed", "f-compressed", "encoded_writes_total", ["as", "compressed"], true),
      ],
      { title: "Pages written encoded", format: aSecond, stacked: true, least: 4 },
    ),
  ];
  const sentence = words();
  const show = (reading) => {
    const of = (what) => reading.get("dedup_writes_total", ["found", what]) ?? 0;
    const all = of("same") + of("elsewhere") + of("nothing");
    const encoded = reading.samples("encoded_writes_total").reduce((sum, sample) => sum + sample.value, 0);
    say(
      sentence,
      `Of ${whole(all)} pages written since the volume was opened, ${percent(share(of("elsewhere"), all))} were ` +
        `known from elsewhere, ${percent(share(of("same"), all))} were there already, ` +
        `and ${percent(share(encoded, all))} were stored encoded.`,
    );
  };
  return { parts: [sentence, panels(...charts)], charts, show };
}

// History

/** What a volume is called on the command line: whoever types it stands beside its directory. */
function nameOf(reading) {
  return reading.samples("info")[0]?.labels.name ?? "volume";
}

function history() {
  const charts = [
    new Chart([valueOf("Window", "accent", "window_seconds")], {
      title: "How far back it goes",
      format: duration,
      ticks: timesTo,
      tick: (value) => (value < 120 ? `${value}\u00a0s` : duration(value)),
      least: 60,
    }),
    new Chart([valueOf("Changes of pages remembered", "f-old", "history_entries")], {
      title: "Changes remembered",
      note: "When there is no more room, the oldest is forgotten for each new one.",
      format: whole,
      least: 4,
    }),
  ];
  const sentence = words();
  const kept = words();
  const entries = new Gauge("Room for changes in use", whole);
  const shell = commands();
  const show = (reading, past) => {
    say(sentence, `${windowNow(reading)} ${windowGoes(reading, past.since(STRETCH))}`);
    say(kept, windowKept(reading));
    entries.show(reading.get("history_entries"), reading.get("history_entries_limit"));
    shell.set(windowCommands(reading));
  };
  const meaning = element("h3", {}, "From the shell");
  const how = words(
    "An instant is a time, a duration such as \u201c10min ago\u201d, or the name of a snapshot. ",
    "The first word behind a command is the directory of the volume; these work while it is served. ",
    "Clients of NBD read an instant as the export NAME@INSTANT.",
  );
  const parts = [sentence, kept, entries.figure, panels(...charts), meaning, how, shell.box];
  return { parts, charts, show };
}

function windowNow(reading) {
  const from = reading.get("window_start_timestamp_seconds");
  const since = known(from) ? `, to ${new Date(from * 1000).toLocaleString("en-GB")}` : "";
  return `The volume goes back ${duration(reading.get("window_seconds"))}${since}.`;
}

/** Whether the window grows or shrinks, by the last minute. */
function windowGoes(reading, before) {
  const seconds = before ? (reading.at - before.at) / 1000 : 0;
  if (seconds < 5) return "";
  const grown = (reading.get("window_seconds") - before.get("window_seconds")) / seconds;
  if (grown > 0.95) return "Nothing is being forgotten: it grows with the clock.";
  if (grown > 0.05) {
    return `It grows by ${duration(grown * 60)} a minute: old versions are forgotten more slowly than time goes.`;
  }
  if (grown > -0.05) return "It stays as long as it is: as much is forgotten as is written.";
  return `It shrinks by ${duration(-grown * 60)} a minute: new versions take the room of old ones.`;
}

function windowKept(reading) {
  const [least, snapshots] = [reading.get("window_least_seconds"), reading.get("snapshots") ?? 0];
  const kept = !least
    ? "No least window is set: old versions stay until their room is needed."
    : reading.get("window_protected")
      ? `At least ${duration(least)} are kept: before that is given up, writes fail.`
      : `At least ${duration(least)} are kept as long as there is room.`;
  if (!snapshots) return `${kept} There are no snapshots.`;
  return `${kept} ${whole(snapshots)} ${snapshots === 1 ? "snapshot is" : "snapshots are"} kept whatever is written.`;
}

/** Commands with an instant that lies in the window. */
function windowCommands(reading) {
  const window = reading.get("window_seconds");
  const round = [
    [86400, "1d"],
    [3600, "1h"],
    [600, "10min"],
    [60, "1min"],
    [10, "10s"],
  ];
  const ago = round.find(([seconds]) => seconds < 0.8 * window)?.[1];
  const at = ago ? `"${ago} ago"` : "now";
  const directory = shellWord(nameOf(reading));
  return [
    `flashlore log ${directory}`,
    `flashlore diff ${directory} ${at}`,
    `flashlore read ${directory} --at ${at} --length 4KiB | xxd | head`,
    `flashlore export ${directory} then.raw --at ${at}`,
    `flashlore snapshot create ${directory} before-upgrade`,
    `flashlore recover ${directory} --to ${at} --dry-run`,
  ];
}

// Flash: programs, collection, wear

const CAUSES = [
  ["host", "Pages of clients", "c-host"],
  ["packs", "Packed pages", "c-packs"],
  ["merges", "Materialized", "c-merges"],
  ["collection", "Moved by collection", "c-collection"],
  ["wear", "Moved for even wear", "c-wear"],
  ["padding", "Padding", "c-padding"],
];
/** Pages programmed between two readings, whatever for. */
function programs(now, before) {
  const family = "programmed_pages_total";
  const of = ({ labels }) => now.grown(before, family, ["for", labels.for]) ?? 0;
  return now.samples(family).reduce((sum, sample) => sum + of(sample), 0);
}

/** Pages programmed for each page written between two readings. */
function amplification(now, before) {
  const written = now.grown(before, "host_pages_total", ["kind", "write"]);
  return written ? programs(now, before) / written : undefined;
}

function collection() {
  const causes = CAUSES.map(([cause, name, look]) =>
    rateOf(name, look, "programmed_pages_total", ["for", cause], cause === "host"),
  );
  const charts = [
    new Chart(causes, { title: "Pages programmed a second, by cause", format: aSecond, stacked: true, least: 4 }),
    new Chart([valueOf("Free blocks", "accent", "free_blocks")], { title: "Free blocks", format: whole, least: 4 }),
  ];
  const free = new Gauge("Blocks in use", whole);
  const sentence = words();
  const show = (reading, past) => {
    const [blocks, left] = [reading.get("blocks"), reading.get("free_blocks")];
    free.show(blocks - left, blocks);
    const before = past.since(STRETCH);
    const collected = reading.grown(before, "collected_blocks_total", ["for", "room"]);
    const moved = reading.grown(before, "programmed_pages_total", ["for", "collection"]);
    say(
      sentence,
      collected
        ? `In the last minute ${whole(collected)} blocks were collected; ` +
            `that moved ${number(moved / collected)} pages for each.`
        : "Nothing was collected in the last minute.",
    );
  };
  const meaning = words(
    "Flash is erased a block at a time. When few blocks are free, collection takes one that holds little, moves what ",
    "is still needed, and erases it. The more it has to move, the slower and the more worn the flash.",
  );
  return { parts: [meaning, sentence, free.figure, panels(...charts)], charts, show };
}

function wear() {
  const spread = new Columns("Erases of a block, from the least to the most worn tenth");
  const charts = [
    new Chart(
      [
        {
          name: "Programmed for each page written",
          look: "accent",
          always: true,
          value: (now, _, recent) => amplification(now, recent),
        },
      ],
      { title: "Write amplification", note: "Each point is of the ten seconds before it.", format: number, least: 1 },
    ),
  ];
  const sentence = words();
  const show = (reading, past) => {
    const last = amplification(reading, past.since(STRETCH));
    const all = reading.get("write_amplification");
    const lately = known(last) ? `${number(last)} in the last minute, ` : "";
    say(
      sentence,
      known(all)
        ? `For each page that clients wrote the flash programmed ${lately}${number(all)} since the volume was ` +
            `opened. ${whole(reading.get("erases_total"))} blocks were erased in that time.`
        : "Nothing was written since the volume was opened.",
    );
    spread.show(reading.samples("block_erases").map(({ labels, value }) => [labels.quantile, value]));
  };
  const meaning = words(
    "Below 1, deduplication and encoding save more than collection costs. Blocks wear out by being erased; even wear ",
    "lets all of them last as long.",
  );
  return { parts: [meaning, sentence, panels(charts[0], spread)], charts, show };
}
