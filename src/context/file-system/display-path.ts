import { isAbsolute, relative, sep } from "node:path";

/**
 * Returns a path in a form that is safe in a message: quoted and escaped if it has invisible characters or ones that a terminal
 * interprets.
 */
export function displayPath(path: string): string {
  if (!/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|^\s|\s$|^$/u.test(path)) return path;
  const escaped = path.replace(/["\\\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    switch (character) {
      case "\n":
        return "\\n";
      case "\t":
        return "\\t";
      case "\r":
        return "\\r";
      case '"':
      case "\\":
        return `\\${character}`;
      default:
        return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
    }
  });
  return `"${escaped}"`;
}

/** Returns a path relative to a directory, with slashes as in a Dockerfile; `undefined` if it is outside. */
export function pathWithin(directory: string, path: string): string | undefined {
  const within = relative(directory, path).replaceAll(sep, "/");
  return within === ".." || within.startsWith("../") || isAbsolute(within) ? undefined : within;
}
