// The rarer half of console: format directives, tables, counters.
(function (kit) {
  "use strict";

  const { host, create, getOwnPropertyDescriptor, isArray, LINE_CHARS_MAX, ownKeys, parseFloat, parseInt, stringify } = kit;
  const { indexOf, padEnd, self: NativeString, slice } = kit.String;
  const { self: NativeNumber } = kit.Number;
  const { self: NativeError } = kit.Error;
  const { forEach: mapForEach } = kit.Map;
  const { forEach: setForEach } = kit.Set;
  const { toString: objectToString } = kit.Object;
  const { show, inspect, DEPTH_MAX } = kit.load("show");
  const { isObject, textOr } = kit.load("errors");
  const { attempt, eachLine, line, print } = kit.load("console");

  const LABELS_MAX = 1000; // counters that are kept
  const ROWS_MAX = 1000; // of one table
  const COLUMNS_MAX = 50; // of one table
  const CELL_CHARS_MAX = 1000; // of one cell
  const EVERYTHING = 30; // levels: what `depth: null` asks for

  // ---- Directives ----

  const numberFrom = (value, convert) =>
    typeof value === "bigint" ? NativeString(value) + "n" : typeof value === "symbol" || typeof value === "object" ? "NaN" : show(convert(value), undefined);
  const directive = (letter, value) => {
    switch (letter) {
      case "s": return typeof value === "object" && value !== null ? inspect(value, 1) : show(value, undefined);
      case "d": return numberFrom(value, NativeNumber);
      case "i": return numberFrom(value, parseInt);
      case "f": return numberFrom(value, parseFloat);
      case "j": {
        const json = stringify(value);
        return json === undefined ? "undefined" : json;
      }
      case "c": return "";
      default: return inspect(value, DEPTH_MAX);
    }
  };

  // Replaces what begins with % in the first of `args`; says how many it used up.
  const formatted = (args, from) => {
    const template = args[from];
    let text = "", used = from + 1, done = 0;
    for (let at = indexOf(template, "%"); at >= 0; at = indexOf(template, "%", done)) {
      const letter = slice(template, at + 1, at + 2);
      text += slice(template, done, at);
      done = at + 2;
      if (letter === "%") text += "%";
      else if (letter !== "" && indexOf("sdifjoOc", letter) >= 0 && used < args.length) {
        text += attempt(args[used], (value) => directive(letter, value));
        used += 1;
      } else text += "%" + letter;
      if (text.length > LINE_CHARS_MAX) break;
    }
    return { __proto__: null, text: text + slice(template, done), used };
  };

  // ---- Tables ----

  const cell = (value) => {
    const text = eachLine(attempt(value, (it) => inspect(it, 1)), " ");
    return text.length > CELL_CHARS_MAX ? slice(text, 0, CELL_CHARS_MAX) + "..." : text;
  };
  const newTable = () => ({ __proto__: null, rows: create(null), nRows: 0, columns: create(null), nColumns: 0, hasValues: false });
  const hasColumn = (table, name) => {
    for (let at = 0; at < table.nColumns; at += 1) if (table.columns[at] === name) return true;
    return false;
  };
  const addColumn = (table, name) => {
    if (hasColumn(table, name) || table.nColumns >= COLUMNS_MAX) return;
    table.columns[table.nColumns] = name;
    table.nColumns += 1;
  };
  const addRow = (table, index, value, chosen) => {
    if (table.nRows >= ROWS_MAX) return;
    const row = { __proto__: null, index, cells: create(null), value: undefined };
    if (isObject(value)) {
      const keys = ownKeys(value);
      for (let at = 0; at < keys.length; at += 1) {
        const key = keys[at];
        const property = typeof key === "string" ? getOwnPropertyDescriptor(value, key) : undefined;
        if (property === undefined || !property.enumerable) continue;
        if (!chosen) addColumn(table, key);
        row.cells[key] = property.get === undefined ? cell(property.value) : "[Getter]";
      }
    } else {
      row.value = cell(value);
      table.hasValues = true;
    }
    table.rows[table.nRows] = row;
    table.nRows += 1;
  };
  const addRows = (table, data, chosen) => {
    const tag = objectToString(data);
    let n = 0;
    if (tag === "[object Map]") {
      mapForEach(data, (value, key) => addRow(table, cell(key), value, chosen));
    } else if (tag === "[object Set]") {
      setForEach(data, (value) => {
        addRow(table, NativeString(n), value, chosen);
        n += 1;
      });
    } else {
      const keys = ownKeys(data);
      for (let at = 0; at < keys.length; at += 1) {
        const property = typeof keys[at] === "string" ? getOwnPropertyDescriptor(data, keys[at]) : undefined;
        if (property !== undefined && property.enumerable) addRow(table, keys[at], property.value, chosen);
      }
    }
  };
  const headings = (table) => {
    const names = { __proto__: null, 0: "(index)" };
    for (let at = 0; at < table.nColumns; at += 1) names[at + 1] = table.columns[at];
    if (table.hasValues) names[table.nColumns + 1] = "Values";
    return names;
  };
  const cellAt = (table, row, at) => {
    const text = at === 0 ? row.index : at <= table.nColumns ? row.cells[table.columns[at - 1]] : row.value;
    return text === undefined ? "" : text;
  };
  const drawn = (table) => {
    const names = headings(table);
    const n = table.nColumns + (table.hasValues ? 2 : 1);
    const widths = create(null);
    for (let at = 0; at < n; at += 1) {
      let width = names[at].length;
      for (let row = 0; row < table.nRows; row += 1) {
        const { length } = cellAt(table, table.rows[row], at);
        if (length > width) width = length;
      }
      widths[at] = width;
    }
    const across = (left, between, right, text, filler) => {
      let drawnLine = left;
      for (let at = 0; at < n; at += 1) drawnLine += (at === 0 ? "" : between) + filler + padEnd(text(at), widths[at], filler) + filler;
      return drawnLine + right;
    };
    const rule = (left, between, right) => across(left, between, right, () => "", "─");
    let text = rule("┌", "┬", "┐") + "\n" + across("│", "│", "│", (at) => names[at], " ") + "\n" + rule("├", "┼", "┤");
    for (let row = 0; row < table.nRows && text.length <= LINE_CHARS_MAX; row += 1) {
      text += "\n" + across("│", "│", "│", (at) => cellAt(table, table.rows[row], at), " ");
    }
    return text + "\n" + rule("└", "┴", "┘");
  };
  const tableOf = (data, columns) => {
    const table = newTable();
    const chosen = isArray(columns);
    for (let at = 0; chosen && at < columns.length; at += 1) addColumn(table, NativeString(columns[at]));
    addRows(table, data, chosen);
    return drawn(table);
  };

  // ---- Counters ----

  const counts = create(null);
  let nCounts = 0;
  const labelOf = (args) => (args[0] === undefined ? "default" : NativeString(args[0]));

  const depthOf = (options) => {
    const depth = isObject(options) ? options.depth : undefined;
    if (depth === null) return EVERYTHING;
    return typeof depth === "number" && depth >= 0 ? (depth < EVERYTHING ? depth + 1 : EVERYTHING) : DEPTH_MAX;
  };

  return {
    __proto__: null,
    formatted,
    dir: (args) => print("log", attempt(args[0], (value) => inspect(value, depthOf(args[1])))),
    table: (args) => print("log", isObject(args[0]) ? attempt(args[0], (data) => tableOf(data, args[1])) : line(args, 0)),
    assert: (args) => {
      if (args[0]) return;
      const said = args.length > 1 ? line(args, 1) : "";
      print("error", said === "" ? "Assertion failed" : "Assertion failed: " + said);
    },
    count: (args) => {
      const label = labelOf(args);
      if (counts[label] === undefined) nCounts += 1;
      if (nCounts > LABELS_MAX) return;
      counts[label] = (counts[label] === undefined ? 0 : counts[label]) + 1;
      print("log", label + ": " + counts[label]);
    },
    countReset: (args) => {
      const label = labelOf(args);
      if (counts[label] === undefined) print("warn", "Count for '" + label + "' does not exist");
      else counts[label] = 0;
    },
    trace: (args) => {
      const frames = host.frames(textOr("", () => new NativeError("").stack));
      const said = line(args, 0);
      print("log", (said === "" ? "Trace" : "Trace: " + said) + (frames === "" ? "" : "\n" + frames));
    },
  };
})
