// Numbers as people read them.

const DECIMAL = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 3 });
const WHOLE = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const UNKNOWN = "–";
const known = (value) => value !== undefined && value !== null && !Number.isNaN(value);

/** At most three digits that count; whole numbers keep theirs. */
function number(value) {
  if (!known(value)) return UNKNOWN;
  return Math.abs(value) >= 1000 ? WHOLE.format(value) : DECIMAL.format(value);
}

/** A number that counts things. */
function whole(value) {
  return known(value) ? WHOLE.format(value) : UNKNOWN;
}

/** Bytes in binary units. */
function bytes(value) {
  if (!known(value)) return UNKNOWN;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let place = 0;
  let size = value;
  while (Math.abs(size) >= 1024 && place < units.length - 1) {
    size /= 1024;
    place += 1;
  }
  return `${number(size)}\u00a0${units[place]}`;
}

/** A share of 1. */
function percent(value) {
  return known(value) ? `${DECIMAL.format(value * 100)}\u00a0%` : UNKNOWN;
}

/** What a part is of a whole; 0 of nothing. */
function share(part, all) {
  return all > 0 ? part / all : 0;
}

/** The time of a request, from seconds. */
function time(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds >= 1) return `${number(seconds)}\u00a0s`;
  if (seconds >= 0.001) return `${number(seconds * 1e3)}\u00a0ms`;
  return `${number(seconds * 1e6)}\u00a0µs`;
}

/** A long time, from seconds: its two largest units. */
function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const units = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const from = units.findIndex(([size]) => seconds >= size);
  if (from < 0) return `${number(Math.max(0, seconds))}\u00a0s`;
  const [size, name] = units[from];
  const first = Math.floor(seconds / size);
  const next = units[from + 1];
  const rest = next ? Math.floor((seconds - first * size) / next[0]) : 0;
  return `${first}\u00a0${name}${rest ? ` ${rest}\u00a0${next[1]}` : ""}`;
}

/** A number for each second. */
function aSecond(value) {
  return known(value) ? `${number(value)}/s` : UNKNOWN;
}

/** Bytes for each second. */
function bytesASecond(value) {
  return known(value) ? `${bytes(value)}/s` : UNKNOWN;
}

/** The time of day. */
function clock(date) {
  return date.toLocaleTimeString("en-GB");
}

/** A text as one word of a shell. */
function shellWord(text) {
  return /^[\w./][\w./-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
