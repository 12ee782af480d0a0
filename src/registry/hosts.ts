/** Names of registries. */

/** Returns a name's registry, as Docker does: Docker Hub, unless the first segment has a dot or a colon or is `localhost`. */
export function registryHost(name: string): string {
  const [first, ...rest] = name.split("/");
  const isHost = first !== undefined && rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  return isHost ? first : "docker.io";
}

/** True for a registry on this machine, which Docker trusts without TLS. */
export function isLoopback(registry: string): boolean {
  const host = registry.replace(/:\d+$/, "");
  return host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

/** True if the response to a request with TLS leads to an address without it. */
export function isDowngrade(from: URL, to: URL): boolean {
  return from.protocol === "https:" && to.protocol === "http:";
}

/** True for a registry whose certificate is checked: as the user says, else not for those of this machine. */
export function verifiesTls(
  registry: string,
  { BOUGH_TLS_VERIFY }: Readonly<Record<string, string | undefined>>,
): boolean {
  return BOUGH_TLS_VERIFY === "true" || (BOUGH_TLS_VERIFY !== "false" && !isLoopback(registry));
}
