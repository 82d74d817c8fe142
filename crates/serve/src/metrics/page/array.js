// What is shown of an array: its machines, its blocks, its media.

const STATES = [
  ["references", "references", "f-whole"],
  ["associates", "deltas from them", "f-delta"],
  ["independents", "others", "f-now"],
];

function machines() {
  const bars = element("div");
  const rows = new Map();
  const show = (reading) => {
    const all = reading.samples("logical_bytes");
    const size = share(reading.get("size_bytes"), all.length);
    for (const { labels, value } of all) {
      if (!rows.has(labels.machine)) {
        rows.set(labels.machine, new Gauge(`Machine ${labels.machine}`, bytes));
        bars.append(rows.get(labels.machine).figure);
      }
      rows.get(labels.machine).show(value, size);
    }
  };
  return { parts: [words("What each machine holds of what it shows."), bars], charts: [], show };
}

function blocks() {
  const kinds = new Bar("Virtual blocks", STATES.map(([, name, look]) => ({ name, look })), whole);
  const gauges = [
    [new Gauge("RAM for deltas", bytes), "array_delta_ram_bytes", "array_delta_ram_bytes_limit"],
    [new Gauge("Data blocks on the fast medium", bytes), "array_fast_bytes", "array_fast_bytes_limit"],
  ];
  const log = new Gauge("Log in use", bytes);
  const away = new Gauge("Blocks that are not at home", whole);
  const tuned = words();
  const charts = [
    new Chart(STATES.map(([are, name, look]) => valueOf(name, look, "array_virtual_blocks", ["are", are])), {
      title: "Virtual blocks",
      format: whole,
      stacked: true,
      least: 4,
    }),
    new Chart(
      [
        valueOf("RAM for deltas", "f-delta", "array_delta_ram_bytes"),
        valueOf("Fast medium", "f-whole", "array_fast_bytes"),
      ],
      { title: "In use", format: bytes, ticks: powersTo, least: 4096 },
    ),
  ];
  const show = (reading) => {
    const blocksThat = STATES.map(([are]) => reading.get("array_virtual_blocks", ["are", are]));
    kinds.show(blocksThat, reading.get("array_virtual_blocks_limit"));
    for (const [gauge, used, most] of gauges) gauge.show(reading.get(used), reading.get(most));
    const size = reading.get("array_log_bytes_limit");
    log.show(size - reading.get("array_log_free_bytes"), size);
    const most = reading.get("array_away_blocks_limit");
    away.figure.hidden = !most;
    away.show(reading.get("array_away_blocks"), most);
    const values = reading.samples("array_tuned_info").map(({ labels }) => `${labels.key} ${labels.value}`);
    tuned.hidden = !values.length;
    say(tuned, `Works with: ${values.join(", ")}. Another terminal changes it: flashlore tune.`);
  };
  const meaning = words(
    "A block that resembles a reference is kept as a delta from it, in RAM and in the log on the slow medium. ",
    "References lie on the fast medium.",
  );
  const all = element("div", { class: "panels" }, ...gauges.map(([gauge]) => gauge.figure), log.figure, away.figure);
  return { parts: [meaning, kinds.figure, all, tuned, panels(...charts)], charts, show };
}

function media() {
  const label = (medium, kind) => `{medium="${medium}",kind="${kind}"}`;
  const rate = (family, medium, kind) => (now, before) => {
    const key = `flashlore_${family}${label(medium, kind)}`;
    const [last, first] = [now.values.get(key), before?.values.get(key)];
    if (!known(last) || !known(first) || now.at <= before.at) return undefined;
    return (Math.max(0, last - first) * 1000) / (now.at - before.at);
  };
  const looks = { read: "k-read", write: "k-write", sync: "k-flush" };
  const names = { read: "Reads", write: "Writes", sync: "Syncs" };
  const chart = (medium) =>
    new Chart(
      Object.keys(names).map((kind) => ({
        name: names[kind],
        look: looks[kind],
        always: true,
        value: rate("array_medium_operations_total", medium, kind),
      })),
      { title: `Operations a second on the ${medium} medium`, format: aSecond, least: 4 },
    );
  const charts = [chart("fast"), chart("slow")];
  const heads = ["Medium", "Reads", "Writes", "Syncs", "Read", "Written"];
  const table = new Table("Since the array was opened", heads, ["Fast", "Slow"], heads.indexOf("Syncs"));
  const show = (reading) => {
    ["fast", "slow"].forEach((medium, place) => {
      const of = (family, kind) => reading.values.get(`flashlore_${family}${label(medium, kind)}`);
      const counts = ["read", "write", "sync"].map((kind) => whole(of("array_medium_operations_total", kind)));
      const moved = ["read", "write"].map((kind) => bytes(of("array_medium_bytes_total", kind)));
      table.set(place, [...counts, ...moved]);
    });
  };
  return { parts: [table.figure, panels(...charts)], charts, show };
}
