import type { Tree } from "./tree.ts";

/** A builder of the comparison. */
export interface Builder {
  /** `source` in skopeo's terms, such as `oci:/layout:tag`; `name` as a FROM has it. */
  importBase(source: string, name: string): Promise<unknown>;
  /** Returns the image's id; rejects with the tool's output. */
  build(request: BuildRequest): Promise<string>;
  readImage(image: string): Promise<Tree>;
  /** Releases mounts and ends processes. */
  close(): Promise<void>;
}

export interface BuildRequest {
  context: string;
  dockerfile: string;
  ignoreFile: string | undefined;
  buildArgs: Readonly<Record<string, string>>;
  /** Further options of the command line. */
  options?: readonly string[];
}
