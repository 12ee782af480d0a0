import { posix } from "node:path";
import { PersistentMap } from "../../persistent-map.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { InstanceEntry, InstanceFile } from "../../service/wire/file.ts";
import { quote } from "../commands/command.ts";
import { isRoot } from "../copy/ownership.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { isSuccess, requireSuccess } from "../operations/operation.ts";
import { runOperation } from "../operations/run-operation.ts";
import { scriptFields } from "../operations/script.ts";
import { findLinkedFiles, type LinkedFile, placeLinkedFiles } from "./hard-links.ts";
import { packImageFiles, unpackScript } from "./image-archive.ts";
import { lenderOf, lendStaged, type StagedLoan } from "./lending.ts";
import { lineNamedIn, PlacementError } from "./placement-error.ts";
import {
  type Staged,
  type StagedDirectory,
  type StagedEntry,
  type StagedSymlink,
  wireTime,
} from "./staged.ts";
import { uploadStaged } from "./upload.ts";

/** What the next operation starts from, and the files that it still has to be given. */
export interface Placement {
  image: string;
  files: Record<string, InstanceFile>;
  /** The service takes these itself; to be ended once the operation is over. */
  loan?: StagedLoan;
  /** Directories and links, where the service takes them with the request. */
  entries?: Record<string, InstanceEntry>;
}

/**
 * Uploads what is staged. The API puts regular files in place and makes their parents; symbolic links, hard
 * links, empty directories, and directories with an owner or mode of their own are made by one small operation before. `hash`: the
 * chain hash of the layer that comes of it.
 */
export async function placeStaged(hash: string, stage: StageState, build: BuildJob): Promise<Placement> {
  const lend = await lenderOf(stage.staged, build);
  if (lend !== undefined)
    return {
      image: stage.layer.image,
      files: {},
      entries: instanceEntries(stage.staged),
      loan: await lendStaged(stage.staged, lend, build),
    };
  const packed = await packImageFiles(stage, build);
  const staged =
    packed === undefined
      ? stage.staged
      : PersistentMap.of(stage.staged).without((path) => packed.paths.has(path));
  const ids = await uploadStaged(staged, build);
  const all = instanceFiles(staged, ids, await takesTimes(staged, build));
  const made = placementScript(staged);
  const found = findLinkedFiles(staged);
  const isMade =
    found.length > 0 && (await canLink(found, made !== "" || packed !== undefined, stage, build));
  const {
    originals,
    files,
    script: names,
  } = placeLinkedFiles(isMade ? found : [], all, `/.bough-${hash.slice(0, 16)}`);
  const unpacking = packed === undefined ? "" : unpackScript(packed.path);
  const script = `${made === "" && isMade ? prelude : made}${unpacking}${names}`;
  if (script === "") return { image: stage.layer.image, files };
  if (packed === undefined && !isMade && (await takesEntries(build)))
    return { image: stage.layer.image, files, entries: instanceEntries(staged) };

  const placed = { ...originals, ...(packed === undefined ? {} : { [packed.path]: packed.file }) };
  const outcome = await runOperation(
    {
      image: stage.layer.image,
      ...scriptFields(script, { files: placed }, build),
    },
    {
      key: placementKey(hash),
      title: "(makes the staged directories and links)",
      showsOutput: false,
    },
    build,
  );
  if (outcome.status === "SUCCESS" && !outcome.timedOut && !isSuccess(outcome))
    throw placementError(outcome, stage.staged);
  return { image: requireSuccess(outcome, build.timeoutSeconds), files };
}

/** False where the image has no shell: names of one file are then files of their own. */
async function canLink(
  [first]: readonly LinkedFile[],
  needsShell: boolean,
  { layer }: StageState,
  { facts, emit }: BuildJob,
): Promise<boolean> {
  if (needsShell || (await facts.isFile(layer.image, "/bin/sh"))) return true;
  const message = `the image has no shell, which it takes to make hard links: ${first?.paths.join(" and ")} are files of their own`;
  emit({ type: "warning", message, line: first?.file.line });
  return false;
}

