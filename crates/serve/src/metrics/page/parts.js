// What sections are made of: paragraphs, tiles, tables, commands, columns; and the series of charts.

const words = (...texts) => element("p", {}, ...texts);
const panels = (...figures) => element("div", { class: "panels" }, ...figures.map((one) => one.figure ?? one));

/** A series that is a counter's rate. */
function rateOf(name, look, family, label, always = false, factor = 1) {
  const value = (now, before) => {
    const rate = now.rate(before, family, label);
    return rate === undefined ? undefined : rate * factor;
  };
  return { name, look, value, always };
}

/** A series that is a value as it is. */
function valueOf(name, look, family, label) {
  return { name, look, value: (now) => now.get(family, label), always: true };
}

/** Tiles of a figure and a remark: `[title, value(reading, past), remark(reading, past)]`. */
function tiles(definitions) {
  const list = element("dl", { class: "tiles" });
  const all = definitions.map(([title, value, remark]) => {
    const shown = element("span", { class: "value" });
    const said = element("span", { class: "remark" });
    list.append(element("div", {}, element("dt", {}, title), element("dd", {}, shown, said)));
    return { shown, said, value, remark };
  });
  const show = (reading, past) => {
    for (const { shown, said, value, remark } of all) {
      say(shown, value(reading, past));
      say(said, remark(reading, past));
    }
  };
  return { list, show };
}

/** A table of rows of texts that stay in their places; a narrow screen has no room for the column `spare`. */
class Table {
  constructor(caption, heads, rows, spare) {
    const of = (name, text, place, scope) => {
      const made = cell(name, text, place, scope ? { scope } : {});
      made.classList.toggle("spare", place === spare);
      return made;
    };
    const row = element("tr", {}, ...heads.map((head, place) => of("th", head, place, "col")));
    this.cells = rows.map((name) => {
      const [, ...rest] = heads;
      const cells = [of("th", name, 0, "row"), ...rest.map((_, place) => of("td", UNKNOWN, place + 1))];
      return { cells, row: element("tr", {}, ...cells) };
    });
    const body = element("tbody", {}, ...this.cells.map((one) => one.row));
    this.table = element("table", {}, element("caption", {}, caption), element("thead", {}, row), body);
    this.figure = element("div", { class: "scroll" }, this.table);
  }

  /** Sets the texts of a row, behind its name; a row without texts is not shown. */
  set(place, texts) {
    const { cells, row } = this.cells[place];
    row.hidden = !texts;
    texts?.forEach((text, column) => say(cells[column + 1], text));
  }
}

function cell(name, text, place, attributes) {
  return element(name, { ...attributes, ...(place ? { class: "number" } : {}) }, text);
}

/** Commands to copy. */
function commands() {
  const code = element("code");
  const box = element("div", { class: "command" }, element("pre", { tabindex: "0" }, code));
  if (navigator.clipboard) {
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        announce("Copied");
      } catch {
        announce("The browser did not let it be copied");
      }
    });
    box.append(button);
  }
  return { box, set: (lines) => say(code, lines.join("\n")) };
}

/** Columns of values by share, side by side. */
class Columns {
  constructor(title) {
    this.columns = element("div", { class: "columns", "aria-hidden": "true" });
    this.text = element("figcaption");
    const head = element("div", { class: "head" }, element("h3", {}, title));
    this.figure = element("figure", {}, head, this.columns, this.text);
  }

  /** Shows `[share of blocks, erases at most]`, from the least worn on. */
  show(values) {
    const tenths = values.slice(1);
    const most = Math.max(1, ...tenths.map(([, value]) => value));
    while (this.columns.children.length < tenths.length) {
      this.columns.append(element("div", { class: "column" }, element("b"), element("div", { class: "stem" })));
    }
    tenths.forEach(([, value], place) => {
      const [text, stem] = this.columns.children[place].children;
      say(text, number(value));
      stem.style.height = `${(100 * value) / most}px`;
    });
    const at = (quantile) => whole(values.find(([name]) => name === quantile)?.[1]);
    say(
      this.text,
      `Least worn block: ${at("0")} erases since the volume was made; half of all at most ${at("0.5")}; ` +
        `most worn: ${at("1")}.`,
    );
  }
}
