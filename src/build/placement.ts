import { posix } from "node:path";
import type { InstanceFile } from "../service/types.ts";
import { quote } from "./command.ts";
import type { BuildJob } from "./job.ts";
import { requireSuccess, runOperation } from "./operation.ts";
import type { Staged, StagedEntry } from "./staged.ts";
import type { StageState } from "./state.ts";
import { uploadStaged } from "./upload.ts";

/** What the next operation starts from, and the files that it still has to be given. */
export interface Placement {
  image: string;
  files: Record<string, InstanceFile>;
}

/**
 * Uploads what is staged. The API puts regular files in place and makes their parents; symbolic links, empty
 * directories, and directories with an owner or mode of their own are made by one small operation before.
 */
export async function placeStaged(stage: StageState, build: BuildJob): Promise<Placement> {
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
      files,
      timeout: build.timeoutSeconds,
      disposable: false,
    },
    "sh -s (makes the staged directories and links)",
    build,
  );
  if (outcome.exitCode === 127) {
    const message =
      "the image has no shell, so empty directories, symbolic links and directory owners of COPY are left out";
    build.emit({ type: "warning", message, line: undefined });
    return { image: stage.layer.image, files };
  }
  return { image: requireSuccess(outcome, build.timeoutSeconds), files: {} };
}

/** Shell commands for what the API cannot stage; empty where there is nothing of the kind. */
export function placementScript(staged: Staged): string {
  const parents = new Set<string>();
  for (const path of staged.keys()) parents.add(posix.dirname(path));
  const lines = [...staged]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, entry]) => scriptLines(path, entry, parents));
  return lines.length === 0 ? "" : ["set -e", "umask 022", ...lines, ""].join("\n");
}

function scriptLines(path: string, entry: StagedEntry, parents: ReadonlySet<string>): string[] {
  const quoted = quote(path);
  const owner = `${entry.uid}:${entry.gid}`;
  switch (entry.type) {
    case "file":
      return [];
    case "directory":
      if (!entry.isExplicit) return parents.has(path) ? [] : [`mkdir -p ${quoted}`];
      return [`mkdir -p ${quoted}`, `chown ${owner} ${quoted}`, `chmod ${entry.mode.toString(8)} ${quoted}`];
    case "symlink":
      return [
        `mkdir -p ${quote(posix.dirname(path))}`,
        `rm -f ${quoted}`,
        `ln -s -- ${quote(entry.target)} ${quoted}`,
        ...(owner === "0:0" ? [] : [`chown -h ${owner} ${quoted}`]),
      ];
  }
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
