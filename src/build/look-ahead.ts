import type { Clock } from "../clock.ts";
import type { BuildContext } from "../context/build-context.ts";
import type { FileEntry } from "../context/entry.ts";
import type { IgnoreRules } from "../context/ignore.ts";
import { type ResolvedSources, resolveSources } from "../context/sources.ts";
import type { AddInstruction, CopyInstruction, Dockerfile } from "../dockerfile/instruction.ts";
import type { ContextHashes } from "../store/hashes.ts";
import { expandCopyWords } from "./copy-words.ts";
import { hashSources } from "./hash-sources.ts";

/** The sources of COPYs to come, found and hashed while the service is busy with what stands before them. */
export interface LookAhead {
  /** For the COPYs and ADDs from an instruction on, up to the next one that keeps the service busy. */
  begin(index: number): void;
  /**
   * What was found, or why nothing could be; `undefined` where that instruction was not looked at, or too long ago: what
   * was written to the context while a RUN went on is to be copied, too. The hashes are remembered in any case.
   */
  take(instruction: CopyInstruction | AddInstruction): Promise<FoundSources | undefined>;
  /** Resolves when nothing is read any more. */
  stop(): Promise<void>;
}

export interface FoundSources {
  sources: ResolvedSources;
  /** By absolute path. */
  hashes: ReadonlyMap<string, string>;
}

export interface LookAheadOptions {
  dockerfile: Dockerfile;
  context: BuildContext;
  ignore: IgnoreRules;
  hashes: ContextHashes;
  clock: Clock;
  signal: AbortSignal;
}

const freshMilliseconds = 2000;

export function createLookAhead(options: LookAheadOptions): LookAhead {
  const { dockerfile, context, ignore, hashes: cache, clock } = options;
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  const found = new Map<
    CopyInstruction | AddInstruction,
    { since: number; sources: Promise<FoundSources> }
  >();
  /** One at a time: there is one disk. Never rejects, and holds on to nothing that was found. */
  let last: Promise<void> = Promise.resolve();

  async function find(instruction: CopyInstruction | AddInstruction): Promise<FoundSources> {
    await last;
    // The request to the service goes first.
    await new Promise<void>((resolve) => setImmediate(resolve));
    const words = expandCopyWords(instruction, () => undefined, dockerfile.escape);
    const { paths: sources, exclude } = words;
    const { parents } = instruction;
    const resolved = await resolveSources({ context, ignore, sources, exclude, parents, signal });
    const hashes = await hashSources(filesOf(resolved), { signal, clock, cache });
    return { sources: resolved, hashes };
  }

  return {
    begin(index) {
      for (const instruction of dockerfile.instructions.slice(index)) {
        if (instruction.name === "FROM" || instruction.name === "RUN") return;
        if (instruction.name !== "COPY" && instruction.name !== "ADD") continue;
        if (found.has(instruction) || !isLiteral(instruction)) continue;
        const sources = find(instruction);
        // Whoever takes it hears of what went wrong.
        last = sources.then(
          () => undefined,
          () => undefined,
        );
        found.set(instruction, { since: clock.now(), sources });
      }
    },
    async take(instruction) {
      const taken = found.get(instruction);
      found.delete(instruction);
      if (taken === undefined) return undefined;
      const isFresh = clock.now() - taken.since < freshMilliseconds;
      return await (isFresh
        ? taken.sources
        : taken.sources.then(
            () => undefined,
            () => undefined,
          ));
    },
    async stop() {
      stopping.abort();
      await last;
    },
  };
}

/** Its words are known before the build gets there, and all sources are of the context. */
function isLiteral(instruction: CopyInstruction | AddInstruction): boolean {
  if (instruction.name === "COPY" && instruction.from !== undefined) return false;
  const { sources, exclude, destination, chmod = "", chown = "" } = instruction;
  const paths = sources.flatMap((source) => (source.kind === "path" ? [source.path] : []));
  const words = [...paths, ...exclude, destination, chmod, chown];
  return paths.length > 0 && !words.some((word) => word.includes("$")) && !paths.some(isUrl);
}

function isUrl(word: string): boolean {
  return /^[a-z]+:\/\//i.test(word);
}

function filesOf({ matches }: ResolvedSources): FileEntry[] {
  return matches.flatMap(({ entries }) => entries.filter((entry) => entry.type === "file"));
}
