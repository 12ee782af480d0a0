import { parseGoBoolean } from "../../../go/boolean.ts";
import type { Runtime } from "../../process/runtime.ts";

interface MetadataOptions {
  /** `undefined` for none. */
  provenance: "min" | "max" | undefined;
  hasWarnings: boolean;
}

/** Reads buildx's variables. As in buildx, a word that it does not know is the default. */
export function readMetadataOptions({ environment }: Pick<Runtime, "environment">): MetadataOptions {
  const { BUILDX_METADATA_PROVENANCE: mode, BUILDX_METADATA_WARNINGS: warnings } = environment;
  const isOff = mode === "disabled" || parseGoBoolean(mode) === false;
  return {
    provenance: isOff ? undefined : mode === "max" ? "max" : "min",
    hasWarnings: parseGoBoolean(warnings) === true,
  };
}
