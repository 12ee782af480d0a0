/** Remedies for a failing registry, worded as ends of sentences. */
interface Remedies {
  login: string;
  certificate: string;
}

/** Messages that ask for a login. `permission denied` is about a file of this machine. */
const wantsLogin =
  /\bunauthorized\b|authentication required|(?<!permission )\bdenied\b|(StatusCode:|responded with) 40[13]\b|\b40[13] \(?(unauthorized|forbidden)\b/i;

/**
 * Returns what to do about a failed registry, from the message of the program that contacted it; `undefined` if the message is
 * unknown.
 */
export function registryHint(
  registry: string,
  message: string,
  { login, certificate }: Remedies,
): string | undefined {
  if (/proxyconnect /.test(message))
    return "The proxy can't be reached: correct HTTPS_PROXY or HTTP_PROXY, or name the registry in NO_PROXY.";
  if (/connection refused/i.test(message))
    return `Nothing answers at ${registry}: start the registry, or correct the address.`;
  if (wantsLogin.test(message))
    return `The registry ${registry} requires a login, rejects this one, or has no image of that name: ${login}.`;
  if (/no such host|unknown host|server misbehaving|name resolution|cannot be resolved/i.test(message))
    return `The host ${registry} was not found: check its name, and that name resolution works here.`;
  if (
    /HTTP response to HTTPS client|x509:|tls: |certificate is not accepted|TLS handshake failed/i.test(
      message,
    )
  )
    return `The registry ${registry} does not use TLS, or its certificate is not trusted: ${certificate}.`;
  if (
    /i\/o timeout|no route to host|network is unreachable|(host|network) unreachable|deadline exceeded|no answer within/i.test(
      message,
    )
  )
    return `The registry ${registry} does not respond: check that it can be reached from here.`;
  return undefined;
}
