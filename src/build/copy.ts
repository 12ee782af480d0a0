import { posix } from "node:path";
import type { ContextEntry, SourceMatch } from "../context/entry.ts";
import { hashFiles } from "../context/hash.ts";
import { resolveSources } from "../context/sources.ts";
import type { AddInstruction, CopyInstruction, HereDocument } from "../dockerfile/instruction.ts";
import { expandHeredoc, expandWord, type Lookup } from "../dockerfile/words.ts";
import { BoughError } from "../errors.ts";
import { type Destination, placeEntry, resolveDestination, saysDirectory } from "./destination.ts";
import type { BuildJob } from "./job.ts";
import { titleOf } from "./location.ts";
import {
  defaultDirectoryMode,
  directoriesAbove,
  isRoot,
  leadsTo,
  stageDirectories,
} from "./made-directories.ts";
import { type ModeChange, parseMode } from "./mode.ts";
import { type Owner, resolveOwner } from "./ownership.ts";
import { stage as addToStaged, type StagedEntry } from "./staged.ts";
import { lookUp, type StageState } from "./state.ts";

/** COPY: the sources of the context, filtered and hashed, are staged for the next RUN. Nothing is uploaded yet. */
export async function performCopy(
  instruction: CopyInstruction,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  if (instruction.from !== undefined) {
    const message = `COPY --from=${instruction.from} is skipped: builds of several stages are not supported yet`;
    build.emit({ type: "warning", message, line: instruction.range.start });
    return stage;
  }
  return stageSources(instruction, stage, build, () => {
    throw new Error("COPY has no URLs");
  });
}

/** A URL's content, once it has been brought to the service. `name` is what a directory destination calls it. */
export interface FetchedSource {
  name: string;
  entry: Omit<Extract<StagedEntry, { type: "file" }>, "uid" | "gid">;
}

/** COPY and ADD alike: expands the words, finds the sources, and stages what they come to. */
export async function stageSources(
  instruction: CopyInstruction | AddInstruction,
  stage: StageState,
  build: BuildJob,
  fetchSource: (url: string) => Promise<FetchedSource>,
): Promise<StageState> {
  const { escape } = build.dockerfile;
  const lookup = lookUp(stage.env, stage.args, stage.inherited);
  const words = instruction.sources.flatMap((source) =>
    source.kind === "path" ? [expandWord(source.path, lookup, escape)] : [],
  );
  const destinationWord = expandWord(instruction.destination, lookup, escape);
  requireWords(words, destinationWord, instruction);

  const urls = instruction.name === "ADD" ? words.filter(isUrl) : [];
  const paths = words.filter((word) => !urls.includes(word));
  const matches = await findMatches(paths, instruction, lookup, build);
  const documents = instruction.sources.flatMap((source) =>
    source.kind === "heredoc" ? [source.document] : [],
  );

  const destination = await resolveDestination(
    destinationWord,
    stage.workdir,
    stage.staged,
    {
      count: matches.length + urls.length + documents.length,
      anyDirectory: matches.some((match) => match.isDirectory),
    },
    (path) => build.facts.isDirectory(stage.layer.image, path),
  );
  const chown = instruction.chown === undefined ? "" : expandWord(instruction.chown, lookup, escape);
  const owner = chown === "" ? { uid: 0, gid: 0 } : await resolveOwner(chown, stage.layer.image, build);
  const chmod = instruction.chmod === undefined ? "" : expandWord(instruction.chmod, lookup, escape);
  const change: ModeChange = chmod === "" ? (mode) => mode : parseMode(chmod);

  const hashes = await hashMatches(matches, build);
  const place = destination.isDirectory ? destination.path : posix.dirname(destination.path);
  const isIntoExisting =
    (!isRoot(owner) || matches.some(hasDirectories)) &&
    (await build.facts.isDirectory(stage.layer.image, place));
  /** Of a directory source; Docker copies its contents, not itself. */
  const tops: string[] = [];
  const additions: [string, StagedEntry][] = [];
  for (const match of matches) {
    for (const entry of match.entries) {
      const path = placeEntry(destination, match, entry.relativePath);
      if (path === "/") continue;
      if (entry.relativePath === "") tops.push(path);
      else {
        const mayBeThere =
          entry.type === "directory" &&
          (stage.staged.has(path) || (isIntoExisting && (await isTopInImage(path, place, stage, build))));
        additions.push([path, stageEntry(entry, hashes, owner, change, mayBeThere)]);
      }
    }
  }
  for (const document of documents)
    additions.push(stageDocument(document, destination, owner, change, lookup, escape));
  for (const url of urls) {
    const { name, entry } = await fetchSource(url);
    const path = destination.isDirectory ? join(destination, name, url) : destination.path;
    additions.push([path, { ...entry, ...owner, mode: change(entry.mode, false) }]);
  }

  const files = additions.flatMap(([, entry]) => (entry.type === "file" ? [entry] : []));
  build.emit({
    type: "staged",
    title: titleOf(instruction),
    files: files.length,
    bytes: files.reduce((sum, { size }) => sum + size, 0),
  });
  const made = directoriesToMake(tops, additions, owner).filter(
    (path) => !(isIntoExisting && leadsTo(path, place)),
  );
  const directories = stageDirectories(made, owner, stage);
  return { ...stage, staged: addToStaged(stage.staged, [...directories, ...additions]) };
}

