/** A version that a tag of git names. */
export interface Version {
  /** False for what comes before or after a release: it must not become `1.2`. */
  isRelease: boolean;
  /** What patterns may name: `raw`, `version`, `major`, ... */
  parts: Readonly<Record<string, string>> & { version: string };
}
