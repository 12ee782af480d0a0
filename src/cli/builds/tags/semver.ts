import type { Version } from "./version.ts";

const number = "(0|[1-9]\\d*)";
const word = "(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)";
const pattern = new RegExp(
  `^[v=\\s]*${number}\\.${number}\\.${number}(?:-(${word}(?:\\.${word})*))?(?:\\+([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?$`,
);

/** Parses a version of https://semver.org, also with a `v` before it. `version` is without that, and without what follows a `+`. */
export function parseSemanticVersion(raw: string): Version | undefined {
  const [whole, major = "", minor = "", patch = "", prerelease = "", build = ""] =
    pattern.exec(raw.trim()) ?? [];
  if (whole === undefined) return undefined;
  const version = `${major}.${minor}.${patch}${prerelease === "" ? "" : `-${prerelease}`}`;
  return { isRelease: prerelease === "", parts: { raw, version, major, minor, patch, prerelease, build } };
}
