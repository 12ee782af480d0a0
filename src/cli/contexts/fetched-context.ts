import type { FoundCommit } from "../../builder/repositories/repository-address.ts";
import type { BuildContext } from "../../context/build-context.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import type { DockerfileText } from "../builds/dockerfile-file.ts";
import type { HeldContext } from "./kept-contexts.ts";

/** A context that was fetched, on this machine's disk for as long as it is held. */
export interface FetchedContext {
  held: HeldContext;
  /** The directory with its files. */
  tree: string;
  /** What the build session is named for, as a directory's absolute path is. */
  place: string;
  /** What it is called in messages. */
  name: string;
  /** The address without ref and directory, as it may be shown; `-` for standard input. */
  shown: string;
  /** The commit, where the context is a git repository. */
  repository?: FoundCommit;
  /** The digest of an archive or Dockerfile, and the text of the latter, which comes without any files. */
  sha256?: string;
  dockerfile?: string;
}

/** A build context as it is on this machine, with what in it says how it is built. Disposed of when nothing reads it any more. */
export interface OpenedContext extends Disposable {
  context: BuildContext;
  /** What names the build session: the context's absolute path, or where it was fetched from. */
  place: string;
  /** Where the context came from, if it is not a directory of this machine. */
  fetched: FetchedContext | undefined;
  dockerfile: DockerfileText;
  ignore: IgnoreRules;
}
