// Reading and writing CSV, and decoding its text.

const DELIMITERS = [",", ";", "\t", "|"];

/** The text of a file: UTF-8, UTF-16 with a byte order mark, or Windows-1252. */
export async function readText(file) {
  const content = new Uint8Array(await file.arrayBuffer());
  if (content.includes(0) && !(content[0] === 0xff || content[0] === 0xfe)) {
    throw new Error("This file is neither CSV nor JSON lines. Save it as CSV first, or predict it with the command tfbbb remote predict, which also reads Parquet, Arrow and Excel files.");
  }
  if (content[0] === 0xff && content[1] === 0xfe) return new TextDecoder("utf-16le").decode(content);
  if (content[0] === 0xfe && content[1] === 0xff) return new TextDecoder("utf-16be").decode(content);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return new TextDecoder("windows-1252").decode(content);
  }
}

/** The records of a text, with the delimiter that its first line has most often. */
export function parse(text) {
  const end = text.search(/[\r\n]/);
  const first = end < 0 ? text : text.slice(0, end);
  const delimiter = DELIMITERS.reduce((best, one) => (first.split(one).length > first.split(best).length ? one : best));
  const records = [];
  let record = [];
  let at = 0;
  while (at < text.length) {
    let cell = "";
    if (text[at] === '"') {
      let from = at + 1;
      for (;;) {
        const quote = text.indexOf('"', from);
        if (quote < 0) throw new Error(`A quotation mark in record ${records.length + 1} has no end.`);
        cell += text.slice(from, quote);
        from = quote + 1;
        if (text[from] !== '"') break;
        cell += '"';
        from += 1;
      }
      at = from;
    }
    const from = at;
    while (at < text.length && text[at] !== delimiter && text[at] !== "\n" && text[at] !== "\r") at += 1;
    record.push(cell + text.slice(from, at));
    if (text[at] === delimiter) {
      at += 1;
      if (at < text.length) continue;
      record.push("");
    }
    if (text[at] === "\r" && text[at + 1] === "\n") at += 1;
    at += 1;
    if (record.length > 1 || record[0] !== "") records.push(record);
    record = [];
  }
  return records;
}

/** The records of JSON lines, below a first one with all names; null is an empty cell. */
export function parseLines(text) {
  const rows = text.split("\n").flatMap((line, place) => (line.trim() ? [parseLine(line, place + 1)] : []));
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return [names, ...rows.map((row) => names.map((name) => cellOf(row[name])))];
}

function parseLine(line, number) {
  let row;
  try {
    row = JSON.parse(line);
  } catch {
    row = null;
  }
  if (row === null || typeof row !== "object" || Array.isArray(row)) {
    throw new Error(`Line ${number} must be a JSON object, but is ${line.slice(0, 100)}`);
  }
  return row;
}

function cellOf(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Records as CSV with commas. */
export function format(records) {
  return `${records.map((record) => record.map(quoted).join(",")).join("\r\n")}\r\n`;
}

function quoted(cell) {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
