/** Remedies for a failing registry, worded as ends of sentences. */
interface Remedies {
  login: string;
  certificate: string;
}

/** Messages that ask for a login. `permission denied` is about a file of this machine. */
const wantsLogin =
  /\bunauthorized\b|authentication required|(?<!permission )\bdenied\b|StatusCode: 40[13]\b|\b40[13] \(?(unauthorized|forbidden)\b/i;

/**
 * Returns what to do about a failed registry, from the message of the program that contacted it; `undefined` if the message is
 * unknown.
 */
export function registryHint(
  registry: string,
  said: string,
  { login, certificate }: Remedies,
): string | undefined {
  if (/proxyconnect /.test(said))
    return "The proxy can't be reached: correct HTTPS_PROXY or HTTP_PROXY, or name the registry in NO_PROXY.";
  if (/connection refused/i.test(said))
    return `Nothing answers at ${registry}: start the registry, or correct the address.`;
  if (wantsLogin.test(said))
    return `The registry ${registry} wants a login, refuses this one, or has nothing of that name: ${login}.`;
  if (/no such host|server misbehaving|name resolution/i.test(said))
    return `No machine of the name ${registry} is found: is the name right, and does name resolution work here?`;
  if (/HTTP response to HTTPS client|x509:|tls: /i.test(said))
    return `The registry ${registry} has no TLS, or a certificate that is not known: ${certificate}.`;
  if (/i\/o timeout|no route to host|network is unreachable|deadline exceeded/i.test(said))
    return `The registry ${registry} does not answer: can it be reached from here?`;
  return undefined;
}
