import { type BoughError, usageError } from "../errors.ts";
import type { ImageService } from "./service.ts";

/** Returns the error for options that the service does not support, but the engine does. */
export function unsupportedOptions(
  options: readonly string[],
  { address }: Pick<ImageService, "address">,
  reason?: string,
): BoughError {
  const named = options.join(", ").replace(/, ([^,]*)$/, " and $1");
  const them = options.length === 1 ? "it" : "them";
  return usageError(
    `${address} does not support ${named}${reason === undefined ? "" : `: ${reason}`}`,
    `Leave ${them} out, or use bough's own engine (--local).`,
  );
}
