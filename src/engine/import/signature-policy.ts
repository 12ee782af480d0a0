import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../system/programs.ts";
import type { LocalSource } from "./image-source.ts";
import { asObject, asObjects, type Json, parseJson } from "./json-file.ts";

/** Returns the path of the signature policy that skopeo would use; `undefined` if there is none. */
export function findPolicy({ HOME }: Environment): string | undefined {
  const own = HOME ? [join(HOME, ".config/containers/policy.json")] : [];
  return [...own, "/etc/containers/policy.json"].find((path) => existsSync(path));
}

/**
 * Throws if the policy rejects an image on this machine or requires a signature: bough could check no signature in these formats.
 * https://github.com/containers/image/blob/main/docs/containers-policy.json.5.md
 */
export function requireAccepted(source: LocalSource, environment: Environment): void {
  const path = findPolicy(environment);
  if (path === undefined) return;
  const policy = asObject(parseJson(readFileSync(path), path), path);
  const requirements = asObjects(findRequirements(policy, source, path), path);
  if (requirements.length > 0 && requirements.every(({ type }) => type === "insecureAcceptAnything")) return;
  throw new BoughError(`the signature policy ${path} does not accept ${source.name}`, {
    hint: `Import it from a registry, or change the policy to accept ${source.kind}: images.`,
  });
}

/** Returns the most specific requirements: for the image, its parent directories, its kind, or the default ones. */
function findRequirements(policy: Json, { kind, path, reference }: LocalSource, name: string): unknown {
  const scopes = asObject(asObject(policy.transports ?? {}, name)[kind] ?? {}, name);
  const image = reference === undefined ? [] : [`${path}:${reference}`];
  const scope = [...image, ...withParents(path), ""].find((candidate) => scopes[candidate] !== undefined);
  return scope === undefined ? policy.default : scopes[scope];
}

function withParents(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [path, ...withParents(parent)];
}
