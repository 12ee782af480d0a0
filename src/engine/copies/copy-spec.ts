import { posix } from "node:path";
import { excludeFilters, type Filter, includeFilters } from "../../context/patterns/filters.ts";
import { hasWildcard } from "../../context/patterns/glob.ts";
import { parseExcludeFlags } from "../../context/patterns/ignore.ts";
import type { Rule } from "../../context/patterns/rules.ts";
import { BoughError } from "../../errors.ts";
import { type ImageTree, type ResolvedSource, resolveCopySources } from "../../image/copy-sources.ts";
import { createdDirectoryMode, type ModeChange, parseMode } from "../../image/file-mode.ts";
import {
  asFields,
  optionalBoolean,
  optionalString,
  optionalStrings,
  type RequestFields,
  readString,
  refuse,
  refuseUnknownFields,
} from "../http/fields.ts";
import { RequestError } from "../http/responses.ts";
import { optionalId, refuseNul } from "../processes/exec-spec.ts";
import type { Path } from "../system/path.ts";
import type { Ids } from "./upper-tree.ts";

/** One `COPY --from`, validated. */
export interface ImageCopySpec extends Selection {
  /** The UUID of the image. */
  image: string;
  /** An absolute path; a slash at its end marks a directory. */
  destination: string;
  owner: Ids | undefined;
  changeMode: ModeChange | undefined;
  /** The mode of directories that the copy makes; `undefined` for the default. */
  directoryMode: number | undefined;
  /** The request's own fields, for the operation's record. */
  request: RequestFields;
}

const selectionFields = ["sources", "parents", "exclude"] as const;

/** Reads the field `copies` of a request. */
export function readCopies(value: unknown): ImageCopySpec[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) refuse("copies", "must be a list");
  return value.map((item: unknown, index) =>
    readCopy(asFields(item, `copies[${index}]`), `copies[${index}]`),
  );
}

function readCopy(fields: RequestFields, name: string): ImageCopySpec {
  const known = [...selectionFields, "image", "destination", "uid", "gid", "chmod"];
  refuseUnknownFields(fields, known, name);
  return within(name, () => {
    const destination = readString(fields, "destination");
    if (!destination.startsWith("/")) refuse("destination", "must be an absolute path");
    refuseNul("destination", [destination]);
    const uid = optionalId(fields, "uid");
    const gid = optionalId(fields, "gid");
    const chmod = optionalString(fields, "chmod");
    return {
      ...readSelection(fields),
      image: readString(fields, "image"),
      destination,
      // `--chown=5` sets the group to the user's ID.
      owner: uid === undefined && gid === undefined ? undefined : { uid: uid ?? 0, gid: gid ?? uid ?? 0 },
      changeMode: chmod === undefined ? undefined : parseMode(chmod),
      directoryMode: createdDirectoryMode(chmod ?? ""),
      request: fields,
    };
  });
}

/** Reads the body of `POST /v1/inspect/{image}/digest`. */
export function readSelectionBody(fields: RequestFields): Selection {
  refuseUnknownFields(fields, selectionFields);
  return within("", () => readSelection(fields));
}

/** Reads the selection of a copy or of `POST /v1/inspect/{image}/digest`. */
function readSelection(fields: RequestFields): Selection {
  const sources = optionalStrings(fields, "sources") ?? refuse("sources", "is missing");
  if (sources.length === 0) refuse("sources", "must not be empty");
  const exclude = optionalStrings(fields, "exclude") ?? [];
  refuseNul("sources", sources);
  refuseNul("exclude", exclude);
  return {
    sources,
    parents: optionalBoolean(fields, "parents") ?? false,
    exclude: parseExcludeFlags(exclude),
  };
}

/** Prefixes errors of a field or a pattern with the name of the field that contains it. */
function within<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    throw new RequestError(400, name === "" ? error.message : `${name}: ${error.message}`);
  }
}

/** The files of an image that a COPY names. */
export interface Selection {
  sources: readonly string[];
  /** `COPY --parents`: parent directories are copied too. */
  parents: boolean;
  exclude: readonly Rule[];
}

/** A source, and the filters for what is below it. */
export interface SelectedSource extends ResolvedSource {
  filters: readonly Filter[];
}

/**
 * Returns the sources that a selection names in an image.
 *
 * @throws BoughError if a word without a wildcard names nothing, or a pattern is invalid
 */
export async function selectSources(selection: Selection, tree: ImageTree): Promise<SelectedSource[]> {
  const filters = excludeFilters(selection.exclude);
  if (!selection.parents)
    return (await resolveCopySources(selection.sources, tree)).map((source) => ({ ...source, filters }));
  const selected: SelectedSource[] = [];
  for (const word of selection.sources) {
    const { base, below } = splitAtPivot(word);
    // A word without a wildcard must name something.
    if (!hasWildcard(base) && !hasWildcard(below)) await resolveCopySources([posix.join(base, below)], tree);
    const own = [...filters, ...includeFilters(below, JSON.stringify(word))];
    for (const source of await resolveCopySources([base], tree))
      if (source.type === "directory") selected.push({ ...source, filters: own });
  }
  return selected;
}

/** Splits a word of `--parents` at `/./`: the directories before it are not copied. */
function splitAtPivot(word: string): { base: string; below: string } {
  const pivot = word.indexOf("/./");
  const base = posix.join("/", pivot < 0 ? "" : word.slice(0, pivot));
  const below = posix.join("/", pivot < 0 ? word : word.slice(pivot + "/./".length));
  return { base, below: below.replace(/^\/|\/$/g, "") };
}

/** Returns a name as text for patterns. A name that is not UTF-8 is matched byte by byte. */
export function patternText(name: Path): string {
  return typeof name === "string" ? name : name.toString("latin1");
}
