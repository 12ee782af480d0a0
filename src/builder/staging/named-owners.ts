/** Files whose owners are names, which only the image itself can resolve: a script sets their owners. */
import { posix } from "node:path";
import { quote } from "../../programs/quote.ts";
import type { InstanceFile } from "../../service/wire/file.ts";
import { commandsFor } from "../commands/command.ts";
import type { Staged } from "../state/staged.ts";
import type { LinkPlacement } from "./hard-links.ts";

/** Returns true if an entry has an owner with a name. */
export function hasNames(staged: Staged): boolean {
  return staged.values().some(({ names }) => names !== undefined);
}

/**
 * Returns the requests' files and a script that ends with the owners. The script moves the files into place after it has made
 * their directories: a service that put them there itself would make the directories, too, for root. `place`: the beginning of
 * paths which no image has.
 */
export function placeNamedFiles(
  staged: Staged,
  placed: Readonly<Record<string, InstanceFile>>,
  place: string,
): LinkPlacement {
  if (!hasNames(staged)) return { originals: {}, files: placed, script: "" };
  const files = { ...placed };
  const originals: Record<string, InstanceFile> = {};
  const byOwner = new Map<string, string[]>();
  const byDirectory = new Map<string, string[]>();
  const modes: string[] = [];
  const into = `${place}.named`;
  for (const [path, entry] of staged) {
    if (entry.type !== "file" || entry.names === undefined) continue;
    byOwner.getOrInsert(entry.names, []).push(path);
    // A change of the owner removes these bits.
    if (entry.mode > 0o1777) modes.push(`chmod ${entry.mode.toString(8)} ${quote(path)}`);
    const file = files[path];
    // A hard link is in place already.
    if (file === undefined) continue;
    byDirectory.getOrInsert(posix.dirname(path), []).push(path);
    originals[into + path] = file;
    delete files[path];
  }
  for (const table of ["/etc/passwd", "/etc/group"]) {
    const file = files[table];
    if (file !== undefined) originals[table] = file;
    delete files[table];
  }
  const moves = [...byDirectory].flatMap(([directory, paths]) => [
    `directories ${quote(directory)}`,
    ...commandsFor(
      (some) => `mv -f ${some} ${quote(directory)}`,
      paths.map((path) => into + path),
    ),
  ]);
  const owners = [...byOwner].flatMap(([names, paths]) =>
    commandsFor((some) => `own ${quote(names)} ${some}`, paths),
  );
  return { originals, files, script: [...moves, `rm -rf ${into}`, ...owners, ...modes, ""].join("\n") };
}
