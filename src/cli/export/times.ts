import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { BoughError, usageError } from "../../errors.ts";
import { readContextSource } from "../contexts/context-source.ts";
import type { Runtime } from "../process/runtime.ts";
import type { TimeOptions } from "./image-source.ts";

const variable = "SOURCE_DATE_EPOCH";

interface TimedBuild {
  /** CONTEXT. */
  context: string;
  options: { readonly "build-arg"?: ReadonlyMap<string, string> | undefined };
  runtime: Pick<Runtime, "environment" | "workingDirectory">;
}

/** https://reproducible-builds.org/docs/source-date-epoch/ As in Docker, a build argument replaces the variable. */
export function sourceDateEpoch({
  context,
  options,
  runtime: { environment, workingDirectory },
}: TimedBuild): string | undefined {
  const text = options["build-arg"]?.get(variable) ?? environment[variable];
  if (text === undefined || text === "") return undefined;
  // As in BuildKit, a directory has no time of its own.
  if (text === "context") {
    if (readContextSource(context, workingDirectory).kind === "directory") return undefined;
    throw usageError(
      `${variable}=context is not supported for a context that is fetched`,
      `Give the time of its commit: ${variable}=$(git log -1 --pretty=%ct)`,
    );
  }
  if (/^\d{1,11}$/.test(text)) return text;
  throw new BoughError(`${variable} must be seconds since 1970, not ${JSON.stringify(text)}`, {
    kind: "usage",
  });
}

export function readTimes(rewritesTimestamps: boolean, build: TimedBuild): TimeOptions {
  const text = sourceDateEpoch(build);
  if (rewritesTimestamps && text === undefined) {
    throw new BoughError("timestamps are rewritten to SOURCE_DATE_EPOCH, which is not set", {
      kind: "usage",
    });
  }
  return { epoch: text === undefined ? undefined : Number(text), rewritesTimestamps };
}

/** Returns the default of the Dockerfile's `ARG SOURCE_DATE_EPOCH=N` before the first FROM, which counts if nothing else is given. */
export function epochOf({ globals }: Pick<Dockerfile, "globals">): number | undefined {
  const value = globals
    .flatMap(({ declarations }) => declarations)
    .findLast(({ key }) => key === variable)?.value;
  return value !== undefined && /^\d{1,11}$/.test(value) ? Number(value) : undefined;
}
