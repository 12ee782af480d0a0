import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { BoughError, usageError } from "../../errors.ts";
import type { Invocation } from "../command-line/command.ts";
import { readContextSource } from "../contexts/context-source.ts";
import type { TimeOptions } from "./image-source.ts";

const variable = "SOURCE_DATE_EPOCH";

/** https://reproducible-builds.org/docs/source-date-epoch/ As in Docker, a build argument replaces the variable. */
export function sourceDateEpoch({
  values,
  runtime: { environment, workingDirectory },
}: Pick<Invocation, "values" | "runtime">): string | undefined {
  const given = values.list("build-arg").findLast((text) => text.split("=")[0] === variable);
  const text = given?.includes("=") ? given.slice(variable.length + 1) : environment[variable];
  if (text === undefined || text === "") return undefined;
  // As in BuildKit, a directory has no time of its own.
  if (text === "context") {
    if (readContextSource(values.positionals[0] ?? ".", workingDirectory).kind === "directory")
      return undefined;
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

export function readTimes(
  rewritesTimestamps: boolean,
  invocation: Pick<Invocation, "values" | "runtime">,
): TimeOptions {
  const text = sourceDateEpoch(invocation);
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