/** A default build does not ask a service that told nothing of the image's configuration: it is spared one request a build. */
export async function takesEntries({ mode, service: { capabilities } }: BuildJob): Promise<boolean> {
  if (mode === "default" && !capabilities.has("config")) return false;
  return (await capabilities.extensions()).has("entries");
}

export function instanceEntries(staged: Staged): Record<string, InstanceEntry> {
  return Object.fromEntries(
    madeByScript(staged).map(([path, { uid, gid, ...entry }]): [string, InstanceEntry] => {
      if (entry.type === "symlink") return [path, { type: "symlink", target: entry.target, uid, gid }];
      if (entry.type === "file") throw new Error(`${path} is a file`);
      const mode = entry.isExplicit ? { mode: entry.mode.toString(8).padStart(4, "0") } : {};
      return [path, { type: "directory", ...mode, uid, gid }];
    }),
  );
}

function placementError(outcome: OperationOutcome, staged: Staged): PlacementError {
  const { exitCode, stdout, stderr, operation } = outcome;
  const [path, first] = madeByScript(staged)[0] ?? [];
  if (exitCode === exitCodeWithoutShell) {
    const link = first?.type === "symlink" ? "the symbolic link" : "the directory";
    const what = first === undefined ? "put the files that are copied in place" : `make ${link} ${path}`;
    return new PlacementError(`the image has no shell, which it takes to ${what}`, first?.line, {
      hint: "Start from an image with /bin/sh, or copy plain files alone, without --chown for their directories.",
    });
  }
  const reason = stderr.text.trim() || `exit code ${exitCode}`;
  return new PlacementError(
    `what is staged can't be put in place: ${reason} (operation ${operation})`,
    staged.get(stdout.text)?.line ?? lineNamedIn(reason, staged) ?? first?.line,
  );
}

/** The key of the operation that prepares the layer of this chain hash. */
export function placementKey(hash: string): string {
  return `place ${hash}`;
}

/** Shell commands for what the API cannot stage; empty where there is nothing of the kind. */
export function placementScript(staged: Staged): string {
  if (madeByScript(staged).length === 0) return "";
  const entries = [...staged].sort(([a], [b]) => (a < b ? -1 : 1));
  const directories = entries.flatMap(([path, entry]) =>
    entry.type === "directory" ? [{ ...entry, path }] : [],
  );
  const links = entries.flatMap(([path, entry]) => (entry.type === "symlink" ? [{ ...entry, path }] : []));
  return `${prelude}${[...directoryLines(directories), ...linkLines(links, directories), ""].join("\n")}`;
}

/** No command of the script can end it with this one: its own trap sees to that. */
const exitCodeWithoutShell = 127;

/**
 * What is in the way is found before anything is made. Then standard output is the path that can't be made, and standard
 * error the reason for a person.
 */
const prelude = `set -e
umask 022
trap 'code=$?; [ $code -ne 127 ] || code=1; exit $code' EXIT
stop() { printf %s "$path"; printf '%s\\n' "$1" >&2; exit 1; }
directories() {
  for path; do
    way=$path
    until [ -d "$way/" ]; do
      if [ -e "$way" ] || [ -L "$way" ]; then
        stop "cannot make the directory $path: $way in the image is not a directory"
      fi
      way=\${way%/*}
    done
  done
  mkdir -p "$@"
}
links() {
  for path; do
    if [ -d "$path" ] && [ ! -L "$path" ]; then
      stop "cannot make the link $path: there is a directory in the image"
    fi
  done
  rm -f "$@"
}
`;

type PlacedDirectory = StagedDirectory & { path: string };
type PlacedLink = StagedSymlink & { path: string };

const pathsPerCommand = 100;

/** All but files and the directories that come with what is in them, as the service makes parents. */
function madeByScript(staged: Staged): [string, StagedEntry][] {
  const parents = parentsOf(staged.keys());
  const made = staged.entries().filter(([path, entry]) => {
    if (entry.type !== "directory") return entry.type === "symlink";
    return entry.isExplicit || !isRoot(entry) || !parents.has(path);
  });
  return [...made];
}

