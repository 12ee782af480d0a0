/** The secrets among a command's variables. */
export interface Secrets {
  /** True if a variable's value is a secret, contains one, or contains a URL with a password. */
  has(name: string): boolean;
  /** Masks secret values in a text, and everything else that looks like a secret. */
  mask(text: string): string;
}

/** The minimum length of a masked value: a shorter one may be part of another text by chance. */
const minLength = 4;
/** The limit of values to search for. If there are more, the whole text is masked, since searching would take too long. */
const maxValues = 1000;

/** The minimum length of a masked line of a secret: a shorter one may be part of another text by chance. */
const minLineLength = 8;
/** The limit of lines that are searched within other lines: all those of a large secret, such as a list of certificates, would take too long. */
const maxSearchedLines = 250;

/**
 * Returns the secrets among variables: values of variables with a secret's name, also as part of other values, and each line of one:
 * output is cut between lines.
 */
export function secretsAmong(
  variables: Iterable<readonly [name: string, value: string | null | undefined]>,
): Secrets {
  const entries = [...variables].flatMap(([name, value]): [string, string][] =>
    value ? [[name, value]] : [],
  );
  const known = new Map(entries);
  const secrets = entries
    .filter(([name, value]) => value.length >= minLength && isSecretVariable(name))
    .map(([, value]) => value);
  const lines = linesOf(secrets);
  const values = new Set(
    [...secrets, ...lines.slice(0, maxSearchedLines)].flatMap((value) => [
      value,
      quoted(value),
      encodeURIComponent(value.toWellFormed()),
    ]),
  );
  const wholeLines = new Set(lines.slice(maxSearchedLines));
  // One value may be part of another.
  const longestFirst = [...values].sort((one, other) => other.length - one.length);
  const mask = (text: string): string => {
    if (values.size > maxValues) return "***";
    // This comes first, since a line in which something else is masked is no longer found.
    const kept = withoutLines(text, wholeLines);
    return maskSecrets(longestFirst.reduce((masked, value) => masked.replaceAll(value, () => "***"), kept));
  };
  return {
    has(name) {
      const value = known.get(name);
      return value !== undefined && (isSecretVariable(name) || mask(value) !== value);
    },
    mask,
  };
}

/** Returns the lines of values that have several. */
function linesOf(values: readonly string[]): string[] {
  const lines = values
    .filter((value) => value.includes("\n"))
    .flatMap((value) => value.split("\n").map((line) => line.trim()));
  return [...new Set(lines.filter((line) => line.length >= minLineLength))];
}

function withoutLines(text: string, masked: ReadonlySet<string>): string {
  if (masked.size === 0) return text;
  return text
    .split("\n")
    .map((line) => (masked.has(line.trim()) ? "***" : line))
    .join("\n");
}

/** True for a secret's name. A plain KEY is more often an example than a secret. */
function isSecretVariable(name: string): boolean {
  return isSecretName(name) && !/^key$/i.test(name);
}

/** Returns a value as it is written inside a shell's single quotes. */
function quoted(value: string): string {
  return value.replaceAll("'", "'\\''");
}

/** True if a value looks like a secret, whatever its name: a private key, or a token of a known form. */
export function isSecretValue(value: string): boolean {
  return forms.some((form) => form.test(value));
}

const forms: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY/,
  // A JSON Web Token: two of its parts are JSON objects.
  /\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\./,
  // GitHub's, GitLab's, Slack's, npm's, PyPI's, and keys of AWS and Google.
  /\b(gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|npm_|pypi-)[\w-]{16,}/,
  /\b(AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bAIza[\w-]{35}/,
];

/**
 * Masks secrets in text that is shown or stored: credentials in URLs, and values assigned to names of secrets. `fill` returns the replacement for so many characters. A plain `key=` is often an example, not a secret.
 */
export function maskSecrets(text: string, fill: (length: number) => string = () => "***"): string {
  // This is the case for nearly all texts, such as the many paths of a large context.
  if (!mayContainSecret.test(text)) return text;
  return text
    .replace(credentials, (_, scheme: string, hidden: string) => `${scheme}${fill(hidden.length)}@`)
    .replace(legacyEnv, (whole, before: string, name: string, between: string, value: string) =>
      isSecretName(name) ? `${before}${name}${between}${fill(value.length)}` : whole,
    )
    .replace(assignment, (whole, name: string, between: string, value: string) =>
      isSecretVariable(name) && !reference.test(value) ? `${name}${between}${fill(value.length)}` : whole,
    )
    .replace(queryParameter, (whole, before: string, name: string, value: string) =>
      isSecretParameter(name) ? `${before}${name}=${fill(value.length)}` : whole,
    );
}

/** True if a query parameter's name means a secret, as in signed URLs. */
export function isSecretParameter(name: string): boolean {
  return /token|key|secret|passw|signature|credential|auth|^sig$/i.test(name);
}

/** Matches any text that one of the patterns below matches. */
const mayContainSecret = /=|:\/\/|env[ \t]/i;
// No quantifier can match what the one before it matches, so that matching takes linear time.
// The last @ before the path counts: a password may contain one.
const credentials = /\b([a-z][a-z0-9+.-]{0,30}:\/\/)([^\s/?#'"]+)@/gi;
const assignment = /\b([A-Za-z_]\w*)(=|[ \t]+=[ \t]*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"';&|)]+)/g;
/** `ENV NAME value`, up to the line's end. */
const legacyEnv = /^(\s*ENV[ \t]+)([A-Za-z_]\w*)([ \t]+)([^=\s].*)$/gim;
const queryParameter = /([?&])([\w.-]+)=([^\s&#'"]+)/g;
/** A reference to another variable, or a command substitution, which is not a secret itself. */
const reference = /^"?(\$(\w+|\{\w+\})"?$|\$\()/;

const secretWords =
  /(?:^|_)(?:apikey|auth|credential|credentials|key|password|pword|passwd|secret|token)(?:_|$)/i;
const harmlessWords = /(?:^|_)(?:public|file|version)(?:_|$)/i;

/** True if a variable's name means a secret, by the words of Docker's check SecretsUsedInArgOrEnv. */
export function isSecretName(name: string): boolean {
  return secretWords.test(name) && !harmlessWords.test(name);
}
