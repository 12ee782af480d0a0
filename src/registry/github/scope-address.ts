/** The address of a scope of GitHub's cache: `gha:SCOPE@URL`. */

const prefix = "gha:";

/** True for an address with the prefix of GitHub's cache. The rest may be invalid. */
export function isGithub(address: string): boolean {
  return address.startsWith(prefix);
}

/** Returns the name of a scope's index, which is signed with it. */
export function nameOfScope(scope: string): string {
  return prefix + scope;
}

/** Returns the address of a scope on a service, as `openBlobStore` takes it. */
export function addressOfScope(scope: string, url: string): string {
  return `${prefix}${encodeURIComponent(scope)}@${url}`;
}

/** Returns the parts of a scope's address; `undefined` for other addresses. */
export function parseScopeAddress(address: string): { scope: string; url: string } | undefined {
  const [, name, url] = /^([^@]*)@(https?:\/\/[^\0]+)$/s.exec(address.slice(prefix.length)) ?? [];
  if (!isGithub(address) || name === undefined || url === undefined) return undefined;
  try {
    return { scope: decodeURIComponent(name), url };
  } catch {
    return undefined;
  }
}
