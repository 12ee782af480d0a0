import type { Clock } from "../../clock.ts";
import type { BuildContext } from "../../context/build-context.ts";
import type { FileSystem } from "../../context/file-system/file-system.ts";
import type { HashOptions } from "../../context/hashing/hash.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import { digestOfMatches } from "../../context/sources/entry-list.ts";
import { type ResolvedSources, resolveSources } from "../../context/sources/sources.ts";
import type { WhyLeftOut } from "../../context/sources/special-file.ts";
import type { AddInstruction, CopyInstruction, Dockerfile } from "../../dockerfile/instruction.ts";
import type { FileStates } from "../../store/file-states.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import { isUrl } from "../addresses/source-url.ts";
import type { InputObserver } from "../contexts/named-context.ts";
import { hashMatches } from "../copy/hash-sources.ts";
import { expandCopyWords } from "../copy/words.ts";
import type { Dialect } from "../dialect.ts";
import type { RunningBuild } from "../job.ts";
import type { EagerUploads, SmallContents, SourcePrefetch } from "../prefetch.ts";
import { createEagerUploads, noEagerUploads } from "../staging/eager-uploads.ts";
import { specialFilesOf } from "../staging/special-files.ts";

interface SourcePrefetchOptions {
  dialect: Dialect;
  dockerfile: Dockerfile;
  context: BuildContext;
  files: FileSystem;
  ignore: IgnoreRules;
  hashes: ContextHashes;
  fileStates: Pick<FileStates, "hasSources">;
  eagerUploads: Pick<EagerUploads, "offer" | "hashWhileSending" | "contents">;
  inputs?: InputObserver | undefined;
  whyLeftOut?: WhyLeftOut | undefined;
  clock: Clock;
  signal: AbortSignal;
}

interface Search {
  since: number;
  sources: Promise<ResolvedSources>;
  /** `undefined`: all files are in a known state and may need no hashes. */
  hashes: Promise<{ areSettled: boolean } | undefined>;
  /** Signals that a step waits for it. */
  onTaken(): void;
  /** Reports progress to the step that waits for it. */
  onProgress?: HashOptions["onProgress"];
}

const freshMilliseconds = 2000;
/** The maximum number of results kept until their COPY takes them: thousands would take too much memory. */
const maxPrefetched = 16;

export function createSourcePrefetch(options: SourcePrefetchOptions): SourcePrefetch {
  const {
    dialect,
    dockerfile,
    context,
    files,
    ignore,
    hashes: cache,
    fileStates,
    eagerUploads,
    inputs,
    whyLeftOut,
    clock,
  } = options;
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  const searches = new Map<CopyInstruction | AddInstruction, Search>();
  /** The next instructions, in the order of the Dockerfile. */
  let waiting: Iterator<CopyInstruction | AddInstruction, undefined> = [].values();
  /** Settles with the latest search. They run one at a time, as there is one disk. Never rejects, and keeps no results. */
  let last: Promise<void> = Promise.resolve();

  async function find(instruction: CopyInstruction | AddInstruction): Promise<ResolvedSources> {
    await last;
    // Lets the request to the service go first.
    await new Promise<void>((resolve) => setImmediate(resolve));
    const words = expandCopyWords(instruction, () => undefined, dockerfile.escape, dialect);
    const { paths: sources, exclude } = words;
    const { parents } = instruction;
    return resolveSources({ context, files, ignore, sources, exclude, parents, whyLeftOut, signal });
  }

  function search(instruction: CopyInstruction | AddInstruction): Search {
    const sources = find(instruction);
    const { promise: taken, resolve: onTaken } = Promise.withResolvers<void>();
    const decided = Promise.race([taken, stopped]);
    const hashes = sources.then((resolved) =>
      fileStates.hasSources(digestOfMatches(resolved.matches))
        ? undefined
        : hashMatches(resolved.matches, {
            ...{ signal, clock, cache, eagerUploads, decided, inputs },
            onProgress: (done) => begun.onProgress?.(done),
          }),
    );
    const begun: Search = { since: clock.now(), sources, hashes, onTaken };
    // The step that takes it gets the error.
    last = settled(hashes);
    return begun;
  }

  function searchOn(): void {
    while (searches.size < maxPrefetched) {
      const { value: instruction } = waiting.next();
      if (instruction === undefined) return;
      searches.set(instruction, search(instruction));
    }
  }

  return {
    begin(index) {
      waiting = literalCopies(dockerfile, index, dialect);
      searchOn();
    },
    async take(instruction) {
      const taken = searches.get(instruction);
      searches.delete(instruction);
      searchOn();
      taken?.onTaken();
      if (taken === undefined) return undefined;
      const isFresh = clock.now() - taken.since < freshMilliseconds;
      return {
        sources: isFresh ? await taken.sources : undefined,
        async hashes(onProgress) {
          taken.onProgress = onProgress;
          if (isFresh) return taken.hashes;
          await settled(taken.hashes);
          return undefined;
        },
      };
    },
    async stop() {
      stopping.abort();
      await last;
    },
  };
}

/** Yields the COPYs and ADDs that can be examined in advance, up to the next FROM or RUN. */
function* literalCopies(
  { instructions }: Dockerfile,
  index: number,
  dialect: Dialect,
): Generator<CopyInstruction | AddInstruction, undefined> {
  for (let at = index; at < instructions.length; at++) {
    const instruction = instructions[at];
    if (instruction?.name === "FROM" || instruction?.name === "RUN") return;
    if ((instruction?.name === "COPY" || instruction?.name === "ADD") && isLiteral(instruction, dialect))
      yield instruction;
  }
}

function settled(promise: Promise<unknown>): Promise<void> {
  return promise.then(
    () => undefined,
    () => undefined,
  );
}

/** Returns true if the words are known in advance and all sources are in the context. */
function isLiteral(instruction: CopyInstruction | AddInstruction, dialect: Dialect): boolean {
  if (instruction.name === "COPY" && instruction.from !== undefined) return false;
  // For an archive that is unpacked, its entries are sent instead.
  if (instruction.name === "ADD" && (instruction.unpack ?? dialect.unpacksArchives)) return false;
  const { sources, exclude, destination, chmod = "", chown = "" } = instruction;
  const paths = sources.flatMap((source) => (source.kind === "path" ? [source.path] : []));
  const words = [...paths, ...exclude, destination, chmod, chown];
  return paths.length > 0 && !words.some((word) => word.includes("$")) && !paths.some(isUrl);
}

/** The prefetching of a stage: finds, hashes and sends files in advance. */
export interface StagePrefetch {
  eagerUploads: EagerUploads;
  prefetch: SourcePrefetch;
  /** Resolves when nothing is being read or sent any more. */
  stop(): Promise<unknown>;
}

export function openPrefetch(
  { asked, services, source, inputs }: RunningBuild,
  contents: SmallContents,
): StagePrefetch {
  const { dialect, dockerfile } = asked;
  const { supports, service, store, clock, signal } = services;
  const eagerUploads = supports.isInThisProcess
    ? noEagerUploads
    : createEagerUploads({ service, uploads: store.uploads, contents, signal });
  const whyLeftOut = specialFilesOf(dialect, supports);
  const prefetch = createSourcePrefetch({
    ...source,
    dialect,
    dockerfile,
    eagerUploads,
    inputs,
    whyLeftOut,
    clock,
    signal,
  });
  return { eagerUploads, prefetch, stop: () => Promise.all([prefetch.stop(), eagerUploads.stop()]) };
}
