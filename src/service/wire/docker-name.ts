/** Docker's grammar of image names: https://pkg.go.dev/github.com/distribution/reference */

const maxRepositoryLength = 255;
const component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const hostLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
const hostPattern = new RegExp(`^${hostLabel}(?:\\.${hostLabel})*(?::\\d+)?$`);
const repositoryPattern = new RegExp(`^${component}(?:/${component})*$`);
const tagPattern = /^\w[\w.-]{0,127}$/;

export function isRegistryHost(text: string): boolean {
  return hostPattern.test(text);
}

/** A repository without a registry host, such as `team/app`. */
export function isRepository(text: string): boolean {
  return text.length <= maxRepositoryLength && repositoryPattern.test(text);
}

/** The part after the colon. Only it may have capital letters. */
export function isTagName(text: string): boolean {
  return tagPattern.test(text);
}

/** `[HOST[:PORT]/]REPOSITORY:TAG` */
export function isDockerName(text: string): boolean {
  const colon = text.lastIndexOf(":");
  const name = text.slice(0, Math.max(colon, 0));
  const { host, repository } = splitHost(name);
  return (
    name.length <= maxRepositoryLength &&
    (host === undefined || isRegistryHost(host)) &&
    isRepository(repository) &&
    isTagName(text.slice(colon + 1))
  );
}

/** A first segment with a dot or a colon, or `localhost`, is a registry host. */
export function splitHost(name: string): { host: string | undefined; repository: string } {
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(slash, 0));
  const hasHost = /[.:]/.test(first) || first === "localhost";
  return hasHost ? { host: first, repository: name.slice(slash + 1) } : { host: undefined, repository: name };
}
