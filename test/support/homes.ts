import { existsSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { basename, dirname } from "node:path";

/**
 * Removes a directory with the state of engines below it, and the control groups that killed engines have recorded there,
 * because no next engine will remove them.
 */
export function removeHome(directory: string): void {
  if (!existsSync(directory)) return;
  for (const note of notesBelow(directory)) {
    const name = basename(dirname(note));
    for (const group of groupsOf(note)) if (basename(group) === name) removeGroup(group);
  }
  rmSync(directory, { recursive: true, force: true });
}

function notesBelow(directory: string): string[] {
  const isLarge = ["-type", "d", "(", "-name", "layers", "-o", "-name", "blobs", ")"];
  const isNote = ["-path", "*/containers/*/state.json"];
  const found = Bun.spawnSync(["find", directory, ...isLarge, "-prune", "-o", ...isNote, "-print"]);
  return found.stdout.toString().split("\n").filter(Boolean);
}

function groupsOf(note: string): string[] {
  try {
    return Object.values((JSON.parse(readFileSync(note, "utf8")) as { cgroup_paths: object }).cgroup_paths);
  } catch {
    // A killed engine may have left the file incomplete.
    return [];
  }
}

/** Removes a control group. Its processes end within some milliseconds after the engine was killed. */
function removeGroup(directory: string): void {
  for (let attempt = 0; attempt < 400 && existsSync(directory); attempt++) {
    try {
      rmdirSync(directory);
    } catch {
      Bun.sleepSync(5);
    }
  }
}
