/** The address of a scope of GitHub's cache: `gha:SCOPE@URL`. */

const prefix = "gha:";

/** True for the address of a scope of GitHub's cache, whole or not. */
export function isGithub(address: string): boolean {
  return address.startsWith(prefix);
}

/** Returns the name that the index of a scope has, and that is signed with it. */
export function nameOfScope(scope: string): string {
  return prefix + scope;
}

/** Returns the address of a scope on a service, as `openBlobStore` takes it. */
export function addressOfScope(scope: string, url: string): string {
  return `${prefix}${encodeURIComponent(scope)}@${url}`;
}

/** Returns the parts of such an address; `undefined` for others. */
export function parseScopeAddress(address: string): { scope: string; url: string } | undefined {
  const [, name, url] = /^([^@]*)@(https?:\/\/[^\0]+)$/s.exec(address.slice(prefix.length)) ?? [];
  if (!isGithub(address) || name === undefined || url === undefined) return undefined;
  try {
    return { scope: decodeURIComponent(name), url };
  } catch {
    return undefined;
  }
}
