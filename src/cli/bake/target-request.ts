import { isAbsolute, join, resolve } from "node:path";
import type { BuildResult } from "../../builder/result.ts";
import { usageError } from "../../errors.ts";
import { placeholderKey, withKey } from "../builds/keys/key-in-tags.ts";
import { parseStages } from "../builds/options/build-parsers.ts";
import type { PlatformServices } from "../builds/options/platform-services.ts";
import type { BuildInvocation, BuildRequest } from "../builds/request.ts";
import { reasonAgainstGithub } from "../cache/github-cache.ts";
import { parsePlatforms } from "../command-line/option-values.ts";
import { findContextSource } from "../contexts/context-source.ts";
import { agentOf } from "../entries/agent.ts";
import { attestationOf } from "../entries/attestation.ts";
import { cacheOf, writtenCacheOf } from "../entries/cache.ts";
import { contextOf, fetchedContext, imageContext } from "../entries/context.ts";
import { outputOf } from "../entries/output.ts";
import { secretOf } from "../entries/secret.ts";
import { parseAnnotation } from "../export/annotations.ts";
import type { Runtime } from "../process/runtime.ts";
import { limitParsers } from "../run/limit-options.ts";
import { extraHost, parseEntitlements, parseNetworkMode } from "../run/network-option.ts";
import type { SignRequest } from "../signing/sign-option.ts";
import type { BakeInvocation } from "./options/bake-options.ts";
import { gitSecrets } from "./remote/git-secrets.ts";
import { addressInTree, contextIn } from "./remote/tree.ts";
import { type ResolvedTarget, targetPlatforms } from "./resolve.ts";
import { entryFields, entryText, isPush, type TargetEntry } from "./target-entries.ts";
import { inTarget } from "./target-error.ts";
import { localPath } from "./target-names.ts";

/** Returns the image of another target, or those for its platforms. */
export type ImageOf = (target: string) => Pick<BuildResult, "image" | "platforms">;

/** The image of a target that is not built yet. */
export const placeholder = { image: "00000000-0000-0000-0000-000000000000" };

/**
 * Returns the invocation of `bough build --docker` that builds a target.
 *
 * @param options.asPushed true to include what is written beside pushed images, even if no output pushes this one
 */
export function buildOf(
  target: ResolvedTarget,
  imageOf: ImageOf,
  invocation: BakeInvocation,
  { asPushed = false } = {},
): BuildInvocation {
  return inTarget(target, () => {
    const { globals, runtime, log } = invocation;
    const request = requestFor(target, imageOf, invocation, asPushed);
    return withKey({ ...request, globals, runtime, log }, target.key ?? placeholderKey);
  });
}

function requestFor(
  target: ResolvedTarget,
  imageOf: ImageOf,
  {
    options,
    runtime: { defaultBuildArgs, environment, workingDirectory, isPlugin },
  }: Pick<BakeInvocation, "options" | "runtime">,
  asPushed: boolean,
): BuildRequest {
  const { fields, isLinked, name, needs, remote } = target;
  const { dockerfile, "dockerfile-inline": text } = fields;
  const pathInTree = remote?.context;
  const isRemote = remote !== undefined && pathInTree !== undefined;
  const context = isRemote ? addressInTree(remote.tree, pathInTree) : fields.context;
  if (context === "-" || dockerfile === "-") throw usageError("a bake file can't name standard input");
  const outputs = (fields.output ?? []).filter(isExported);
  const caches = (field: "cache-from" | "cache-to") =>
    (fields[field] ?? [])
      .filter((entry) => reasonAgainstCache(entry, environment) === undefined)
      .map(entryFields);
  const contexts = Object.entries(fields.contexts ?? {}).map(([context, value]) => {
    const other = /^target:(.*)$/s.exec(value)?.[1];
    const path = remote?.contexts.get(context);
    if (remote !== undefined && path !== undefined)
      return fetchedContext(context, addressInTree(remote.tree, path), contextIn(remote.tree, path));
    return other === undefined
      ? contextOf(context, localPath(value) ?? value)
      : imageContext(context, imageOf(other).image);
  });
  const isElsewhere = isRemote || findContextSource(context, workingDirectory)?.kind !== "directory";
  // A zero is docker's default.
  const shmSize = fields["shm-size"]?.replace(/^0+b?$| /g, "");
  const secrets = fields.secret?.map(({ id }) => id) ?? [];
  const forGit = gitSecrets(environment).filter(([id]) => isElsewhere && !secrets.includes(id));
  const beside = besideImage(fields, outputs, options.sign, asPushed);
  return {
    context,
    target: name,
    options: {
      docker: true,
      dockerfile:
        text === undefined
          ? dockerfileOf(isElsewhere ? undefined : context, dockerfile, workingDirectory)
          : undefined,
      tag: isLinked ? [] : fields.tags,
      "build-arg": new Map(Object.entries({ ...defaultBuildArgs, ...fields.args })),
      label: new Map(Object.entries(fields.labels ?? {})),
      ...beside,
      target: fields.target || undefined,
      platform: parsePlatforms(fields.platforms ?? []),
      "platform-service": servicesOf(fields, options["platform-service"]),
      pull: fields.pull,
      "no-cache": fields["no-cache"],
      "no-cache-filter": parseStages(fields["no-cache-filter"] ?? [], isPlugin),
      network: fields.network ? parseNetworkMode(fields.network) : undefined,
      "shm-size": shmSize ? limitParsers["shm-size"](shmSize) : undefined,
      ulimit: limitParsers.ulimit(fields.ulimits ?? []),
      allow: parseEntitlements(fields.entitlements ?? []),
      "add-host": Object.entries(fields["extra-hosts"] ?? {}).flatMap(([host, addresses]) =>
        addresses.split(",").map((address) => extraHost(host, address)),
      ),
      timeout: options.timeout,
      secret: [
        ...(fields.secret ?? []).map(secretOf),
        ...forGit.map(([id, name]) => ({ id, kind: "variable" as const, name })),
      ],
      ssh: fields.ssh?.map(agentOf),
      "build-context": contexts,
      output: outputs.map((entry) => outputOf(entryFields(entry), entryText(entry))),
      "cache-from": caches("cache-from").map((each) => cacheOf(each, "--cache-from")),
      "cache-to": caches("cache-to").map((each) => writtenCacheOf(each, "--cache-to")),
    },
    linked: new Map(needs.map(imageOf).map(({ image, platforms = [] }) => [image, platforms] as const)),
    inline: text === undefined ? undefined : { text, name },
    fetched: isRemote ? contextIn(remote.tree, pathInTree) : undefined,
  };
}

