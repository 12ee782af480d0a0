import { isAbsolute, posix } from "node:path";
import { usageError } from "../../errors.ts";
import { goJson } from "../../go/json.ts";
import { formatPlatform } from "../../image/platform.ts";
import { nearest } from "../../suggest.ts";
import { parsePlatforms } from "../command-line/option-values.ts";
import { completeFields } from "./complete-fields.ts";
import { applyOverrides, type Overrides } from "./overrides.ts";
import { contextsInTree, type RemoteContexts, type RemoteTree } from "./remote/tree.ts";
import { isInShard, type Shard } from "./sets/shard.ts";
import {
  type BakeDefinition,
  type Group,
  mergeFields,
  printableFields,
  sortedMap,
  type Target,
  type TargetFields,
} from "./target.ts";
import {
  defaultName,
  isAddress,
  isPattern,
  localPath,
  localPrefix,
  matchesName,
  targetName,
} from "./target-names.ts";

/** The targets to build and those that they need, with inherited fields and overrides. */
export interface ResolvedBake {
  groups: ReadonlyMap<string, Group>;
  /** Each target follows those that its contexts name. */
  targets: ReadonlyMap<string, ResolvedTarget>;
}

export interface ResolvedTarget {
  name: string;
  /** The file, and the line if it is known, for messages. */
  origin: string;
  fields: TargetFields & { context: string; dockerfile: string };
  /** Names of the targets in its contexts. */
  needs: readonly string[];
  /** True for a target that was not asked for, but that another one needs. */
  isLinked: boolean;
  /** Its content key, which replaces `{key}` in tags, once it is computed. */
  key?: string;
  /** The contexts that come from the repository or archive of the bake file. */
  remote?: RemoteContexts | undefined;
}

/** Merges the definitions of all files. Later fields of a target win, and later groups. */
export function mergeDefinitions(definitions: readonly BakeDefinition[]): BakeDefinition {
  const targets = new Map<string, Target>();
  for (const target of definitions.flatMap((each) => each.targets)) {
    const before = targets.get(target.name);
    targets.set(
      target.name,
      before === undefined
        ? target
        : {
            ...before,
            origin: target.origin,
            inherits: [...before.inherits, ...target.inherits],
            fields: mergeFields(before.fields, target.fields),
          },
    );
  }
  const groups = new Map(definitions.flatMap((each) => each.groups).map((group) => [group.name, group]));
  return {
    targets: [...targets.values()],
    groups: [...groups.values()],
    variables: definitions.flatMap(({ variables }) => variables),
    emptyMatrices: new Map(definitions.flatMap(({ emptyMatrices = [] }) => [...emptyMatrices])),
  };
}

