import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { GivenSecrets } from "../state/secrets.ts";

/** BuildKit's secrets for a server, followed by its host name. */
export const headerSecret = "HTTP_AUTH_HEADER_";
export const tokenSecret = "HTTP_AUTH_TOKEN_";

/**
 * Returns the `Authorization` header for a server: that of its secret, or its token as a bearer token, which wins, as in BuildKit.
 * Returns `undefined` if it has neither.
 */
export function authorizationFor(address: URL, { values }: Pick<GivenSecrets, "values">): string | undefined {
  const host = hostNameOf(address);
  const textOf = (id: string) => {
    const value = values.get(id);
    // A file ends with a line end in most cases, and no header has one.
    const text = value && new TextDecoder().decode(value.reveal()).replace(/\r?\n$/, "");
    if (text === undefined || /^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return text;
    throw usageError(
      wording`${{ option: "secret", value: `id=${id}` }}: it can't be a header, which is one line`,
    );
  };
  const token = textOf(`${tokenSecret}${host}`);
  return token === undefined ? textOf(`${headerSecret}${host}`) : `Bearer ${token}`;
}

/** Returns the host as the names of secrets have it: without a port, and an IPv6 address without brackets. */
export function hostNameOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}
