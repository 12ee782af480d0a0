import { compressions } from "../../image/compress.ts";
import type { Values } from "../command-line/arguments.ts";
import type { ArgumentDefinition, ArgumentDefinitions } from "../command-line/definitions.ts";
import { oneOf } from "../command-line/option-values.ts";

export const digestFileDefinition: ArgumentDefinition = {
  type: "string",
  refusesEmpty: true,
  completes: "file",
  synonyms: ["--digestfile"],
  valueHint: "PATH",
  description: "Write the digest of the image that is written or pushed",
};

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
  insecure: {
    type: "boolean",
    description: "Allow a registry without TLS, or with an unknown certificate",
  },
};

export function readCompression(values: Values) {
  return oneOf(values.text("compression") ?? "gzip", compressions, "--compression");
}
