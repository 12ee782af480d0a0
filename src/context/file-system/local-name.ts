import { readdirSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { displayPath } from "./display-path.ts";

/**
 * Checks the names of a path, from an image, an archive or a repository, before something is written by it to this machine. Each has
 * to be the name of a file: Windows understands many as another path, a device or another file.
 *
 * @param advice what to do instead
 * @throws BoughError that names the path
 */
export function checkLocalNames(names: readonly string[], platform: NodeJS.Platform, advice: string): void {
  for (const name of names) {
    const reason = invalidReason(name, platform);
    if (reason !== undefined)
      throw new BoughError(`${displayPath(names.join("/"))} can't be written to this machine: ${reason}`, {
        hint: advice,
      });
  }
}

/** Returns the error for a path whose name the file system takes for that of another file. */
export function nameCollision(path: string, advice: string): BoughError {
  return new BoughError(
    `${displayPath(path)} can't be written to this machine: a file whose name differs only in case or in the form of accents exists, and this file system takes both for one name`,
    { hint: advice },
  );
}

/** Returns a function that is true for a path that exists, although its directory lists it under another name. */
export function createSpellingCheck(): (path: string) => boolean {
  let known = { directory: "", names: new Set<string>() };
  return (path) => {
    const end = path.lastIndexOf("/");
    const directory = path.slice(0, end);
    const name = path.slice(end + 1);
    if (known.directory === directory && known.names.has(name)) return false;
    known = { directory, names: new Set(readdirSync(directory)) };
    return !known.names.has(name);
  };
}

function invalidReason(name: string, platform: NodeJS.Platform): string | undefined {
  if (["", ".", ".."].includes(name) || /[/\0]/.test(name))
    return `${displayPath(name)} is not the name of a file`;
  return platform === "win32" && notOnWindows.test(name)
    ? `${displayPath(name)} can't be the name of a file on Windows`
    : undefined;
}

/**
 * Characters that are special in Windows paths and patterns, names of its devices, with any ending, and endings that it drops.
 * https://learn.microsoft.com/windows/win32/fileio/naming-a-file
 */
const notOnWindows =
  /[<>:"\\|?*\u0000-\u001f]|^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\.|$)|[. ]$/i;