/** Root's parents of a file need no mention: the service makes them. */
function directoriesToMake(
  tops: readonly string[],
  additions: readonly [string, StagedEntry][],
  owner: Owner,
): string[] {
  if (isRoot(owner)) return [...tops];
  return [
    ...tops.flatMap((path) => [...directoriesAbove(path), path]),
    ...additions.flatMap(([path]) => directoriesAbove(path)),
  ];
}

/** Whether the image has the directory that is next below `place` on the way to `path`: else it lacks `path`, too. */
async function isTopInImage(
  path: string,
  place: string,
  { layer }: StageState,
  { facts }: BuildJob,
): Promise<boolean> {
  const [top = ""] = posix.relative(place, path).split("/");
  return facts.isDirectory(layer.image, posix.join(place, top));
}

function hasDirectories({ entries }: SourceMatch): boolean {
  return entries.some(({ type, relativePath }) => type === "directory" && relativePath !== "");
}

export function isUrl(source: string): boolean {
  return /^https?:\/\//i.test(source);
}

async function findMatches(
  sources: readonly string[],
  instruction: CopyInstruction | AddInstruction,
  lookup: Lookup,
  build: BuildJob,
): Promise<readonly SourceMatch[]> {
  if (sources.length === 0) return [];
  const { matches, warnings } = await resolveSources({
    context: build.context,
    ignore: build.ignore,
    sources,
    exclude: instruction.exclude.map((pattern) => expandWord(pattern, lookup, build.dockerfile.escape)),
    parents: instruction.parents,
    signal: build.signal,
  });
  for (const { message } of warnings) build.emit({ type: "warning", message, line: instruction.range.start });
  return matches;
}

async function hashMatches(
  matches: readonly SourceMatch[],
  { emit, signal }: BuildJob,
): Promise<ReadonlyMap<string, string>> {
  const files = matches.flatMap(({ entries }) => entries.filter((entry) => entry.type === "file"));
  emit({ type: "hashing", files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) });
  return hashFiles(files, { signal, onProgress: (done) => emit({ type: "hashed", ...done }) });
}

function requireWords(
  sources: readonly string[],
  destination: string,
  { name, sources: written }: CopyInstruction | AddInstruction,
): void {
  if (destination === "" || sources.includes("")) {
    throw new BoughError(
      `${name}: a source or the destination comes to nothing once its variables are replaced`,
      {
        kind: "usage",
        hint: "Declare the variable with ARG or ENV before this line.",
      },
    );
  }
  if (written.length > 1 && !saysDirectory(destination)) {
    throw new BoughError(
      `${name} of several sources needs a directory as its destination: ${destination} does not end in a slash`,
      {
        kind: "usage",
        hint: `Write ${destination}/ instead.`,
      },
    );
  }
}

/** `mayBeThere`: a directory in the image may have another mode and owner. */
function stageEntry(
  entry: ContextEntry,
  hashes: ReadonlyMap<string, string>,
  owner: Owner,
  change: ModeChange,
  mayBeThere: boolean,
): StagedEntry {
  switch (entry.type) {
    case "symlink":
      return { type: "symlink", target: entry.target, ...owner };
    case "directory": {
      const mode = change(entry.mode, true);
      const isExplicit = mayBeThere || mode !== defaultDirectoryMode || !isRoot(owner);
      return { type: "directory", mode, isExplicit, ...owner };
    }
    case "file": {
      const sha256 = hashes.get(entry.absolutePath);
      if (sha256 === undefined) throw new Error(`no hash for ${entry.absolutePath}`);
      const content = { kind: "local", absolutePath: entry.absolutePath } as const;
      return { type: "file", sha256, size: entry.size, mode: change(entry.mode, false), content, ...owner };
    }
  }
}

function stageDocument(
  document: HereDocument,
  destination: Destination,
  owner: Owner,
  change: ModeChange,
  lookup: Lookup,
  escape: "\\" | "`",
): [string, StagedEntry] {
  const text = document.expand ? expandHeredoc(document.content, lookup, escape) : document.content;
  const bytes = new TextEncoder().encode(text);
  const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  const path = destination.isDirectory
    ? `${destination.path === "/" ? "" : destination.path}/${document.name}`
    : destination.path;
  return [
    path,
    {
      type: "file",
      sha256,
      size: bytes.length,
      mode: change(0o644, false),
      content: { kind: "text", text },
      ...owner,
    },
  ];
}

function join(destination: Destination, name: string, url: string): string {
  if (name === "") {
    throw new BoughError(`ADD ${url}: the address ends in no file name to give it in ${destination.path}`, {
      kind: "usage",
      hint: "Name the file in the destination.",
    });
  }
  return `${destination.path === "/" ? "" : destination.path}/${name}`;
}
