import type { ConnectionFaultKind } from "../http/connection.ts";

/** Remedies for a failing registry, worded as ends of sentences. */
interface Remedies {
  login: string;
  certificate: string;
}

/** A failure of a registry that a user can do something about. */
type RegistryFailure = ConnectionFaultKind | "login";

/** Returns what to do about a failed registry. */
export function registryHint(
  registry: string,
  failure: RegistryFailure | undefined,
  { login, certificate }: Remedies,
): string | undefined {
  switch (failure) {
    case "proxy":
      return "The proxy can't be reached: correct HTTPS_PROXY or HTTP_PROXY, or name the registry in NO_PROXY.";
    case "refused":
      return `Nothing answers at ${registry}: start the registry, or correct the address.`;
    case "login":
      return `The registry ${registry} requires a login, rejects this one, or has no image of that name: ${login}.`;
    case "unknown host":
      return `The host ${registry} was not found: check its name, and that name resolution works here.`;
    case "tls":
      return `The registry ${registry} does not use TLS, or its certificate is not trusted: ${certificate}.`;
    case "unreachable":
      return `The registry ${registry} does not respond: check that it can be reached from here.`;
    case undefined:
      return undefined;
  }
}

/**
 * Finds the failure in an import's error text: skopeo, and a service, say it in no other way. The first that matches counts, since
 * an error of the proxy names the proxy's own failure, too.
 */
export function registryFailureIn(text: string): RegistryFailure | undefined {
  return texts.find(([, pattern]) => pattern.test(text))?.[0];
}

const texts: readonly (readonly [RegistryFailure, RegExp])[] = [
  ["proxy", /proxyconnect /],
  ["refused", /connection refused/i],
  [
    "login",
    // `permission denied` is about a file of this machine.
    /\bunauthorized\b|authentication required|(?<!permission )\bdenied\b|(StatusCode:|responded with) 40[13]\b|\b40[13] \(?(unauthorized|forbidden)\b/i,
  ],
  ["unknown host", /no such host|unknown host|server misbehaving|name resolution|cannot be resolved/i],
  ["tls", /HTTP response to HTTPS client|x509:|tls: |certificate is not accepted|TLS handshake failed/i],
  [
    "unreachable",
    /i\/o timeout|no route to host|network is unreachable|(host|network) unreachable|deadline exceeded|no answer within/i,
  ],
];
