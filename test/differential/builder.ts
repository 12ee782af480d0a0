import type { Tree } from "./tree.ts";

/** Either side of the comparison. */
export interface Builder {
  /** `source` in skopeo's terms, such as `oci:/layout:tag`; `name` as a FROM has it. */
  importBase(source: string, name: string): Promise<unknown>;
  /** Answers the image's id; rejects with all that the tool said. */
  build(request: BuildRequest): Promise<string>;
  readImage(image: string): Promise<Tree>;
  /** Lets go of mounts and processes. */
  close(): Promise<void>;
}

export interface BuildRequest {
  context: string;
  dockerfile: string;
  ignoreFile: string | undefined;
  buildArgs: Readonly<Record<string, string>>;
  /** More of the command line. */
  options?: readonly string[];
}
