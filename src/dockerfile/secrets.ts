import { maskSecrets } from "./mask.ts";
import { isSecretName } from "./secret-name.ts";

/** The secrets among a command's variables. */
export interface Secrets {
  /** True if a variable's value is a secret, contains one, or contains a URL with a password. */
  has(name: string): boolean;
  /** Masks secret values in a text, and everything else that looks like a secret. */
  mask(text: string): string;
}

/** Shorter values may be part of another text by chance. */
const minLength = 4;
/** Searching every text for more values would take too long: the whole text is masked then. */
const maxValues = 1000;

/** Returns the secrets among variables: values of variables with a secret's name, also as part of other values. */
export function secretsAmong(
  variables: Iterable<readonly [name: string, value: string | null | undefined]>,
): Secrets {
  const entries = [...variables].flatMap(([name, value]): [string, string][] =>
    value ? [[name, value]] : [],
  );
  const known = new Map(entries);
  const values = new Set(
    entries
      .filter(([name, value]) => value.length >= minLength && isSecretVariable(name))
      .flatMap(([, value]) => [value, quoted(value), encodeURIComponent(value.toWellFormed())]),
  );
  // One value may be part of another.
  const longestFirst = [...values].sort((one, other) => other.length - one.length);
  const mask = (text: string): string =>
    values.size > maxValues
      ? "***"
      : maskSecrets(longestFirst.reduce((masked, value) => masked.replaceAll(value, () => "***"), text));
  return {
    has(name) {
      const value = known.get(name);
      return value !== undefined && (isSecretVariable(name) || mask(value) !== value);
    },
    mask,
  };
}

/** True for a secret's name. A plain KEY is more often an example than a secret. */
function isSecretVariable(name: string): boolean {
  return isSecretName(name) && !/^key$/i.test(name);
}

/** Returns a value as it is written inside a shell's single quotes. */
function quoted(value: string): string {
  return value.replaceAll("'", "'\\''");
}
