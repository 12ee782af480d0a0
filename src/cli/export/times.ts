import { BoughError } from "../../errors.ts";
import type { Invocation } from "../command-line/command.ts";
import type { TimeOptions } from "./image-source.ts";

const variable = "SOURCE_DATE_EPOCH";

/** https://reproducible-builds.org/docs/source-date-epoch/ As in Docker, a build argument replaces the variable. */
export function sourceDateEpoch({
  values,
  runtime: { environment },
}: Pick<Invocation, "values" | "runtime">): string | undefined {
  const given = values.list("build-arg").findLast((text) => text.split("=")[0] === variable);
  const text = given?.includes("=") ? given.slice(variable.length + 1) : environment[variable];
  if (text === undefined || text === "") return undefined;
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
