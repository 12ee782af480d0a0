import { BoughError } from "../errors.ts";
import type { ImageService } from "./service.ts";

/** Returns the error for an option that the service does not support, but the engine does. */
export function unsupportedOption(option: string, { address }: Pick<ImageService, "address">): BoughError {
  return new BoughError(`${address} does not support ${option}`, {
    kind: "usage",
    hint: "Leave it out, or use bough's own engine (--local).",
  });
}
