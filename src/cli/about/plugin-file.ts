/** Installs bough in docker's directory of plug-ins: as a link, or on Windows, where not every user may make links, as a copy. */
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

/** The state of the plug-in's path. `foreign`: it has a file that `bough plugin install` has not made. */
export type PluginState =
  | { kind: "missing" }
  | { kind: "installed"; program: string; isCurrent: boolean }
  | { kind: "foreign" };

interface PluginFile {
  stateOf(path: string): PluginState;
  /** Installs the program as the plug-in. Fails if the path exists. */
  install(program: string, path: string): void;
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
    // The link may lead to a bough that has been removed since.
    return isCurrent || /^bough(-|$)/.test(basename(program))
      ? { kind: "installed", program, isCurrent }
      : { kind: "foreign" };
  },
  install: (program, path) => symlinkSync(program, path),
  remove: (path) => unlinkSync(path),
};

/** The name of a file beside the copy that records its source. Docker ignores names that do not begin with `docker-`. */
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
  install(program, path) {
    try {
      // Unlike a copy, a hard link takes no space.
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

/** Returns a text that changes when another file replaces this one; `undefined` if there is no file. */
function identify(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.size} ${stats.mtimeMs}`;
}
