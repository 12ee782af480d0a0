import { isAbsolute, posix } from "node:path";
import { usageError } from "../../errors.ts";
import { goJson } from "../../go/json.ts";
import { formatPlatform } from "../../image/platform.ts";
import { nearest } from "../../suggest.ts";
import { parsePlatforms } from "../command-line/option-values.ts";
import { completeFields } from "./complete-fields.ts";
import { byDefault, isAddress, isPattern, matchesName, targetName } from "./names.ts";
import { applyOverrides, type Overrides } from "./overrides.ts";
import { placesIn, type RemotePlaces, type RemoteTree } from "./remote/tree.ts";
import { isInShard, type Shard } from "./sets/shard.ts";
import {
  type Definition,
  type Fields,
  type Group,
  mergeFields,
  printableFields,
  sortedMap,
  type Target,
} from "./target.ts";

/** The targets to build, complete, and those that they need. */
export interface ResolvedBake {
  groups: ReadonlyMap<string, Group>;
  /** Each target after those that its contexts name. */
  targets: ReadonlyMap<string, ResolvedTarget>;
}

export interface ResolvedTarget {
  name: string;
  /** The file, and the line if it is known, for messages. */
  origin: string;
  fields: Fields & { context: string; dockerfile: string };
  /** Names of the targets that its contexts are made of. */
  needs: readonly string[];
  /** True for one that was not asked for: another one needs it. */
  isLinked: boolean;
  /** Its content key, once that is found: what `{key}` in tags means. */
  key?: string;
  /** Which contexts came with the bake file, if that came from elsewhere. */
  remote?: RemotePlaces | undefined;
}

/** Combines the definitions of all files: of targets with one name the later fields win. Groups of later definitions win. */
export function combine(definitions: readonly Definition[]): Definition {
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
  definition: Definition,
  wanted: readonly string[],
  overrides: Overrides,
  { tree, shard }: { tree?: RemoteTree | undefined; shard?: Shard | undefined } = {},
): ResolvedBake {
  const byName = new Map(definition.targets.map((target) => [target.name, target]));
  const groupsByName = new Map(definition.groups.map((group) => [group.name, group]));
  const asked = [...new Set(wanted.map(targetName).flatMap((name) => namesLike(name, definition)))];
  const groups = new Map<string, Group>();
  const all = [...new Set(asked.flatMap((name) => namesIn(name, groupsByName, groups, new Map())))];
  const names = shard === undefined ? all : all.filter((name) => isInShard(name, shard));
  // As buildx prints it: a target of that name is in its own group only if it was asked for first.
  const others = asked.filter((name, at) => name !== byDefault || (at === 0 && !groups.has(byDefault)));
  const inDefault = [...(groups.get(byDefault)?.targets ?? []), ...others];
  groups.set("default", {
    ...groups.get(byDefault),
    name: "default",
    targets: [...new Set(inDefault)].sort(),
  });

  if (shard !== undefined) keepMembers(groups, new Set([...names, ...groups.keys()]));

  const isAsked = new Set(names);
  const done = new Map<string, ResolvedTarget>();
  const resolve = (name: string, path: readonly string[]): void => {
    if (path.includes(name))
      throw usageError(`targets need each other in a circle: ${[...path, name].join(" needs ")}`);
    if (done.has(name)) return;
    const target = byName.get(name);
    if (target === undefined) throw unknownTarget(name, path.at(-1), definition);
    const fields = fieldsOf(target, byName, overrides, new Set());
    const needs = Object.values(fields.contexts ?? {}).flatMap((value) =>
      value.startsWith("target:") ? [value.slice("target:".length)] : [],
    );
    for (const need of new Set(needs)) {
      resolve(need, [...path, name]);
      requireSamePlatforms(target, fields, need, done.get(need)?.fields);
    }
    const isLinked = !isAsked.has(name);
    const inherited = needs.flatMap((need) => done.get(need)?.fields.entitlements ?? []);
    const entitlements = [...new Set([...(fields.entitlements ?? []), ...inherited])];
    const remote = tree && placesIn(tree, fields);
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

/** Throws if a target is built for a platform for which another one that it is made of is not. */
function requireSamePlatforms(
  { name, origin }: Target,
  fields: Fields,
  need: string,
  needed: Fields = {},
): void {
  const platforms = platformsOf(fields);
  const others = platformsOf(needed);
  if (others.length < 2 || platforms.every((each) => others.includes(each))) return;
  throw usageError(
    `${origin}: target.${name}.contexts: ${need} is built for ${others.join(", ")}, and ${name} for ${platforms.join(", ")}`,
    "Give both the same platforms.",
  );
}

/** Removes all other members of groups. */
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
        // Go has no empty list here.
        { ...(description && { description }), targets: members.length === 0 ? null : members },
      ]),
    ),
  );
  const target = sortedMap(
    Object.fromEntries([...targets].map(([name, { fields }]) => [name, printableFields(fields)])),
  );
  return { group, target };
}

