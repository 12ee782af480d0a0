/** Receives the external inputs of a build. The same input may be reported more than once. */
export interface InputObserver {
  image(reference: string, uuid: string): void;
  /** The URL has no credentials. */
  url(url: string, sha256: string): void;
  /** A commit of a git repository, whose address has no credentials. */
  repository(url: string, commit: { ref: string | undefined; commit: string }): void;
  /** A file of the context, by its path there. `context`: the name of a `--build-context`. */
  file(path: string, sha256: string, context?: string): void;
}
