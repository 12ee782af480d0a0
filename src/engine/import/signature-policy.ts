import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { BoughError } from "../../errors.ts";
import { type Environment, inHome } from "../../home-directory.ts";
import { parseRepository } from "../../registry/repository.ts";
import { asObject, asObjects, type JsonObject, parseJsonBytes } from "./image-files.ts";
import type { LocalSource } from "./image-source.ts";

/** Returns the path of the signature policy that skopeo would use; `undefined` if there is none. */
export function findPolicy(environment: Environment): string | undefined {
  const own = inHome(environment, ".config/containers/policy.json");
  return [own, "/etc/containers/policy.json"].find((path) => path !== undefined && existsSync(path));
}

/**
 * Throws if the policy rejects an image on this machine or requires a signature: bough could check no signature in these formats.
 * https://github.com/containers/image/blob/main/docs/containers-policy.json.5.md
 */
export function requireAccepted(source: LocalSource, environment: Environment): void {
  const policy = readPolicy(environment);
  if (policy === undefined) return;
  const { path, reference } = source;
  const image = reference === undefined ? [] : [`${path}:${reference}`];
  if (policy.accepts(source.kind, [...image, ...withParents(path)])) return;
  throw new BoughError(`the signature policy ${policy.path} does not accept ${source.name}`, {
    hint: `Import it from a registry, or change the policy to accept ${source.kind}: images.`,
  });
}

/**
 * Throws unless the policy accepts all images of a repository without signatures. Only skopeo, and so an import, checks signatures.
 *
 * @param address `docker://HOST/NAME`
 */
export function requireAcceptedRepository(address: string, environment: Environment): void {
  const policy = readPolicy(environment);
  if (policy === undefined) return;
  const name = parseRepository(address.slice("docker://".length)).address.slice("docker://".length);
  // Images that have a scope of their own may be meant, too.
  const images = policy
    .scopesOf("docker")
    .filter((scope) => [":", "@"].some((mark) => scope.startsWith(`${name}${mark}`)));
  const around = [...withParents(name), ...wildcardsOf(name)];
  if ([around, ...images.map((image) => [image])].every((scopes) => policy.accepts("docker", scopes))) return;
  throw new BoughError(
    `the signature policy ${policy.path} does not accept ${address} without checking signatures, which an import does`,
  );
}

/**
 * Reads the policy. `accepts` takes scopes, the most specific first. If none of them is listed, the requirements of the transport count,
 * or else the default ones.
 */
function readPolicy(environment: Environment) {
  const path = findPolicy(environment);
  if (path === undefined) return undefined;
  const policy = asObject(parseJsonBytes(readFileSync(path), path), path);
  const scopesOf = (transport: string): JsonObject =>
    asObject(asObject(policy.transports ?? {}, path)[transport] ?? {}, path);
  return {
    path,
    scopesOf: (transport: string) => Object.keys(scopesOf(transport)),
    accepts(transport: string, scopes: readonly string[]): boolean {
      const listed = scopesOf(transport);
      const scope = [...scopes, ""].find((candidate) => listed[candidate] !== undefined);
      const requirements = asObjects(scope === undefined ? policy.default : listed[scope], path);
      return requirements.length > 0 && requirements.every(({ type }) => type === "insecureAcceptAnything");
    },
  };
}

/** Returns `*.b.example` and `*.example` for a repository of `a.b.example`. */
function wildcardsOf(name: string): string[] {
  const [host = ""] = name.split(/[/:]/);
  const parts = host.split(".");
  return parts.slice(1).map((_, at) => `*.${parts.slice(at + 1).join(".")}`);
}

function withParents(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [path, ...withParents(parent)];
}