function namesLike(pattern: string, { groups, targets }: Definition): string[] {
  if (!isPattern(pattern)) return [pattern];
  const names = [...groups, ...targets].map(({ name }) => name).filter((name) => matchesName(pattern, name));
  if (names.length === 0) throw usageError(`could not find any target matching ${JSON.stringify(pattern)}`);
  return names;
}

/**
 * Returns the targets of a group, and of the groups in it, or the target itself. Notes the groups in `found`.
 *
 * @param visited the targets of groups that were seen before; none of one that is still being resolved
 */
function namesIn(
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
    const inside = namesIn(member, groups, found, visited);
    // As in buildx: a member that is a group without targets, or one that contains this group, means the target of that name. So
    // does a group's own name: `buildx bake --print` writes a group `default` for the target `default`.
    return inside.length > 0 ? inside : [member];
  });
  const names = [...new Set(members)];
  visited.set(name, names);
  return names;
}

/** Returns the fields of a target over those that it inherits, with what `--set` changes. */
function fieldsOf(
  target: Target,
  byName: ReadonlyMap<string, Target>,
  overrides: Overrides,
  visited: Set<string>,
): Fields {
  visited.add(target.name);
  let fields: Fields = {};
  for (const name of target.inherits) {
    if (visited.has(name)) continue;
    const parent = byName.get(name);
    if (parent === undefined)
      throw usageError(`${target.origin}: target.${target.name}.inherits: there is no target ${name}`);
    fields = mergeFields(fields, fieldsOf(parent, byName, overrides, visited));
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
export function platformsOf({ platforms = [] }: Pick<Fields, "platforms">): string[] {
  return parsePlatforms(platforms).map(formatPlatform);
}

/** As in buildx, a Dockerfile that came with the bake file has no context here. */
function requireDockerfile({ name, origin }: Target, fields: Fields): void {
  const { context = ".", dockerfile = "Dockerfile", "dockerfile-inline": inline } = fields;
  const isHere = context.startsWith("cwd://");
  if (!isHere || inline !== undefined || isAddress(dockerfile) || isAbsolute(dockerfile)) return;
  throw usageError(
    `target ${name} (${origin}): its context is here, and its Dockerfile would be where the bake file is`,
    `For a Dockerfile that is here write dockerfile = "cwd://${dockerfile}".`,
  );
}

/** Cleans a context's path as Go's path.Clean does. An address stays as it is. */
function cleanContext(context: string): string {
  const path = context.replace(/^cwd:\/\//, "");
  if (isAddress(path)) return path;
  const normal = posix.normalize(path || ".");
  return normal.length > 1 ? normal.replace(/\/$/, "") : normal;
}

function unknownTarget(
  name: string,
  needed: string | undefined,
  { groups, targets, emptyMatrices }: Definition,
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
  return name === byDefault && needed === undefined
    ? usageError("there is no target or group default", `Name what to build: ${names.sort().join(", ")}.`)
    : usageError(`there is no target ${name}${by}`, hint);
}
