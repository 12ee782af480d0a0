import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Secret } from "../../secret.ts";

/** The values of `--secret` and `--ssh`, by id. They stay in memory: no record, hash or file contains any of them. */
export interface GivenSecrets {
  values: ReadonlyMap<string, Secret>;
  /** Paths of agents' sockets on this machine. */
  agents: ReadonlyMap<string, string>;
}

/** Returns secrets as variables with secret-looking names, for code that masks those. */
export function secretTexts({ values }: GivenSecrets): [name: string, value: string][] {
  const decoder = new TextDecoder();
  return values
    .values()
    .flatMap((value) => {
      const text = decoder.decode(value.reveal());
      return [text, text.trim()];
    })
    .map((text, index): [string, string] => [`SECRET_${index}`, text])
    .toArray();
}

export function missingSecret(type: "secret" | "ssh", id: string, given: readonly string[]): BoughError {
  const option = type === "secret" ? { option: "secret", value: `id=${id}` } : { option: "ssh", value: id };
  const meant = given.length === 0 ? "" : ` Given: ${given.join(", ")}.`;
  return new BoughError(`--mount=type=${type}: ${id} is required, but was not given`, {
    kind: "usage",
    hint: wording`Give it with ${option}.${meant}`,
  });
}
