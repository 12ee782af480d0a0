import type { PlatformImage } from "../../builder/result.ts";
import type { Invocation } from "../command-line/command.ts";
import { type OptionsOf, valuesOf } from "../command-line/request.ts";
import type { FetchedContext } from "../contexts/fetched-context.ts";
import { type BuildEntries, type EntryOption, noEntries } from "../entries/build-entries.ts";
import type { KeyedBuild } from "./keys/keyed-build.ts";
import type { inputDefinitions } from "./options/input-definitions.ts";
import type { resultDefinitions } from "./options/result-definitions.ts";

/** What is built, and how: the values of the options of `bough build`. */
export interface BuildRequest extends BakedTarget {
  context: string;
  options: Omit<OptionsOf<typeof inputDefinitions & typeof resultDefinitions>, EntryOption>;
  entries?: Partial<BuildEntries>;
}

/** What `bough bake` adds to a command line. `inline`: a Dockerfile that is in no file; `name` tells it from others of the same context. */
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
export type BuildInvocation = Invocation & BakedTarget & { entries: BuildEntries };

export function invocationOf(
  { context, options, entries, ...baked }: BuildRequest,
  surroundings: Omit<Invocation, "values">,
): BuildInvocation {
  return {
    ...{ ...surroundings, ...baked },
    values: valuesOf(options, [context]),
    entries: { ...noEntries, ...entries },
  };
}
