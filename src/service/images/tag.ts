import { usageError } from "../../errors.ts";
import type { Capabilities } from "../service.ts";
import { isDockerName, isRegistryHost, isRepository, splitHost } from "../wire/docker-name.ts";
import { isServiceTag } from "../wire/image.ts";

/** Appends `:latest` to a name without a tag. A colon before a slash belongs to a registry's port. */
export function withLatest(name: string): string {
  return hasTag(name) ? name : `${name}:latest`;
}

function hasTag(name: string): boolean {
  return name.slice(name.lastIndexOf("/") + 1).includes(":");
}

/** Checks the value of `--tag`, and appends `:latest` if it has no tag. Throws a BoughError of kind `usage`. */
export function parseTag(text: string): string {
  const tag = withLatest(text);
  if (isDockerName(tag)) return tag;
  throw usageError(
    `not a tag: ${JSON.stringify(text)}: ${tagFault(text, tag)}`,
    "A tag is [HOST[:PORT]/]NAME[:TAG]: NAME of a-z and 0-9, with . _ - / between them, TAG of letters, digits, _ . and -.",
  );
}

/** Returns false if the service may refuse the tag. Then an import is better off without one. */
export async function takesTag(
  tag: string,
  { extensions }: Pick<Capabilities, "extensions">,
): Promise<boolean> {
  return isServiceTag(tag) || (await extensions()).has("docker-tags");
}

function tagFault(text: string, tag: string): string {
  if (text === "") return "it is empty";
  const strange = /[^\w:/.-]/u.exec(text)?.[0];
  if (strange !== undefined) return `${JSON.stringify(strange)} is not allowed`;
  const colon = tag.lastIndexOf(":");
  const [name, version] = [tag.slice(0, colon), tag.slice(colon + 1)];
  const { host, repository } = splitHost(name);
  if (/[A-Z]/.test(repository) && isDockerName(`${name.toLowerCase()}:${version}`))
    return `repository name must be lowercase; did you mean ${name.toLowerCase()}:${version}?`;
  if (host !== undefined && !isRegistryHost(host)) return `${host} is not a valid registry host`;
  if (name.length > 255) return `its name has ${name.length} characters, at most 255 are allowed`;
  if (!isRepository(repository)) return `${JSON.stringify(repository)} is not a valid repository name`;
  return version.length > 128
    ? `the part after the colon has ${version.length} characters, at most 128 are allowed`
    : `${JSON.stringify(version)} is not valid after the colon`;
}