/** Resolves the targets and groups that were asked for. Throws a usage BoughError for an unknown name, and for a cycle. */
export function resolveBake(
  definition: BakeDefinition,
  wanted: readonly string[],
  overrides: Overrides,
  { tree, shard }: { tree?: RemoteTree | undefined; shard?: Shard | undefined } = {},
): ResolvedBake {
  const byName = new Map(definition.targets.map((target) => [target.name, target]));
  const groupsByName = new Map(definition.groups.map((group) => [group.name, group]));
  const asked = [...new Set(wanted.map(targetName).flatMap((name) => matchingNames(name, definition)))];
  const groups = new Map<string, Group>();
  const all = [...new Set(asked.flatMap((name) => targetsInGroup(name, groupsByName, groups, new Map())))];
  const names = shard === undefined ? all : all.filter((name) => isInShard(name, shard));
  // As buildx prints it: a target `default` is in the group `default` only if it was asked for first.
  const others = asked.filter((name, at) => name !== defaultName || (at === 0 && !groups.has(defaultName)));
  const inDefault = [...(groups.get(defaultName)?.targets ?? []), ...others];
  groups.set("default", {
    ...groups.get(defaultName),
    name: "default",
    targets: [...new Set(inDefault)].sort(),
  });

  if (shard !== undefined) keepMembers(groups, new Set([...names, ...groups.keys()]));

  const requested = new Set(names);
  const done = new Map<string, ResolvedTarget>();
  const resolve = (name: string, path: readonly string[]): void => {
    if (path.includes(name))
      throw usageError(`targets depend on each other in a cycle: ${[...path, name].join(" needs ")}`);
    if (done.has(name)) return;
    const target = byName.get(name);
    if (target === undefined) throw unknownTarget(name, path.at(-1), definition);
    const fields = inheritedFields(target, byName, overrides, new Set());
    const needs = Object.values(fields.contexts ?? {}).flatMap((value) =>
      value.startsWith("target:") ? [value.slice("target:".length)] : [],
    );
    for (const need of new Set(needs)) {
      resolve(need, [...path, name]);
      requireSamePlatforms(target, fields, need, done.get(need)?.fields);
    }
    const isLinked = !requested.has(name);
    const inherited = needs.flatMap((need) => done.get(need)?.fields.entitlements ?? []);
    const entitlements = [...new Set([...(fields.entitlements ?? []), ...inherited])];
    const remote = tree && contextsInTree(tree, fields);
    if (remote !== undefined) requireDockerfile(target, fields);
    const context = cleanContext(fields.context ?? ".");
    done.set(name, {
      ...{ name, origin: target.origin, needs: [...new Set(needs)], isLinked, remote },
      fields: {
        ...completeFields(fields, target),
        context: remote?.context !== undefined && context === "." ? remote.tree.address : context,
        dockerfile: fields.dockerfile || "Dockerfile",
        ...(entitlements.length > 0 && { entitlements }),
        ...(isLinked && { output: [{ type: "cacheonly" }] }),
      },
    });
  };
  for (const name of names) resolve(name, []);
  return { groups, targets: done };
}

/** Throws if a target is built for a platform that a target in its contexts lacks. */
function requireSamePlatforms(
  { name, origin }: Target,
  fields: TargetFields,
  need: string,
  needed: TargetFields = {},
): void {
  const platforms = targetPlatforms(fields);
  const others = targetPlatforms(needed);
  if (others.length < 2 || platforms.every((each) => others.includes(each))) return;
  throw usageError(
    `${origin}: target.${name}.contexts: ${need} is built for ${others.join(", ")}, and ${name} for ${platforms.join(", ")}`,
    "Give both the same platforms.",
  );
}

/** Removes all members of groups except `members`. */
function keepMembers(groups: Map<string, Group>, members: ReadonlySet<string>): void {
  for (const [name, group] of groups)
    groups.set(name, { ...group, targets: group.targets.filter((each) => members.has(each)) });
}

/** Returns what `docker buildx bake --print` prints, with the keys in its order. */
export function printBake(bake: ResolvedBake): string {
  return goJson(definitionOf(bake), 2);
}

/** Returns groups and targets as `--print` has them. */
export function definitionOf({ groups, targets }: ResolvedBake): {
  group: Record<string, unknown>;
  target: Record<string, unknown>;
} {
  const group = sortedMap(
    Object.fromEntries(
      [...groups].map(([name, { targets: members, description }]) => [
        name,
        // As in buildx, whose list is nil in Go.
        { ...(description && { description }), targets: members.length === 0 ? null : members },
      ]),
    ),
  );
  const target = sortedMap(
    Object.fromEntries([...targets].map(([name, { fields }]) => [name, printableFields(fields)])),
  );
  return { group, target };
}

function matchingNames(pattern: string, { groups, targets }: BakeDefinition): string[] {
  if (!isPattern(pattern)) return [pattern];
  const names = [...groups, ...targets].map(({ name }) => name).filter((name) => matchesName(pattern, name));
  if (names.length === 0) throw usageError(`could not find any target matching ${JSON.stringify(pattern)}`);
  return names;
}

/**
 * Returns the targets of a group and of the groups in it, or the target itself. Adds the groups to `found`.
 *
 * @param visited the targets of visited groups; empty for a group that is still being resolved
 */
