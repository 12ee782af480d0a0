import { BoughError } from "../../errors.ts";
import type { Runtime } from "../process/runtime.ts";
import type { TimeOptions } from "./image-source.ts";

/** https://reproducible-builds.org/docs/source-date-epoch/ */
export function readTimes(rewritesTimestamps: boolean, { environment }: Runtime): TimeOptions {
  const text = environment.SOURCE_DATE_EPOCH || undefined;
  if (text !== undefined && !/^\d{1,11}$/.test(text)) {
    throw new BoughError(`SOURCE_DATE_EPOCH must be seconds since 1970, not ${JSON.stringify(text)}`, {
      kind: "usage",
    });
  }
  if (rewritesTimestamps && text === undefined) {
    throw new BoughError("timestamps are rewritten to SOURCE_DATE_EPOCH, which is not set", {
      kind: "usage",
    });
  }
  return { epoch: text === undefined ? undefined : Number(text), rewritesTimestamps };
}
