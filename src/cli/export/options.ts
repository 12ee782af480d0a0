import { compressions } from "../../image/compress.ts";
import type { Values } from "../command-line/arguments.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { oneOf } from "../command-line/option-values.ts";
import { credentialsDefinition, digestFileDefinition, registryOptions } from "./registry-options.ts";

/** Options of all commands that write images. */
export const exportOptions: ArgumentDefinitions = {
  "digest-file": digestFileDefinition,
  compression: {
    type: "string",
    completes: compressions,
    valueHint: "gzip|zstd|none",
    description: "How layers are compressed (default: gzip)",
  },
  "rewrite-timestamp": {
    type: "boolean",
    description: "Also limit the files' times to SOURCE_DATE_EPOCH",
  },
  insecure: { type: "boolean", description: "The same as --tls-verify=false" },
  ...registryOptions,
  creds: credentialsDefinition,
};

export function readCompression(values: Values) {
  return oneOf(values.text("compression") ?? "gzip", compressions, "--compression");
}
