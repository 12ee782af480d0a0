import { usageError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";

/**
 * Checks a service's base address and returns it without trailing slashes. It may carry a path prefix
 * (`https://host/sandboxes`), but no query, fragment or credentials: those would end up in logs and errors.
 */
export function parseBaseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw usageError(
      `not a service address: ${withoutCredentials(text)}`,
      text.startsWith("unix:")
        ? wording`bough can't connect to a Unix socket: start the server with ${{ command: "serve", options: [{ option: "listen", value: "127.0.0.1:PORT" }] }}.`
        : "A service address looks like https://host or https://host/prefix.",
    );
  }
  const refuse = (part: string, hint: Message): never => {
    throw usageError(`the service address ${withoutCredentials(text)} has ${part}`, hint);
  };
  if (url.username !== "" || url.password !== "") {
    refuse(
      "a user name or password in it",
      wording`Give the token separately: with ${{ option: "token" }}, CONTREE_TOKEN or a profile.`,
    );
  }
  if (url.search !== "" || text.includes("?"))
    refuse("a query", "Remove the question mark and everything after it.");
  if (url.hash !== "" || text.includes("#")) refuse("a fragment", "Remove the # and everything after it.");
  url.pathname = url.pathname.replace(/\/+$/, "");
  return url;
}

/** Returns the base address as text, without a slash at its end. */
export function formatAddress(base: URL): string {
  return `${base.origin}${base.pathname.replace(/\/+$/, "")}`;
}

/** The parameters of a request, without those that are `undefined`. */
export type Query = Readonly<Record<string, string | undefined>>;

/** @param path starts with `/v1/`; its parts are already encoded */
export function urlOf(address: string, path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value);
  return `${address}${path}${parameters.size === 0 ? "" : `?${parameters}`}`;
}

/** Returns the address for messages, without the part between `//` and `@`. */
export function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, "//");
}
