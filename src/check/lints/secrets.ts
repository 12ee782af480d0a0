import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { isSecretName } from "../../dockerfile/secrets.ts";
import { type Finding, warn } from "../finding.ts";

/** SecretsUsedInArgOrEnv. */
export function lintSecrets({ instructions }: Dockerfile): Finding[] {
  return instructions.flatMap((instruction) => {
    const pairs =
      instruction.name === "ARG"
        ? instruction.declarations
        : instruction.name === "ENV"
          ? instruction.pairs
          : [];
    return pairs
      .filter(({ key }) => isSecretName(key))
      .map(({ key }) => {
        const message = `Do not use ARG or ENV instructions for sensitive data (${instruction.name} "${key}")`;
        return warn("SecretsUsedInArgOrEnv", message, instruction);
      });
  });
}
