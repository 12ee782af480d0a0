/** A record of a file with the number of its first line. */
interface CsvRecord {
  line: number;
  fields: string[];
}

const field = /"((?:[^"]|"")*)"|([^",\r\n][^,\r\n]*)?/y;
const mark = /,|\r\n|\n|\r|$/y;

/** Parses comma-separated values with quotes as in RFC 4180. Calls `refuse` with the line of a misplaced or unclosed quote. */
export function parseCsv(text: string, refuse: (line: number) => never): CsvRecord[] {
  const records: CsvRecord[] = [];
  let record: CsvRecord = { line: 1, fields: [] };
  for (let [at, line] = [text.startsWith("\uFEFF") ? 1 : 0, 1]; at < text.length; ) {
    field.lastIndex = at;
    const [whole = "", quoted, plain = ""] = field.exec(text) ?? [];
    at += whole.length;
    mark.lastIndex = at;
    const found = mark.exec(text)?.[0] ?? refuse(line);
    at += found.length;
    line += quoted?.match(/\n/g)?.length ?? 0;
    record.fields.push(quoted?.replaceAll('""', '"') ?? plain);
    // A comma at the end of the text has an empty field behind it.
    if (found === "," && at === text.length) record.fields.push("");
    if (found === "," && at < text.length) continue;
    line += 1;
    if (record.fields.length > 1 || record.fields[0] !== "") records.push(record);
    record = { line, fields: [] };
  }
  return records;
}
