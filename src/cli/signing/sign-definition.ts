/** The option that signs what is pushed. It is apart from the code that reads it, so that help need not load it. */
import type { ArgumentDefinition } from "../command-line/definitions.ts";

export const signFields = [
  "key",
  "token",
  "fulcio-url",
  "rekor-url",
  "timestamp-url",
  "tlog",
  "cosign-tag",
] as const;

export const signDefinition = {
  type: "string",
  refusesEmpty: true,
  optional: new RegExp(`^(keyless(,|$)|(${signFields.join("|")})=)`),
  completes: ["keyless", ...signFields.map((field) => `${field}=`)],
  valueHint: "[keyless|key=FILE]",
  description:
    "Sign what is pushed, as cosign does: by the identity token that a pipeline of GitHub or GitLab has, or by a key",
} as const satisfies ArgumentDefinition;
