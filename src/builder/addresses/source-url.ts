import { isSecretParameter, maskSecrets, secretsAmong } from "../../dockerfile/secrets.ts";

/** Returns true if a word of ADD is the address of a download. */
export function isUrl(word: string): boolean {
  return /^https?:\/\//i.test(word);
}

/**
 * Returns a URL in a form that may be shown and stored: without user and password, and with secret parameters and build arguments
 * masked.
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

/** Returns the URL without credentials, and the header that has them. */
export function splitCredentials(url: string): { target: URL; authorization: string | undefined } {
  const target = new URL(url);
  const { username, password } = target;
  target.username = "";
  target.password = "";
  if (username === "" && password === "") return { target, authorization: undefined };
  const pair = `${decodePercent(username)}:${decodePercent(password)}`;
  return { target, authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

/** Decodes percent-encoded characters. Returns an invalid text unchanged. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the time of a URL's content by the header `Last-Modified`, in seconds; 1970 if the server gives none, as in Docker. */
export function modifiedSeconds(lastModified: string | null): number {
  const seconds = Date.parse(lastModified ?? "") / 1000;
  return Number.isNaN(seconds) ? 0 : Math.max(seconds, 0);
}
