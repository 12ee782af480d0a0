/** Options of commands that use registries. The code that reads them is in another file, which help need not load. */

import type { ArgumentDefinition, ArgumentDefinitions } from "../command-line/definitions.ts";

export const registryOptions = {
  authfile: {
    type: "string",
    refusesEmpty: true,
    completes: "file",
    valueHint: "PATH",
    description: "Credentials for registries, as `docker login` writes them (default: those of this user)",
  },
  "tls-verify": {
    type: "string",
    refusesEmpty: true,
    optional: /^(true|false)$/,
    valueHint: "true|false",
    description: "false: allow a registry without TLS, or with an unknown certificate",
  },
  retry: {
    type: "string",
    synonyms: ["--retry-times", "--push-retry", "--image-download-retry"],
    valueHint: "N",
    description: "How often a failed transfer to or from a registry is tried again (default: 2)",
  },
} as const satisfies ArgumentDefinitions;

export const mirrorDefinition = {
  type: "string",
  refusesEmpty: true,
  multiple: true,
  valueHint: "HOST[:PORT]",
  description: "Fetch images of Docker Hub from a mirror, and from Docker Hub where it fails",
} as const satisfies ArgumentDefinition;

export const digestFileDefinition = {
  type: "string",
  refusesEmpty: true,
  completes: "file",
  synonyms: ["--digestfile"],
  valueHint: "PATH",
  description: "Write the digest of the image that is written or pushed",
} as const satisfies ArgumentDefinition;

export const credentialsDefinition: ArgumentDefinition = {
  type: "string",
  refusesEmpty: true,
  valueHint: "USER:PASSWORD",
  description: "Credentials for the registry; others on this machine can see them: prefer `docker login`",
};
