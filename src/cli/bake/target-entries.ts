import { parseGoBoolean } from "../../go/boolean.ts";
import { splitCsv, splitPair } from "../command-line/option-values.ts";
import { type FileLocation, locationError } from "./file-location.ts";

/** One output, cache, secret, attestation or SSH agent of a target. `paths` of `ssh` is a list, `disabled` of `attest` is true. */
export type TargetEntry = Readonly<Record<string, string | true | readonly string[]>>;

/** An entry of `secret`. */
export interface TargetSecret {
  readonly id?: string;
  readonly src?: string;
  readonly env?: string;
}

/** An entry of `ssh`. */
export interface TargetAgent {
  readonly id: string;
  readonly paths?: readonly string[];
}

type EntryField = "attest" | "cache-from" | "cache-to" | "output" | "secret" | "ssh";

/** Reads the entries of a field: each a text as on a command line of docker buildx, or an object with the same keys. */
export function readTargetEntries(
  field: string,
  values: readonly unknown[],
  location: FileLocation,
): TargetEntry[] {
  return values.flatMap((value, index): TargetEntry[] => {
    const at = { ...location, path: [...location.path, String(index)] };
    if (value === "") return [];
    if (typeof value === "string") return parseEntries(field as EntryField, value, at);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return [fromObject(field as EntryField, value as Record<string, unknown>, at)];
    throw locationError(at, "a string or an object is required");
  });
}

function parseEntries(field: EntryField, text: string, location: FileLocation): TargetEntry[] {
  if (field === "ssh") {
    const [id, paths] = splitPair(text);
    return [{ id, ...(paths === undefined ? {} : { paths: paths.split(",") }) }];
  }
  const words = splitCsv(text);
  const isCache = field === "cache-from" || field === "cache-to";
  if (isCache && !text.includes("=")) return words.map((ref) => ({ ref, type: "registry" }));
  if (field === "output" && words.length === 1 && !text.startsWith("type="))
    return [{ dest: text, type: text === "-" ? "tar" : "local" }];
  const pairs = words.map((word): [string, string] => {
    const [key, value] = splitPair(word);
    if (value === undefined)
      throw locationError(location, `invalid field ${JSON.stringify(word)}: KEY=VALUE is required`);
    const name = key.trim().toLowerCase();
    // Other names are passed to the attestation as they are, such as a scanner's variables.
    return [field !== "attest" || name === "type" || name === "disabled" ? name : key, value];
  });
  return [fromObject(field, Object.fromEntries(pairs), location)];
}

/** Checks an entry, and returns it with its keys in the order in which `--print` has them. */
function fromObject(field: EntryField, given: Record<string, unknown>, location: FileLocation): TargetEntry {
  if (field === "ssh") return agentFrom(given, location);
  const texts = Object.entries(given).map(([key, value]): [string, string] => {
    if (typeof value === "object" && value !== null)
      throw locationError(location, `${key}: a string is required`);
    return [key, String(value ?? "")];
  });
  const fields = Object.fromEntries(texts);
  if (field === "secret") return secretFrom(fields, location);
  if (!fields.type) throw locationError(location, "type is missing");
  const { disabled, ...others } = fields;
  if (field === "attest" && disabled !== undefined && parseGoBoolean(disabled) === undefined)
    throw locationError(location, `disabled: true or false is required, not ${JSON.stringify(disabled)}`);
  const kept: Record<string, unknown> =
    field !== "attest" || disabled === undefined
      ? fields
      : { ...others, ...(parseGoBoolean(disabled) === true && { disabled: true }) };
  return Object.fromEntries(
    Object.entries(kept).sort(([one], [other]) => (one < other ? -1 : 1)),
  ) as TargetEntry;
}

function agentFrom(given: Record<string, unknown>, location: FileLocation): TargetEntry {
  const { id = "default", paths = [], ...others } = given;
  const isValid =
    typeof id === "string" && Array.isArray(paths) && paths.every((path) => typeof path === "string");
  const [unknown] = Object.keys(others);
  if (!isValid || unknown !== undefined)
    throw locationError(
      location,
      `an SSH agent has id and paths${unknown === undefined ? "" : `, not ${unknown}`}`,
    );
  // Written as a text, the rest of the id would be read as the path of a socket.
  if (id.includes("=")) throw locationError(location, `invalid id ${JSON.stringify(id)}`);
  return { id, ...(paths.length === 0 ? {} : { paths }) };
}

const secretKeys: ReadonlySet<string> = new Set(["id", "src", "source", "env", "type"]);

function secretFrom(fields: Readonly<Record<string, string>>, location: FileLocation): TargetEntry {
  const unknown = Object.keys(fields).find((key) => !secretKeys.has(key));
  if (unknown !== undefined) throw locationError(location, `unexpected key ${JSON.stringify(unknown)}`);
  const { id = "", source, src = source, type, env } = fields;
  if (type !== undefined && type !== "file" && type !== "env")
    throw locationError(location, `unsupported secret type ${JSON.stringify(type)}`);
  const variable = type === "env" ? (env ?? src) : env;
  const file = type === "env" && env === undefined ? undefined : src;
  return { ...(id && { id }), ...(file && { src: file }), ...(variable && { env: variable }) };
}

/** Returns the fields of an entry as texts. */
export function entryFields(entry: TargetEntry): Map<string, string> {
  return new Map(Object.entries(entry).map(([key, value]) => [key, String(value)]));
}

/** Writes an entry as the value of an option of `bough build`. */
export function entryText(entry: TargetEntry): string {
  return Object.entries(entry)
    .map(([key, value]) => {
      const pair = `${key}=${value}`;
      return /[",]/.test(pair) ? `"${pair.replaceAll('"', '""')}"` : pair;
    })
    .join(",");
}

/** True for an output that goes to a registry. */
export function isPush({ type, push }: TargetEntry): boolean {
  return type === "registry" || (type === "image" && parseGoBoolean(String(push)) === true);
}