function targetsInGroup(
  name: string,
  groups: ReadonlyMap<string, Group>,
  found: Map<string, Group>,
  visited: Map<string, readonly string[]>,
): readonly string[] {
  const known = visited.get(name);
  if (known !== undefined) return known;
  const group = groups.get(name);
  if (group === undefined) return [name];
  visited.set(name, []);
  found.set(name, group);
  const members = group.targets.flatMap((member) => {
    const inside = targetsInGroup(member, groups, found, visited);
    // As in buildx: a member that is a group without targets, or one that contains this group, means the target of that name. So
    // does a group's own name: `buildx bake --print` writes a group `default` for the target `default`.
    return inside.length > 0 ? inside : [member];
  });
  const names = [...new Set(members)];
  visited.set(name, names);
  return names;
}

/** Returns the fields of a target merged over those that it inherits, with the changes of `--set`. */
function inheritedFields(
  target: Target,
  byName: ReadonlyMap<string, Target>,
  overrides: Overrides,
  visited: Set<string>,
): TargetFields {
  visited.add(target.name);
  let fields: TargetFields = {};
  for (const name of target.inherits) {
    if (visited.has(name)) continue;
    const parent = byName.get(name);
    if (parent === undefined)
      throw usageError(`${target.origin}: target.${target.name}.inherits: there is no target ${name}`);
    fields = mergeFields(fields, inheritedFields(parent, byName, overrides, visited));
  }
  const merged = applyOverrides(mergeFields(fields, target.fields), overrides.get(target.name) ?? []);
  const contexts = Object.entries(merged.contexts ?? {}).filter(([, value]) => value !== "");
  const { contexts: _, ...others } = merged;
  const isHost = merged.network === "host";
  return {
    ...others,
    ...(contexts.length > 0 && { contexts: Object.fromEntries(contexts) }),
    ...(isHost && { entitlements: [...new Set([...(merged.entitlements ?? []), "network.host"])] }),
  };
}

/** Returns the platforms of a target. None: its service's own. */
export function targetPlatforms({ platforms = [] }: Pick<TargetFields, "platforms">): string[] {
  return parsePlatforms(platforms).map(formatPlatform);
}

/** Throws, as buildx does, for a Dockerfile of the bake file's repository with a context of this machine. */
function requireDockerfile({ name, origin }: Target, fields: TargetFields): void {
  const { context = ".", dockerfile = "Dockerfile", "dockerfile-inline": inline } = fields;
  if (
    localPath(context) === undefined ||
    inline !== undefined ||
    isAddress(dockerfile) ||
    isAbsolute(dockerfile)
  )
    return;
  throw usageError(
    `target ${name} (${origin}): its context is here, and its Dockerfile would be where the bake file is`,
    `For a Dockerfile that is here write dockerfile = "${localPrefix}${dockerfile}".`,
  );
}

/** Cleans a context's path as Go's path.Clean does. An address stays as it is. */
function cleanContext(context: string): string {
  const path = localPath(context) ?? context;
  if (isAddress(path)) return path;
  const normal = posix.normalize(path || ".");
  return normal.length > 1 ? normal.replace(/\/$/, "") : normal;
}

function unknownTarget(
  name: string,
  needed: string | undefined,
  { groups, targets, emptyMatrices }: BakeDefinition,
) {
  const names = [...new Set([...targets, ...groups].map((each) => each.name))];
  const by = needed === undefined ? "" : `, which ${needed} needs`;
  const emptyMatrix = emptyMatrices?.get(name);
  if (emptyMatrix !== undefined)
    return usageError(
      `the matrix of target ${name}${by} (${emptyMatrix}) has no rows`,
      "One of its lists is empty, so that it makes no target.",
    );
  const meant = nearest(name, names);
  const hint = groups.some((group) => group.name === name)
    ? `The group ${name} has no targets, or is in a group that it contains.`
    : meant === undefined
      ? `There are: ${names.sort().join(", ")}.`
      : `Did you mean ${meant}?`;
  return name === defaultName && needed === undefined
    ? usageError("there is no target or group default", `Name what to build: ${names.sort().join(", ")}.`)
    : usageError(`there is no target ${name}${by}`, hint);
}
