/** Masks secrets in text that is shown or stored: credentials in URLs, and values assigned to names of secrets. */
import { isSecretName } from "./secret-name.ts";

/** Masks secrets. `fill` returns the replacement for so many characters. A plain `key=` is often an example, not a secret. */
export function maskSecrets(text: string, fill: (length: number) => string = () => "***"): string {
  // This is the case for nearly all texts, such as the many paths of a large context.
  if (!mayContainSecret.test(text)) return text;
  return text
    .replace(credentials, (_, scheme: string, hidden: string) => `${scheme}${fill(hidden.length)}@`)
    .replace(legacyEnv, (whole, before: string, name: string, between: string, value: string) =>
      isSecretName(name) ? `${before}${name}${between}${fill(value.length)}` : whole,
    )
    .replace(assignment, (whole, name: string, between: string, value: string) =>
      isSecretName(name) && !/^key$/i.test(name) && !reference.test(value)
        ? `${name}${between}${fill(value.length)}`
        : whole,
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
