import { posix } from "node:path";
import type { BuildContext } from "../../context/build-context.ts";
import type { FileSystem } from "../../context/file-system/file-system.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import type { ContextWarning } from "../../context/sources/entry.ts";
import type { SourceMatch } from "../../context/sources/entry-list.ts";
import { findLargeContext, type LargeContext } from "../../context/sources/large-context.ts";
import { type ResolvedSources, resolveSources } from "../../context/sources/sources.ts";
import type { WhyLeftOut } from "../../context/sources/special-file.ts";
import type { AddInstruction, CopyInstruction, HereDocument } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandHeredoc, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { directoryMode, type ModeChange } from "../../image/file-mode.ts";
import { decodePercent, redactUrl } from "../addresses/source-url.ts";
import type { Dialect } from "../dialect.ts";
import {
  type CopyDestination,
  type DestinationPlace,
  type DestinationSources,
  resolveDestination,
} from "./destination.ts";
import {
  type OtherItem,
  type PlannedDocument,
  PlannedItems,
  type PlannedRepository,
  type PlannedUrl,
} from "./planned-items.ts";
import { type CopyWords, type FetchedCopySource, isArchive } from "./words.ts";

/** The paths that a COPY or ADD writes to, as far as they are known without reading a file or fetching a URL. */
export interface CopyPlan {
  destination: CopyDestination;
  /** True if several sources go to a destination that is not a directory. */
  isOneFile: boolean;
  items: PlannedItems;
  warnings: readonly ContextWarning[];
  /** Paths that default excludes left out, relative to the context, the most surprising first. */
  excluded: readonly string[];
  /** Docker's reason to refuse the instruction; by default it is only a warning. */
  refusal: BoughError | undefined;
  /** Set if the context is larger than the user probably meant, and an ignore file can change that. */
  largeContext: LargeContext | undefined;
}

/** Everything except the words that a plan depends on. */
export interface PlanOptions extends DestinationPlace {
  dialect: Dialect;
  context: BuildContext;
  ignore: IgnoreRules;
  /** The file system through which the context is read. */
  files: FileSystem;
  signal: AbortSignal;
  whyLeftOut: WhyLeftOut | undefined;
  /** The sources, if they have been found already. */
  found?: ResolvedSources | undefined;
  lookup: Lookup;
  escape: EscapeCharacter;
}

/** A COPY or ADD with its words and the plan of what goes where. */
export interface PlannedCopy {
  words: CopyWords;
  plan: CopyPlan;
  /** False if the destination depends on variables that only the image defines. */
  isDestinationKnown: boolean;
  /** True if the plan depends on files of the image. */
  dependsOnImage: boolean;
}

const documentMode = 0o644;
/** Docker makes a file from a URL accessible only to its owner. */
const urlMode = 0o600;

/** Finds the sources of a COPY or ADD and plans where each goes. */
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
          whyLeftOut: options.whyLeftOut,
          signal: options.signal,
        }));
  const sources = destinationSources(matches, words, instruction, options.dialect);
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
    // The warning advises rules for an ignore file, which such a context does not use.
    largeContext: options.context.isTakenWhole === true ? undefined : findLargeContext(matches),
  };
}

/**
 * Describes the sources for the destination. They are placed one after the other, as in BuildKit: the file or directory that the
 * first one makes exists for the next. By default a single pattern that matches several files makes a directory.
 */
function destinationSources(
  matches: readonly SourceMatch[],
  { remote, documents }: CopyWords,
  { name, parents, sources }: CopyInstruction | AddInstruction,
  dialect: Dialect,
): DestinationSources {
  const count = matches.length + remote.length + documents.length;
  const isPattern = !dialect.copiesAsBuildKit && sources.length === 1 && count > 1;
  const isUnpacked = name === "ADD" && matches.some(({ source }) => isArchive(source));
  const isDirectoryFirst =
    remote[0]?.position === 0 ? remote[0].kind === "repository" : matches[0]?.isDirectory === true;
  return { count, makesDirectory: parents || isPattern || (isUnpacked && count > 1) || isDirectoryFirst };
}

function planDocument(
  document: HereDocument,
  destination: CopyDestination,
  change: ModeChange,
  { lookup, escape }: PlanOptions,
): PlannedDocument {
  const text = document.expand ? expandHeredoc(document.content, lookup, escape) : document.content;
  const path = placeName(destination, document.name);
  return { kind: "document", path, document, text, mode: change(documentMode, false) };
}

function planRemote(
  source: FetchedCopySource,
  destination: CopyDestination,
  change: ModeChange,
): PlannedUrl | PlannedRepository {
  if (source.kind === "url") return planUrl(source.url, destination, change);
  const { path } = destination;
  return { kind: "repository", path, mode: directoryMode, address: source.address };
}

function planUrl(url: string, destination: CopyDestination, change: ModeChange): PlannedUrl {
  const name = fileName(url);
  if (destination.isDirectory && name === "") {
    throw new BoughError(
      `ADD ${redactUrl(url)}: the address has no file name to use in ${destination.path}`,
      {
        kind: "usage",
        hint: "Add a file name to the destination.",
      },
    );
  }
  return { kind: "url", path: placeName(destination, name), url, mode: change(urlMode, false) };
}

function placeName({ path, isDirectory }: CopyDestination, name: string): string {
  return isDirectory ? posix.join(path, name) : path;
}

/** Returns the last name in the address's path, decoded first, as Docker does; empty if there is none. */
function fileName(url: string): string {
  const name = posix.basename(decodePercent(new URL(url).pathname));
  return name === "." || name === ".." ? "" : name;
}
