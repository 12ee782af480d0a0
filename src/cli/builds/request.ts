import type { PlatformImage } from "../../builder/result.ts";
import type { Surroundings } from "../command-line/command.ts";
import type { FetchedContext } from "../contexts/fetched-context.ts";
import type { KeyedBuild } from "./keys/keyed-build.ts";
import type { BuildOptionValues } from "./options/build-parsers.ts";

/** What is built, and how. */
export interface BuildRequest extends BakedTarget {
  context: string;
  options: BuildOptionValues;
}

/** What `bough bake` adds. `inline`: a Dockerfile that is in no file; `name` tells it from others of the same context. */
export interface BakedTarget {
  /** The target's name. */
  target?: string;
  inline?: { text: string; name: string } | undefined;
  /** Images of other targets for several platforms, by the one that `--build-context` names. */
  linked?: ReadonlyMap<string, readonly PlatformImage[]> | undefined;
  /** Set if the content key of the build is known. */
  keyed?: KeyedBuild | undefined;
  /** CONTEXT, if it came with the bake file. */
  fetched?: FetchedContext | undefined;
}

/** The request of a build, with what a build needs beside it. */
export type BuildInvocation = BuildRequest & Surroundings;
