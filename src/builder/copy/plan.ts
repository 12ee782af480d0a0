import { posix } from "node:path";
import type { BuildContext } from "../../context/build-context.ts";
import type { FileSystem } from "../../context/file-system/file-system.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import type { ContextWarning } from "../../context/sources/entry.ts";
import { findLargeContext, type LargeContext } from "../../context/sources/large-context.ts";
import type { SourceMatch } from "../../context/sources/source-match.ts";
import { type ResolvedSources, resolveSources } from "../../context/sources/sources.ts";
import type { AddInstruction, CopyInstruction, HereDocument } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandHeredoc, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import type { ModeChange } from "../../image/mode-change.ts";
import type { BuildMode } from "../job.ts";
import { redactUrl } from "../remote-files/source-url.ts";
import {
  type Destination,
  type DestinationPlace,
  type DestinationSources,
  resolveDestination,
} from "./destination.ts";
import { defaultDirectoryMode } from "./made-directories.ts";
import {
  type OtherItem,
  type PlannedDocument,
  PlannedItems,
  type PlannedRepository,
  type PlannedUrl,
} from "./planned-items.ts";
import { type CopyWords, isArchive, type RemoteSource } from "./words.ts";

/** What a COPY or ADD puts where, as far as that can be told without reading a file or fetching a URL. */
export interface CopyPlan {
  destination: Destination;
  /** Several sources go to a destination that is not a directory. */
  isOneFile: boolean;
  items: PlannedItems;
  warnings: readonly ContextWarning[];
  /** What default excludes left out, relative to the context; the most surprising first. */
  excluded: readonly string[];
  /** Docker's reason to refuse the instruction, where a warning will do by default. */
  refusal: BoughError | undefined;
  /** The context, where it is larger than was likely meant. */
  largeContext: LargeContext | undefined;
}

/** What a plan depends on beside the words. */
export interface PlanOptions extends DestinationPlace {
  mode: BuildMode;
  context: BuildContext;
  ignore: IgnoreRules;
  /** What the context is looked at through. */
  files: FileSystem;
  signal: AbortSignal;
  /** What the sources come to, where that is known already. */
  found?: ResolvedSources | undefined;
  lookup: Lookup;
  escape: EscapeCharacter;
}

const documentMode = 0o644;
/** Docker gives a file from a URL to its owner alone. */
const urlMode = 0o600;

/** Finds the sources of a COPY or ADD, and says where each goes. */
export async function planCopy(
  words: CopyWords,
  instruction: CopyInstruction | AddInstruction,
  options: PlanOptions,
): Promise<CopyPlan> {
  const { matches, counts, warnings, excluded, refusal } =
    options.found ??
    (words.paths.length === 0
      ? { matches: [], counts: [], warnings: [], excluded: [], refusal: undefined }
      : await resolveSources({
          context: options.context,
          ignore: options.ignore,
          files: options.files,
          sources: words.paths,
          exclude: words.exclude,
          parents: instruction.parents,
          signal: options.signal,
        }));
  const sources = destinationSources(matches, words, instruction, options.mode);
  const destination = await resolveDestination(words.destination, sources, options);
  const change = words.changeMode;
  const others = [
    ...words.remote.map((source): OtherItem => {
      const after = counts.slice(0, source.position).reduce((sum, count) => sum + count, 0);
      return { after, ...planRemote(source, destination, change) };
    }),
    ...words.documents.map(
      (document): OtherItem => ({
        after: matches.length,
        ...planDocument(document, destination, change, options),
      }),
    ),
  ];
  return {
    destination,
    isOneFile: sources.count > 1 && !destination.isDirectory,
    items: new PlannedItems(matches, others, { destination, change }),
    warnings,
    excluded,
    refusal,
    largeContext: findLargeContext(matches),
  };
}

/**
 * Sources go one after the other, as in BuildKit: what the first one makes, a directory or a file, is there for the next. By
 * default a single pattern that matches several files makes a directory.
 */
function destinationSources(
  matches: readonly SourceMatch[],
  { remote, documents }: CopyWords,
  { name, parents, sources }: CopyInstruction | AddInstruction,
  mode: BuildMode,
): DestinationSources {
  const count = matches.length + remote.length + documents.length;
  const isPattern = mode === "default" && sources.length === 1 && count > 1;
  const isUnpacked = name === "ADD" && matches.some(({ source }) => isArchive(source));
  const isDirectoryFirst =
    remote[0]?.position === 0 ? remote[0].kind === "repository" : matches[0]?.isDirectory === true;
  return { count, makesDirectory: parents || isPattern || (isUnpacked && count > 1) || isDirectoryFirst };
}

function planDocument(
  document: HereDocument,
  destination: Destination,
  change: ModeChange,
  { lookup, escape }: PlanOptions,
): PlannedDocument {
  const text = document.expand ? expandHeredoc(document.content, lookup, escape) : document.content;
  const path = placeName(destination, document.name);
  return { kind: "document", path, document, text, mode: change(documentMode, false) };
}

function planRemote(
  source: RemoteSource,
  destination: Destination,
  change: ModeChange,
): PlannedUrl | PlannedRepository {
  if (source.kind === "url") return planUrl(source.url, destination, change);
  const { path } = destination;
  return { kind: "repository", path, mode: defaultDirectoryMode, address: source.address };
}

function planUrl(url: string, destination: Destination, change: ModeChange): PlannedUrl {
  const name = fileName(url);
  if (destination.isDirectory && name === "") {
    throw new BoughError(
      `ADD ${redactUrl(url)}: the address ends in no file name to give it in ${destination.path}`,
      {
        kind: "usage",
        hint: "Name the file in the destination.",
      },
    );
  }
  return { kind: "url", path: placeName(destination, name), url, mode: change(urlMode, false) };
}

function placeName({ path, isDirectory }: Destination, name: string): string {
  return isDirectory ? posix.join(path, name) : path;
}

/** The last part of the address's path, decoded; empty where it ends in a slash. */
function fileName(url: string): string {
  const encoded = new URL(url).pathname.split("/").at(-1) ?? "";
  try {
    const name = decodeURIComponent(encoded);
    return name.includes("/") || name === "." || name === ".." ? encoded : name;
  } catch {
    return encoded;
  }
}
