import { BoughError } from "../../errors.ts";

/** What `--secret` and `--ssh` give, by id. It is in memory alone: no record, no hash and no file has any of it. */
export interface GivenSecrets {
  values: ReadonlyMap<string, Uint8Array>;
  /** Paths of agents' sockets on this machine. */
  agents: ReadonlyMap<string, string>;
}

/** Returns secrets as variables with names of secrets, for what masks those. */
export function secretTexts({ values }: GivenSecrets): [name: string, value: string][] {
  const decoder = new TextDecoder();
  return values
    .values()
    .flatMap((value) => {
      const text = decoder.decode(value);
      return [text, text.trim()];
    })
    .map((text, index): [string, string] => [`SECRET_${index}`, text])
    .toArray();
}

export function missingSecret(type: "secret" | "ssh", id: string, given: readonly string[]): BoughError {
  const option = type === "secret" ? "--secret id=" : "--ssh ";
  const meant = given.length === 0 ? "" : ` Given: ${given.join(", ")}.`;
  return new BoughError(`--mount=type=${type}: ${id} is required, and was not given`, {
    kind: "usage",
    hint: `Give it by ${option}${id}.${meant}`,
  });
}