/** Returns annotations, attestations and the signature, as far as an output keeps them. */
function besideImage(
  { annotations = [], attest = [] }: ResolvedTarget["fields"],
  outputs: readonly TargetEntry[],
  sign: SignRequest | undefined,
  asPushed: boolean,
): Pick<BuildRequest["options"], "annotation" | "sign" | "attest"> {
  const hasIndex =
    asPushed || outputs.some(({ type }) => ["registry", "oci", "image"].includes(String(type)));
  return {
    annotation:
      asPushed || outputs.length > 0 ? annotations.flatMap((text) => parseAnnotation(text, "manifest")) : [],
    sign: asPushed || outputs.some(isPush) ? sign : undefined,
    attest: attest
      .filter(({ disabled }) => disabled === true || hasIndex)
      .map((entry) => attestationOf(entryFields(entry), entryText(entry))),
  };
}

/** Returns the services of the platforms of the target. */
function servicesOf(
  fields: ResolvedTarget["fields"],
  services: PlatformServices | undefined,
): PlatformServices | undefined {
  const own = targetPlatforms(fields);
  return services && new Map([...services].filter(([name]) => own.includes(name)));
}

/**
 * Returns the value of `--dockerfile` for a Dockerfile that is relative to its context; `undefined` for the default name. `context`: a
 * path of this machine; `undefined` for a remote context.
 */
function dockerfileOf(
  context: string | undefined,
  dockerfile: string,
  workingDirectory: string,
): string | undefined {
  if (dockerfile === "Dockerfile") return undefined;
  const given = localPath(dockerfile);
  // With a remote context, only an absolute path names a file of this machine.
  const local = given !== undefined && context === undefined ? resolve(workingDirectory, given) : given;
  const isWhole = context === undefined || isAbsolute(dockerfile);
  const path = local ?? (isWhole ? dockerfile : join(context, dockerfile));
  // A dash alone would be standard input.
  return path === "-" ? "./-" : path;
}

/**
 * Returns the reason why a cache of a bake file is not used; `undefined` if it is. As in docker buildx, caches of a pipeline are left out
 * elsewhere: the same bake file is used on other machines.
 */
export function reasonAgainstCache(
  entry: TargetEntry,
  environment: Runtime["environment"],
): string | undefined {
  const type = String(entry.type);
  if (["s3", "azblob"].includes(type)) return `type=${type} is not supported`;
  if (type !== "gha") return undefined;
  const fields = ["url", "url_v2", "token", "version"].map((name) => [name, entry[name]] as const);
  const given = fields.flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []));
  return reasonAgainstGithub(Object.fromEntries(given), environment);
}

/** False for outputs that keep the image in bough's store only, as docker keeps it in its cache. */
function isExported({ type }: TargetEntry): boolean {
  return type !== "cacheonly";
}
