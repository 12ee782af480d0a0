/** `--var-file NAME=FILE`: reads variables of bake files, such as those of a matrix, from JSON, JSON lines or CSV. */
import { resolve } from "node:path";
import { BoughError, usageError } from "../../../errors.ts";
import { HclError } from "../../../hcl/hcl-error.ts";
import { type JsonNode, parseJsonText } from "../../../hcl/values/json-text.ts";
import { utf8Text } from "../../../open-for-reading.ts";
import { reasonOf } from "../../../system-error.ts";
import type { Runtime } from "../../process/runtime.ts";
import { parseCsv } from "./csv.ts";

/** The maximum size of a file. */
const maxBytes = 64 * 1024 * 1024;

export interface VariableFiles {
  values: ReadonlyMap<string, JsonNode>;
  files: readonly string[];
}

/** Reads the files. Throws a usage BoughError for one that can't be read. */
export async function readVariableFiles(
  given: readonly string[],
  { inputs, signal, workingDirectory }: Pick<Runtime, "inputs" | "signal" | "workingDirectory">,
): Promise<VariableFiles> {
  const values = new Map<string, JsonNode>();
  const files: string[] = [];
  for (const option of given) {
    const [, name, file] = /^([^=]+)=(.+)$/s.exec(option) ?? [];
    if (name === undefined || file === undefined)
      throw usageError(
        `--var-file takes NAME=FILE, not ${JSON.stringify(option)}`,
        "For example: --var-file rows=instances.csv",
      );
    try {
      const path = file === "-" ? file : resolve(workingDirectory, file);
      const text = utf8Text(await inputs.read(path, { maxBytes, signal }));
      values.set(name, valueOf(file, text));
    } catch (error) {
      signal.throwIfAborted();
      const message = error instanceof HclError ? error.message : reasonOf(error);
      throw new BoughError(`--var-file ${option}: ${message}`, { kind: "usage", cause: error });
    }
    files.push(file);
  }
  return { values, files };
}

/** Parses a file by its extension: CSV and JSON lines become lists of objects. */
function valueOf(file: string, text: string): JsonNode {
  if (/\.csv$/i.test(file)) return recordsOf(text);
  if (/\.(jsonl|ndjson)$/i.test(file)) return linesOf(text);
  try {
    return parseJsonText(text);
  } catch (error) {
    // The name of a pipe does not tell the format.
    if (!/\.json$/i.test(file) && /^\s*[{[].*[}\]]\s*\n\s*[{[]/.test(text)) return linesOf(text);
    if (!(error instanceof HclError) || /\.json$/i.test(file)) throw error;
    throw new HclError(`${error.message} (without a name in .csv or .jsonl it is read as JSON)`);
  }
}

function linesOf(text: string): JsonNode {
  return text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .flatMap((line, at) => {
      if (line.trim() === "") return [];
      try {
        return [parseJsonText(line)];
      } catch (error) {
        if (!(error instanceof HclError)) throw error;
        throw new HclError(`line ${at + 1}: ${error.message}`);
      }
    });
}

/** Returns an object for each record after the first one, which names the columns. */
function recordsOf(text: string): JsonNode {
  const [header, ...records] = parseCsv(text, (line) => {
    throw new HclError(`line ${line}: a quote is not where a field begins or ends`);
  });
  if (header === undefined) throw new HclError("it is empty: the first line names the columns");
  const repeated = header.fields.find((name, at) => header.fields.indexOf(name) !== at);
  if (repeated !== undefined)
    throw new HclError(`line ${header.line} has two columns ${JSON.stringify(repeated)}`);
  return records.map(({ line, fields }) => {
    if (fields.length !== header.fields.length)
      throw new HclError(
        `line ${line} has ${fields.length} fields, and the first line ${header.fields.length}`,
      );
    return new Map(header.fields.map((name, at) => [name, fields[at] ?? ""]));
  });
}
