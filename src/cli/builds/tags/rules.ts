/** The rules of `--tag-from`, which are those of docker/metadata-action: https://github.com/docker/metadata-action#tags-input */
import { usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { oneOf, splitCsv, splitPair } from "../../command-line/option-values.ts";
import { hasKeyMark } from "../keys/key-in-tags.ts";
import { requireClosed } from "./expressions.ts";

interface TypeDefinition {
  /** Of several rules, the one with the highest comes first. */
  priority: number;
  /** Besides those that all types have. */
  fields: readonly string[];
  /** The field that it can't do without. */
  needs?: string;
  prefix?: string;
}

/** The versions of https://semver.org, and those of Python's packages. */
const version: TypeDefinition = { priority: 900, fields: ["pattern", "value", "match"] };
const types = {
  branch: { priority: 600, fields: [] },
  tag: { priority: 600, fields: [] },
  pr: { priority: 600, fields: [], prefix: "pr-" },
  semver: version,
  pep440: version,
  sha: { priority: 100, fields: ["format"], prefix: "sha-" },
  edge: { priority: 700, fields: ["branch"] },
  raw: { priority: 200, fields: ["value"], needs: "value" },
  match: { priority: 800, fields: ["pattern", "group", "value"], needs: "pattern" },
  schedule: { priority: 1000, fields: ["pattern"] },
} satisfies Record<string, TypeDefinition>;
type RuleType = keyof typeof types;

export interface TagRule {
  type: RuleType;
  /** The words of the rule, for messages. */
  text: string;
  /** `undefined`: the flavor's. */
  prefix: string | undefined;
  suffix: string | undefined;
  /** `true` or `false`, once its names are replaced. */
  enable: string;
  priority: number;
  /** The other fields, which only some types have. */
  fields: ReadonlyMap<string, string>;
}

interface Flavor {
  /** `auto`: with a tag of a release, of a match or of any other git tag. */
  latest: "auto" | "true" | "false";
  prefix: string;
  suffix: string;
  prefixesLatest: boolean;
  suffixesLatest: boolean;
}

export interface TagRules {
  /** The first one that gives a tag gives the version. */
  rules: readonly TagRule[];
  flavor: Flavor;
}

const option = "--tag-from";
const defaults = ["schedule", "branch", "tag", "pr"];
const common = ["prefix", "suffix", "enable", "priority"];

/** Reads rules, in short (`semver`, `sha,format=long`) or as metadata-action has them (`type=ref,event=branch`), and flavors (`latest=false`). */
export function readTagRules(texts: readonly string[]): TagRules {
  const flavor: Flavor = {
    ...{ latest: "auto", prefix: "", suffix: "", prefixesLatest: false, suffixesLatest: false },
  };
  const rules: TagRule[] = [];
  for (const text of texts) {
    if (hasKeyMark(text))
      throw usageError(
        wording`${{ option: "tag-from" }} ${text}: a tag of a rule has no content key`,
        wording`Give a further ${{ option: "tag", value: "NAME:{key}" }}.`,
      );
    const fields = splitCsv(text).map((field) => splitPair(field.trim()));
    const [[first = "", value] = []] = fields;
    if (first === "auto" && value === undefined && fields.length === 1) rules.push(...defaults.map(readRule));
    else if (value !== undefined && flavorKeys.includes(first)) readFlavor(text, fields, flavor);
    else rules.push(readRule(text));
  }
  const all = rules.length === 0 ? defaults.map(readRule) : rules;
  return { rules: all.toSorted((one, other) => other.priority - one.priority), flavor };
}

const flavorKeys: readonly string[] = ["latest", "prefix", "suffix"];

function readFlavor(text: string, fields: readonly [string, string | undefined][], flavor: Flavor): void {
  let last: string | undefined;
  for (const [key, value = ""] of fields) {
    if (key === "latest") flavor.latest = oneOf(value, ["auto", "true", "false"], `${option} latest=`);
    else if (key === "prefix" || key === "suffix") flavor[key] = value;
    else if (key === "onlatest" && last === "prefix") flavor.prefixesLatest = value === "true";
    else if (key === "onlatest" && last === "suffix") flavor.suffixesLatest = value === "true";
    else throw wrong(text, `unknown field ${key}`);
    last = key;
  }
}

function readRule(text: string): TagRule {
  const { type, fields } = splitRule(text);
  const { fields: own, needs, prefix, priority: usual }: TypeDefinition = types[type];
  const unknown = [...fields.keys()].find((name) => ![...common, ...own].includes(name));
  if (unknown !== undefined) throw wrong(text, `unknown field ${unknown}`);
  if (needs !== undefined && !fields.has(needs)) throw wrong(text, `${needs}= is missing`);
  if (!["short", "long"].includes(fields.get("format") ?? "short"))
    throw wrong(text, "format is short or long");
  for (const [name, value] of fields) {
    // Most rules are for some commits only: a mistake is not to show at the next release.
    if (value !== "" && (name === "match" || (type === "match" && name === "pattern")))
      expressionOf(value, text);
    else requireClosed(value, option);
  }
  const priority = Number(fields.get("priority") ?? usual);
  if (!Number.isFinite(priority)) throw wrong(text, "priority is a number");
  return {
    ...{ type, text, priority, fields },
    prefix: fields.get("prefix") ?? prefix,
    suffix: fields.get("suffix"),
    enable: fields.get("enable") ?? "true",
  };
}

/** Splits `TYPE,KEY=VALUE` and `type=TYPE,KEY=VALUE`, as docker's action for tags has them. `ref` is what its `event` names. */
function splitRule(text: string): { type: RuleType; fields: Map<string, string> } {
  const fields = new Map<string, string>();
  for (const [at, field] of splitCsv(text).entries()) {
    const [key, value] = splitPair(field.trim());
    if (value !== undefined) fields.set(key.toLowerCase(), value);
    else if (at === 0) fields.set("type", key);
    else throw wrong(text, `${key} has no value`);
  }
  const given = fields.get("type") ?? "raw";
  const known = given === "ref" ? (fields.get("event") ?? "") : given;
  for (const name of ["type", ...(given === "ref" ? ["event"] : [])]) fields.delete(name);
  if (!isType(known)) throw wrong(text, `unknown type ${JSON.stringify(known)}`);
  return { type: known, fields };
}

function isType(name: string): name is RuleType {
  return Object.hasOwn(types, name);
}

/** Parses `/EXPRESSION/FLAGS`, or an expression alone. */
export function expressionOf(pattern: string, text: string): RegExp {
  const [, inside = pattern, flags = ""] = /^\/(.+)\/([a-z]*)$/s.exec(pattern) ?? [];
  try {
    return new RegExp(inside, flags.replace("g", ""));
  } catch {
    throw wrong(text, `${pattern} is not a regular expression`);
  }
}

export function wrong(text: string, reason: string) {
  return usageError(
    `${option} ${text}: ${reason}`,
    `Write ${Object.keys(types).join(", ")}, with fields as in semver,pattern={{major}}.{{minor}} or raw,value=next; auto means branch, tag, pr and schedule.`,
  );
}
