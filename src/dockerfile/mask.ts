/** Secrets in a text that is shown or stored: what stands before the host of an address, and what a secret's name is given. */
import { isSecretName } from "./secret-name.ts";

/** `fill`: what is shown in place of so many characters. A mere `key=` is somebody's example more often than a secret. */
export function maskSecrets(text: string, fill: (length: number) => string = () => "***"): string {
  // Nearly all texts, of which paths of large contexts are many.
  if (!maySay.test(text)) return text;
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

/** Returns whether a query parameter is secret by its name, as those of signed links are. */
export function isSecretParameter(name: string): boolean {
  return /token|key|secret|passw|signature|credential|auth|^sig$/i.test(name);
}

/** What each of the patterns below has to meet. */
const maySay = /=|:\/\/|env[ \t]/i;
// No quantifier meets what the one before it could have taken: the time is that of one pass.
// The last @ before the path counts: a password may have one in it.
const credentials = /\b([a-z][a-z0-9+.-]{0,30}:\/\/)([^\s/?#'"]+)@/gi;
const assignment = /\b([A-Za-z_]\w*)(=|[ \t]+=[ \t]*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"';&|)]+)/g;
/** `ENV NAME value`, up to the line's end. */
const legacyEnv = /^(\s*ENV[ \t]+)([A-Za-z_]\w*)([ \t]+)([^=\s].*)$/gim;
const queryParameter = /([?&])([\w.-]+)=([^\s&#'"]+)/g;
/** The name of another variable, or a command that will say the value, is not a secret. */
const reference = /^"?(\$(\w+|\{\w+\})"?$|\$\()/;
