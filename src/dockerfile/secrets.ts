import { maskSecrets } from "./mask.ts";
import { isSecretName } from "./secret-name.ts";

/** What must not be seen of a command's variables. */
export interface Secrets {
  /** Returns whether a variable's value is a secret, has one in it, or has a password in an address. */
  has(name: string): boolean;
  /** The text without secret values, and without what gives itself away as one. */
  mask(text: string): string;
}

/** A value that is in another by chance is not a secret's. */
const minLength = 4;
/** Looking for more of them in every text would take too long: then nothing is shown. */
const maxValues = 1000;

/** The secrets among variables: those with names of secrets, and all that have the value of one in theirs. */
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
  // One may be a part of another.
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

/** A mere KEY is somebody's example more often than a secret. */
function isSecretVariable(name: string): boolean {
  return isSecretName(name) && !/^key$/i.test(name);
}

/** Returns the value as it stands inside of a shell's single quotes. */
function quoted(value: string): string {
  return value.replaceAll("'", "'\\''");
}
