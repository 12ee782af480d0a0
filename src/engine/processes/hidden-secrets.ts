import { secretsAmong } from "../../dockerfile/secrets.ts";

/** Returns a command for display and records: without the values of secret variables, wherever they occur. */
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

/** Hides the whole value; of a URL that contains a password, only the password. */
function maskValue(value: string, mask: (text: string) => string): string {
  const shown = mask(value);
  return shown === value ? "***" : shown;
}
