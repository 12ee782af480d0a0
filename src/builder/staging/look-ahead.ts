import type { Clock } from "../../clock.ts";
import type { BuildContext } from "../../context/build-context.ts";
import type { FileSystem } from "../../context/file-system/file-system.ts";
import type { HashOptions } from "../../context/hashing/hash.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import { digestOfMatches } from "../../context/sources/source-match.ts";
import { type ResolvedSources, resolveSources } from "../../context/sources/sources.ts";
import type { AddInstruction, CopyInstruction, Dockerfile } from "../../dockerfile/instruction.ts";
import type { FileStates } from "../../store/file-states.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import { hashMatches } from "../copy/hash-sources.ts";
import { expandCopyWords } from "../copy/words.ts";
import type { InputObserver } from "../input-observer.ts";
import { isUrl } from "../remote-files/source-url.ts";
import type { EarlyUploads } from "./early-uploads.ts";

/** The sources of COPYs to come, found and hashed while the service is busy with what stands before them. */
export interface LookAhead {
  /** Begins with the COPYs and ADDs from an instruction on, up to the next one that keeps the service busy. */
  begin(index: number): void;
  /** What was found, or why nothing could be; `undefined` where that instruction was not looked at. */
  take(instruction: CopyInstruction | AddInstruction): Promise<FoundSources | undefined>;
  /** Resolves when nothing is read any more. */
  stop(): Promise<void>;
}

export interface FoundSources {
  /** `undefined` where that was too long ago: what was written to the context while a RUN went on is to be copied, too. */
  sources: ResolvedSources | undefined;
  /**
   * Resolves once entries have their hashes; with `undefined` where these have to be asked for (again), which takes no time for
   * files that have not changed.
   */
  hashes(onProgress: NonNullable<HashOptions["onProgress"]>): Promise<{ areSettled: boolean } | undefined>;
}

interface LookAheadOptions {
  /** The build's mode. */
  mode: "default" | "docker";
  dockerfile: Dockerfile;
  context: BuildContext;
  files: FileSystem;
  ignore: IgnoreRules;
  hashes: ContextHashes;
  fileStates: Pick<FileStates, "hasSources">;
  early: Pick<EarlyUploads, "offer" | "hashWhileSending" | "contents">;
  inputs?: InputObserver | undefined;
  clock: Clock;
  signal: AbortSignal;
}

interface Search {
  since: number;
  sources: Promise<ResolvedSources>;
  /** `undefined`: all files are in a state that is known, and may need no hashes. */
  hashes: Promise<{ areSettled: boolean } | undefined>;
  /** Tells that somebody waits for it. */
  onTaken(): void;
  /** Progress, for who waits for it. */
  onProgress?: HashOptions["onProgress"];
}

const freshMilliseconds = 2000;
/** What is found is kept until its COPY takes it: of a Dockerfile of thousands that would be memory without end. */
const maxAhead = 16;

export function createLookAhead(options: LookAheadOptions): LookAhead {
  const {
    mode,
    dockerfile,
    context,
    files,
    ignore,
    hashes: cache,
    fileStates,
    early,
    inputs,
    clock,
  } = options;
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  const searches = new Map<CopyInstruction | AddInstruction, Search>();
  /** Instructions in the order of the Dockerfile. */
  let waiting: Iterator<CopyInstruction | AddInstruction, undefined> = [].values();
  /** One at a time: there is one disk. Never rejects, and holds on to nothing that was found. */
  let last: Promise<void> = Promise.resolve();

  async function find(instruction: CopyInstruction | AddInstruction): Promise<ResolvedSources> {
    await last;
    // The request to the service goes first.
    await new Promise<void>((resolve) => setImmediate(resolve));
    const words = expandCopyWords(instruction, () => undefined, dockerfile.escape, mode);
    const { paths: sources, exclude } = words;
    const { parents } = instruction;
    return resolveSources({ context, files, ignore, sources, exclude, parents, signal });
  }

  function search(instruction: CopyInstruction | AddInstruction): Search {
    const sources = find(instruction);
    const { promise: taken, resolve: onTaken } = Promise.withResolvers<void>();
    const decided = Promise.race([taken, stopped]);
    const hashes = sources.then((resolved) =>
      fileStates.hasSources(digestOfMatches(resolved.matches))
        ? undefined
        : hashMatches(resolved.matches, {
            ...{ signal, clock, cache, early, decided, inputs },
            onProgress: (done) => begun.onProgress?.(done),
          }),
    );
    const begun: Search = { since: clock.now(), sources, hashes, onTaken };
    // Whoever takes it hears of what went wrong.
    last = settled(hashes);
    return begun;
  }

  function searchOn(): void {
    while (searches.size < maxAhead) {
      const { value: instruction } = waiting.next();
      if (instruction === undefined) return;
      searches.set(instruction, search(instruction));
    }
  }

  return {
    begin(index) {
      waiting = literalCopies(dockerfile, index, mode);
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

/** Those that can be looked at before the build gets there, up to the next instruction that keeps the service busy. */
function* literalCopies(
  { instructions }: Dockerfile,
  index: number,
  mode: LookAheadOptions["mode"],
): Generator<CopyInstruction | AddInstruction, undefined> {
  for (let at = index; at < instructions.length; at++) {
    const instruction = instructions[at];
    if (instruction?.name === "FROM" || instruction?.name === "RUN") return;
    if ((instruction?.name === "COPY" || instruction?.name === "ADD") && isLiteral(instruction, mode))
      yield instruction;
  }
}

function settled(promise: Promise<unknown>): Promise<void> {
  return promise.then(
    () => undefined,
    () => undefined,
  );
}

/** Its words are known before the build gets there, and all sources are of the context. */
function isLiteral(instruction: CopyInstruction | AddInstruction, mode: LookAheadOptions["mode"]): boolean {
  if (instruction.name === "COPY" && instruction.from !== undefined) return false;
  // The service gets what is in an archive that is unpacked.
  if (instruction.name === "ADD" && (instruction.unpack ?? mode === "docker")) return false;
  const { sources, exclude, destination, chmod = "", chown = "" } = instruction;
  const paths = sources.flatMap((source) => (source.kind === "path" ? [source.path] : []));
  const words = [...paths, ...exclude, destination, chmod, chown];
  return paths.length > 0 && !words.some((word) => word.includes("$")) && !paths.some(isUrl);
}