/** A string for each directory, and not for each file of a large context. */
function parentsOf(paths: Iterable<string>): Set<string> {
  const parents = new Set<string>();
  let last: string | undefined;
  for (const path of paths) {
    const end = path.lastIndexOf("/");
    if (last !== undefined && end === last.length && path.startsWith(last)) continue;
    last = path.slice(0, end);
    parents.add(last === "" ? "/" : last);
  }
  return parents;
}

/** Writes lines from the top down, neighbours of one kind together. */
function directoryLines(directories: readonly PlacedDirectory[]): string[] {
  const groups: [PlacedDirectory, ...PlacedDirectory[]][] = [];
  for (const directory of directories) {
    const group = groups.at(-1);
    if (group !== undefined && isAlike(group[0], directory)) group.push(directory);
    else groups.push([directory]);
  }
  return groups.flatMap((group) => {
    const [{ isExplicit, uid, gid, mode }] = group;
    const paths = group.map(({ path }) => path);
    if (!isExplicit && !isRoot(group[0])) {
      return paths
        .map(quote)
        .map((path) => `[ -d ${path} ] || { directories ${path} && chown ${uid}:${gid} ${path}; }`);
    }
    const attributes = isExplicit ? [`chown ${uid}:${gid}`, `chmod ${mode.toString(8)}`] : [];
    return ["directories", ...attributes].flatMap((command) => commands(command, paths));
  });
}

function isAlike(one: StagedDirectory, other: StagedDirectory): boolean {
  return (
    one.isExplicit === other.isExplicit &&
    one.uid === other.uid &&
    one.gid === other.gid &&
    one.mode === other.mode
  );
}

function linkLines(links: readonly PlacedLink[], directories: readonly PlacedDirectory[]): string[] {
  const made = new Set(["/", ...directories.map(({ path }) => path)]);
  const parents = new Set(links.map(({ path }) => posix.dirname(path)).filter((path) => !made.has(path)));
  return [
    ...commands("directories", [...parents]),
    ...commands(
      "links",
      links.map(({ path }) => path),
    ),
    ...links.map(({ path, target }) => `ln -s -- ${quote(target)} ${quote(path)}`),
    ...links
      .filter((link) => !isRoot(link))
      .map(({ path, uid, gid }) => `chown -h ${uid}:${gid} ${quote(path)}`),
  ];
}

/** Each command is a process: as few as its arguments allow. */
function commands(command: string, paths: readonly string[]): string[] {
  const lines: string[] = [];
  for (let index = 0; index < paths.length; index += pathsPerCommand)
    lines.push(
      `${command} ${paths
        .slice(index, index + pathsPerCommand)
        .map(quote)
        .join(" ")}`,
    );
  return lines;
}

/** A service that told nothing of the image's configuration has no extensions to be asked for. */
export async function takesTimes(staged: Staged, { service: { capabilities } }: BuildJob): Promise<boolean> {
  if (staged.size === 0 || !capabilities.has("config")) return false;
  return (await capabilities.extensions()).has("file-times");
}

export function instanceFiles(
  staged: Staged,
  ids: ReadonlyMap<string, string>,
  takesTimes: boolean,
): Record<string, InstanceFile> {
  const files: Record<string, InstanceFile> = {};
  /** Files have but a few: one string for each. */
  const octals = new Map<number, string>();
  for (const [path, entry] of staged) {
    if (entry.type !== "file") continue;
    const uuid = ids.get(entry.sha256);
    if (uuid === undefined) throw new Error(`no file id for ${path}`);
    const mode = octals.get(entry.mode) ?? entry.mode.toString(8).padStart(4, "0");
    octals.set(entry.mode, mode);
    files[path] = { uuid, uid: entry.uid, gid: entry.gid, mode };
    const mtime = takesTimes ? wireTime(entry) : undefined;
    if (mtime !== undefined) files[path].mtime = mtime;
  }
  return files;
}
