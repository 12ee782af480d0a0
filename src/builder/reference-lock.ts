import { type BoughError, usageError } from "../errors.ts";
import { type Message, wording } from "../messages/wording.ts";
import type { FoundCommit } from "./addresses/repository-address.ts";

/** The values that a lock pins references to, by the kind of reference. */
export interface Pins {
  /** The digest that the registry has under the name: of an index, or of a manifest. */
  image: string;
  /** SHA-256 of the content, in hex. */
  url: string;
  git: FoundCommit;
}

/** The digests, hashes and commits that a build's content key was computed from. The build uses the same ones, so that its key is true. */
export interface KeyPins {
  images: ReadonlyMap<string, Pins["image"]>;
  urls: ReadonlyMap<string, Pins["url"]>;
  commits: ReadonlyMap<string, FoundCommit>;
}

/** The references of a build that mean the same each time (`--lock`). Names contain no secrets. */
export interface ReferenceLock {
  /** The file's path as given, for messages. */
  readonly path: string;
  /**
   * Returns what the lock has for a name. If it has nothing, or is to be updated, returns what `find` finds, which the lock has from
   * then on. Rejects if nothing may be added.
   */
  pin<Kind extends keyof Pins>(
    kind: Kind,
    name: string,
    find: () => Promise<Pins[Kind]>,
  ): Promise<Pins[Kind]>;
  /** Records a reference that can't be locked. */
  leaveOut(name: string): void;
  /** Returns the advice for a reference that is no longer what the lock has. */
  adviceFor(name: string): Message;
}

/** Returns the error of `--locked` for a reference without an entry. */
export function notLocked(name: string, path: string): BoughError {
  return usageError(
    `${name} is not in ${path}`,
    wording`${{ option: "locked" }} adds nothing to it. Build without ${{ option: "locked" }} where the lock may change, and commit it.`,
  );
}
