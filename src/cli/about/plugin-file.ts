/** bough in docker's directory of plug-ins: a link to the program, or on Windows, where not every user may make links, a copy. */
import {
  copyFileSync,
  linkSync,
  lstatSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { readOptional } from "../../open-for-reading.ts";
import { parseRecord } from "../../service/http/json.ts";

/** What stands where the plug-in belongs. `foreign`: a file that `bough plugin install` has not made. */
export type State =
  | { kind: "missing" }
  | { kind: "installed"; program: string; isCurrent: boolean }
  | { kind: "foreign" };

interface PluginFile {
  stateOf(path: string): State;
  /** Nothing may be there. */
  put(program: string, path: string): void;
  remove(path: string): void;
}

export function pluginFile(platform: NodeJS.Platform): PluginFile {
  return platform === "win32" ? copied : linked;
}

const linked: PluginFile = {
  stateOf(path) {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return { kind: "missing" };
    if (!stats.isSymbolicLink()) return { kind: "foreign" };
    const program = resolve(dirname(path), readlinkSync(path));
    const isCurrent = program === process.execPath;
    // A bough that has gone since leaves its link behind.
    return isCurrent || /^bough(-|$)/.test(basename(program))
      ? { kind: "installed", program, isCurrent }
      : { kind: "foreign" };
  },
  put: (program, path) => symlinkSync(program, path),
  remove: (path) => unlinkSync(path),
};

/** A note beside the copy says what it was made of. Docker looks at names that begin with `docker-` only. */
const noteName = "bough-plugin.json";

const copied: PluginFile = {
  stateOf(path) {
    const found = identify(path);
    if (found === undefined) return { kind: "missing" };
    const { program, source, copy } = parseRecord(readOptional(notePath(path))) ?? {};
    if (typeof program !== "string" || copy !== found) return { kind: "foreign" };
    const isCurrent = program === process.execPath && source === identify(program);
    return { kind: "installed", program, isCurrent };
  },
  put(program, path) {
    try {
      // A second name of the same file takes no space.
      linkSync(program, path);
    } catch {
      copyFileSync(program, path);
    }
    const note = { program, source: identify(program), copy: identify(path) };
    writeFileSync(notePath(path), JSON.stringify(note));
  },
  remove(path) {
    unlinkSync(path);
    rmSync(notePath(path), { force: true });
  },
};

function notePath(path: string): string {
  return join(dirname(path), noteName);
}

/** Tells a file from another one that has replaced it. */
function identify(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.size} ${stats.mtimeMs}`;
}
