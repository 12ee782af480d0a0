import type { BoughError } from "../../errors.ts";
import { type CallName, callName } from "./errors.ts";

const redirectStatuses = new Set([301, 302, 303, 307, 308]);
const maxRedirects = 5;

/**
 * Follows redirects of a GET within the service's own origin. Throws for any other: it would take the token to another host, or a
 * request's body to a place that the user has not named.
 */
export async function followRedirect<R extends Response>(
  call: CallName,
  exchange: (url: string) => Promise<R>,
  fail: (text: string, hint: string) => BoughError,
): Promise<R> {
  let { url } = call;
  for (let count = 0; ; count++) {
    const response = await exchange(url);
    const location = response.headers.get("location");
    if (!redirectStatuses.has(response.status) || location === null) return response;
    await response.body?.cancel();
    const target = URL.canParse(location, url) ? new URL(location, url) : undefined;
    const shown = target === undefined ? "an invalid address" : `${target.origin}${target.pathname}`;
    if (target === undefined || target.origin !== new URL(url).origin) {
      throw fail(
        `${callName(call)} redirects to ${shown}, which is not followed: the token is for ${new URL(url).origin} only`,
        "If the service has moved, give its new address with --url or in the profile.",
      );
    }
    if (call.method !== "GET") {
      throw fail(
        `${callName(call)} redirects to ${shown}; bough follows redirects only for GET`,
        "Give the address that it redirects to with --url or in the profile.",
      );
    }
    if (count === maxRedirects)
      throw fail(`${callName(call)} redirects more than ${maxRedirects} times`, "Check the address.");
    target.username = "";
    target.password = "";
    url = target.href;
  }
}
