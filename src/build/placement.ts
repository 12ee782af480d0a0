import { posix } from "node:path";
import type { InstanceFile } from "../service/types.ts";
import { quote } from "./command.ts";
import type { BuildJob } from "./job.ts";
import { requireSuccess } from "./operation.ts";
import { isRoot } from "./ownership.ts";
import { runOperation } from "./run-operation.ts";
import type { Staged, StagedDirectory, StagedSymlink } from "./staged.ts";
import type { StageState } from "./state.ts";
import { uploadStaged } from "./upload.ts";

/** What the next operation starts from, and the files that it still has to be given. */
export interface Placement {
  image: string;
  files: Record<string, InstanceFile>;
}

/**
 * Uploads what is staged. The API puts regular files in place and makes their parents; symbolic links, empty
 * directories, and directories with an owner or mode of their own are made by one small operation before. `hash`: the
 * chain hash of the layer that comes of it.
 */
export async function placeStaged(hash: string, stage: StageState, build: BuildJob): Promise<Placement> {
  const files = instanceFiles(stage.staged, await uploadStaged(stage.staged, build));
  const script = placementScript(stage.staged);
  if (script === "") return { image: stage.layer.image, files };

  const outcome = await runOperation(
    {
      image: stage.layer.image,
      command: "sh",
      args: ["-s"],
      shell: false,
      stdin: { value: Buffer.from(script).toString("base64"), encoding: "base64" },
      cwd: "/",
      files: {},
      timeout: build.timeoutSeconds,
      disposable: false,
    },
    { key: placementKey(hash), title: "sh -s (makes the staged directories and links)" },
    build,
  );
  if (outcome.exitCode === 127) {
    const message =
      "the image has no shell, so empty directories, symbolic links and directory owners of COPY are left out";
    build.emit({ type: "warning", message, line: undefined });
    return { image: stage.layer.image, files };
  }
  return { image: requireSuccess(outcome, build.timeoutSeconds), files };
}

/** Of the operation that prepares the layer of this chain hash. */
export function placementKey(hash: string): string {
  return `place ${hash}`;
}

/** Shell commands for what the API cannot stage; empty where there is nothing of the kind. */
export function placementScript(staged: Staged): string {
  const entries = [...staged].sort(([a], [b]) => (a < b ? -1 : 1));
  const directories = entries.flatMap(([path, entry]) =>
    entry.type === "directory" ? [{ ...entry, path }] : [],
  );
  const links = entries.flatMap(([path, entry]) => (entry.type === "symlink" ? [{ ...entry, path }] : []));
  const parents = new Set(entries.map(([path]) => posix.dirname(path)));
  if (links.length === 0 && directories.every((directory) => isMadeOnTheWay(directory, parents))) return "";
  return ["set -e", "umask 022", ...directoryLines(directories), ...linkLines(links, directories), ""].join(
    "\n",
  );
}

type PlacedDirectory = StagedDirectory & { path: string };
type PlacedLink = StagedSymlink & { path: string };

const pathsPerCommand = 100;

/** With what is in it, and as the service makes parents. */
function isMadeOnTheWay(directory: PlacedDirectory, parents: ReadonlySet<string>): boolean {
  return !directory.isExplicit && isRoot(directory) && parents.has(directory.path);
}

/** From the top down, neighbours of one kind together. */
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
        .map((path) => `[ -d ${path} ] || { mkdir ${path} && chown ${uid}:${gid} ${path}; }`);
    }
    const attributes = isExplicit ? [`chown ${uid}:${gid}`, `chmod ${mode.toString(8)}`] : [];
    return ["mkdir -p", ...attributes].flatMap((command) => commands(command, paths));
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
    ...commands("mkdir -p", [...parents]),
    ...commands(
      "rm -f",
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

function instanceFiles(staged: Staged, ids: ReadonlyMap<string, string>): Record<string, InstanceFile> {
  const files: Record<string, InstanceFile> = {};
  for (const [path, entry] of staged) {
    if (entry.type !== "file") continue;
    const uuid = ids.get(entry.sha256);
    if (uuid === undefined) throw new Error(`no file id for ${path}`);
    files[path] = { uuid, uid: entry.uid, gid: entry.gid, mode: entry.mode.toString(8).padStart(4, "0") };
  }
  return files;
}
