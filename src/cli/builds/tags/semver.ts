/** A version of https://semver.org, also with a `v` before it. */
export interface SemanticVersion {
  raw: string;
  /** Without the `v`, and without what follows a `+`. */
  version: string;
  major: string;
  minor: string;
  patch: string;
  /** Empty for a release. */
  prerelease: string;
  build: string;
}

const number = "(0|[1-9]\\d*)";
const word = "(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)";
const pattern = new RegExp(
  `^[v=\\s]*${number}\\.${number}\\.${number}(?:-(${word}(?:\\.${word})*))?(?:\\+([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?$`,
);

export function parseSemanticVersion(raw: string): SemanticVersion | undefined {
  const [whole, major = "", minor = "", patch = "", prerelease = "", build = ""] =
    pattern.exec(raw.trim()) ?? [];
  if (whole === undefined) return undefined;
  const version = `${major}.${minor}.${patch}${prerelease === "" ? "" : `-${prerelease}`}`;
  return { raw, version, major, minor, patch, prerelease, build };
}
