import { posix } from "node:path";
import { quote } from "../../programs/quote.ts";
import { commandsFor } from "../commands/command.ts";
import { isRoot } from "../owners/ownership.ts";
import type { Owned, Staged, StagedDirectory, StagedEntry, StagedSymlink } from "../state/staged.ts";
import { hasNames } from "./named-owners.ts";
import { entriesToMake } from "./request-fields.ts";

/**
 * Returns shell commands for what the API can't stage, without the files of `placeNamedFiles`; empty if there is nothing of the
 * kind. Owners of the parent directories of files alone are not worth a command: they are set only by one that is run anyway.
 */
export function placementScript(staged: Staged): string {
  const replacing = [...staged].flatMap(([path, entry]) =>
    entry.type !== "directory" && entry.replaces ? [path] : [],
  );
  const owning = hasNames(staged) ? own : "";
  const needed = entriesToMake(staged, { withTimes: false }).some(([, entry]) => !isOwnedParent(entry));
  if (owning === "" && replacing.length === 0 && !needed) return "";
  const entries = [...staged].sort(([a], [b]) => (a < b ? -1 : 1));
  const directories = entries.flatMap(([path, entry]) =>
    entry.type === "directory" ? [{ ...entry, path }] : [],
  );
  const links = entries.flatMap(([path, entry]) => (entry.type === "symlink" ? [{ ...entry, path }] : []));
  const lines = [
    ...directoryLines(directories),
    ...commands("clear_directories", replacing),
    ...linkLines(links, directories),
  ];
  const replaces = staged.values().some((entry) => entry.replaces === true);
  return `${prelude}${owning}${replaces ? clearing : ""}${[...lines, ""].join("\n")}`;
}

/** Returns true for a parent directory of files that is made, with an owner, if the image lacks it. */
export function isOwnedParent(entry: StagedEntry): entry is StagedDirectory {
  return entry.type === "directory" && entry.isParentOnly === true && !entry.isExplicit && !isRoot(entry);
}

/** The exit code if there is no shell. The script itself never exits with it, because of its trap. */
export const exitCodeWithoutShell = 127;

/**
 * Finds obstacles before anything is made. Then standard output has the path that can't be made, and standard error the reason.
 */
export const prelude = `set -e
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

/** Standard error then has the reason that chown(1) gives. */
const own = `own() {
  owner=$1
  shift
  if ! chown -h -- "$owner" "$@"; then
    printf %s "$1"
    exit 1
  fi
}
`;

/** Functions that remove what an archive's entries replace. */
const clearing = `clear_others() {
  for path; do
    if [ -L "$path" ] || [ ! -d "$path" ]; then rm -f "$path"; fi
  done
}
clear_directories() {
  for path; do
    if [ -d "$path" ] && [ ! -L "$path" ]; then rm -rf "$path"; fi
  done
}
`;

type PlacedDirectory = StagedDirectory & { path: string };
type PlacedLink = StagedSymlink & { path: string };

/** Writes lines from the top down, and combines neighbours with equal attributes. */
function directoryLines(directories: readonly PlacedDirectory[]): string[] {
  const groups: [PlacedDirectory, ...PlacedDirectory[]][] = [];
  for (const directory of directories) {
    const group = groups.at(-1);
    if (group !== undefined && isAlike(group[0], directory)) group.push(directory);
    else groups.push([directory]);
  }
  return groups.flatMap((group) => {
    const [{ isExplicit, mode }] = group;
    const owning = ownerCommand(group[0]);
    const paths = group.map(({ path }) => path);
    if (!isExplicit && !isRoot(group[0])) {
      return paths
        .map(quote)
        .map((path) => `[ -d ${path} ] || { directories ${path} && ${owning} ${path}; }`);
    }
    const replacing = group.filter(({ replaces }) => replaces).map(({ path }) => path);
    const attributes = isExplicit ? [owning, `chmod ${mode.toString(8)}`] : [];
    return [
      ...commands("clear_others", replacing),
      ...["directories", ...attributes].flatMap((command) => commands(command, paths)),
    ];
  });
}

/** Returns a command that gives paths to an owner; a name may be unknown. */
function ownerCommand({ uid, gid, names }: Owned, ...options: string[]): string {
  return names === undefined ? ["chown", ...options, `${uid}:${gid}`].join(" ") : `own ${quote(names)}`;
}

function isAlike(one: StagedDirectory, other: StagedDirectory): boolean {
  return (
    one.isExplicit === other.isExplicit &&
    one.uid === other.uid &&
    one.gid === other.gid &&
    one.names === other.names &&
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
    ...links.filter((link) => !isRoot(link)).map((link) => `${ownerCommand(link, "-h")} ${quote(link.path)}`),
  ];
}

function commands(command: string, paths: readonly string[]): string[] {
  return commandsFor((some) => `${command} ${some}`, paths);
}
