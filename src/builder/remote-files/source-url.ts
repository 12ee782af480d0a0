import { isSecretParameter, maskSecrets } from "../../dockerfile/mask.ts";
import { secretsAmong } from "../../dockerfile/secrets.ts";

/** Returns whether a word of ADD names something to download. */
export function isUrl(word: string): boolean {
  return /^https?:\/\//i.test(word);
}

/**
 * A URL as it may be shown and stored: without a user, a password, the values of parameters that are secrets, and those of
 * build arguments that are.
 */
export function redactUrl(url: string, buildArgs: ReadonlyMap<string, string> = new Map()): string {
  const { mask } = secretsAmong(buildArgs);
  if (!URL.canParse(url)) return mask(maskSecrets(url));
  const parsed = new URL(url);
  parsed.username = "";
  parsed.password = "";
  for (const name of new Set(parsed.searchParams.keys())) {
    if (isSecretParameter(name)) parsed.searchParams.set(name, "***");
  }
  return mask(parsed.href);
}

/** What to ask for, and the header that says who asks. */
export function splitCredentials(url: string): { target: URL; authorization: string | undefined } {
  const target = new URL(url);
  const { username, password } = target;
  target.username = "";
  target.password = "";
  if (username === "" && password === "") return { target, authorization: undefined };
  const pair = `${decode(username)}:${decode(password)}`;
  return { target, authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
