import { secretsAmong } from "../../dockerfile/secrets.ts";

/** A command as it is shown and kept: without the values of variables that are secrets, wherever they stand. */
export function hideSecrets(given: {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
}): { command: string; args: string[]; env: Record<string, string> } {
  const variables = Object.entries(given.env);
  const { has, mask } = secretsAmong(variables);
  return {
    command: mask(given.command),
    args: given.args.map(mask),
    env: Object.fromEntries(
      variables.map(([name, value]) => [name, has(name) ? maskValue(value, mask) : value]),
    ),
  };
}

/** Hides a secret whole, and of an address with a password in it the password alone. */
function maskValue(value: string, mask: (text: string) => string): string {
  const shown = mask(value);
  return shown === value ? "***" : shown;
}
