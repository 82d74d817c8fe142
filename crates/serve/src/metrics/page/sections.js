// What is shown: a section has an id, a title, whether it applies to a reading, and `build()`, which answers its parts,
// its charts, and what to do with each reading. Above all of them stand tiles, below them every metric.

const has = (name) => (reading) => reading.samples(name).length > 0;
const hasMachines = (reading) => known(reading.samples("logical_bytes")[0]?.labels.machine);
const SECTIONS = [
  { id: "requests", title: "Requests", applies: has("requests_total"), build: requests },
  { id: "response", title: "Response", applies: has("request_seconds"), build: responses },
  { id: "space", title: "Space and savings", applies: has("value_bytes"), build: space },
  { id: "content", title: "Content", applies: has("dedup_writes_total"), build: content },
  { id: "history", title: "History", applies: has("window_seconds"), build: history },
  { id: "collection", title: "Collection", applies: has("free_blocks"), build: collection },
  { id: "wear", title: "Wear", applies: has("block_erases"), build: wear },
  { id: "machines", title: "Machines", applies: hasMachines, build: machines },
  { id: "blocks", title: "Blocks", applies: has("array_virtual_blocks"), build: blocks },
  { id: "media", title: "Media", applies: has("array_medium_operations_total"), build: media },
  { id: "durability", title: "Durability", applies: has("changes_not_durable"), build: durability },
];

// What stands above all sections.

const lastMinute = (kind) => (reading, past) => {
  const before = past.since(STRETCH);
  return before && timesBetween(reading, before, kind);
};

/** The tiles for a reading: those of a volume or of an array. */
function tilesFor(reading) {
  const writes = lastMinute("write");
  const all = [
    [
      "99 % of writes within",
      (now, past) => time(percentile(writes(now, past)?.bands ?? [], 0.99)),
      (now, past) => {
        const seen = writes(now, past);
        return seen ? `about; mean ${time(seen.mean)}` : "none in the last minute";
      },
    ],
  ];
  if (has("value_bytes")(reading)) {
    all.unshift(
      [
        "Stored",
        (now) => bytes(now.get("stored_bytes")),
        (now) => `clients can read ${bytes(now.get("logical_bytes"))}`,
      ],
      [
        "Saved",
        (now) => percent(share(saved(now), unsaved(now))),
        (now) => `${bytes(saved(now))} less than plain pages`,
      ],
    );
  }
  if (has("window_seconds")(reading)) {
    all.push([
      "Goes back",
      (now) => duration(now.get("window_seconds")),
      (now) => `${whole(now.get("history_entries"))} changes remembered`,
    ]);
  }
  if (has("free_blocks")(reading)) {
    all.push(
      [
        "Write amplification",
        (now, past) => number(amplification(now, past.since(STRETCH))),
        (now) => {
          const all = now.get("write_amplification");
          return known(all) ? `last minute; ${number(all)} since opened` : "nothing was written";
        },
      ],
      ["Free blocks", (now) => whole(now.get("free_blocks")), (now) => `of ${whole(now.get("blocks"))}`],
    );
  }
  if (has("array_virtual_blocks")(reading)) {
    const blocksThat = (now, are) => now.get("array_virtual_blocks", ["are", are]);
    all.unshift(
      [
        "Differences",
        (now) => whole(blocksThat(now, "associates")),
        (now) => `from ${whole(blocksThat(now, "references"))} references`,
      ],
      [
        "Fast medium",
        (now) => percent(share(now.get("array_fast_bytes"), now.get("array_fast_bytes_limit"))),
        (now) => `${bytes(now.get("array_fast_bytes"))} in use`,
      ],
      [
        "RAM for deltas",
        (now) => percent(share(now.get("array_delta_ram_bytes"), now.get("array_delta_ram_bytes_limit"))),
        (now) => `${bytes(now.get("array_delta_ram_bytes"))} in use`,
      ],
    );
  }
  return tiles(all);
}

/** Every metric, as it was answered last: filled while it is open. */
function everything() {
  const body = element("tbody");
  const heads = ["Metric", "Value"].map((head, place) => cell("th", head, place, { scope: "col" }));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
  const box = element("details", { id: "everything" }, element("summary", {}, "Every metric, as answered"), table);
  const show = (reading) => {
    if (!box.open) return;
    const rows = reading.families.flatMap((family) => [
      element("tr", {}, element("th", { colspan: "2", scope: "rowgroup" }, family.help)),
      ...family.samples.map(({ key, value }) =>
        element("tr", {}, element("td", {}, element("code", {}, key)), cell("td", String(value), 1, {})),
      ),
    ]);
    body.replaceChildren(...rows);
  };
  return { box, show };
}
