import { type Expand, expandText, formatTime } from "./expressions.ts";
import type { GitFacts } from "./git-facts.ts";
import { parsePythonVersion } from "./pep440.ts";
import { expressionOf, type TagRule, type TagRules, wrong } from "./rules.ts";
import { parseSemanticVersion } from "./semver.ts";
import type { Version } from "./version.ts";

interface ChosenTags {
  /** The first one is the version. */
  tags: readonly string[];
  /** Sentences on rules that gave nothing, though they are about this commit. */
  warnings: readonly string[];
}

const option = "--tag-from";
const shortLength = 7;
const maxTagLength = 128;

/** Returns the tags that rules give for a commit, the one that is the version first. `now`: milliseconds since the epoch. */
export function chooseTags({ rules, flavor }: TagRules, facts: GitFacts, now: number): ChosenTags {
  const warnings: string[] = [];
  const tags: string[] = [];
  let latest: boolean | undefined;
  const names = namesOf(facts, now);
  const expand = (text: string) => expandText(text, names, option);
  for (const rule of rules) {
    const enable = expand(rule.enable);
    if (!["true", "false"].includes(enable))
      throw wrong(rule.text, `enable is true or false, not ${JSON.stringify(enable)}`);
    if (enable === "false") continue;
    const found = apply(rule, facts, { expand, warn: (text) => warnings.push(text) });
    if (found === undefined || found.text === "") continue;
    const prefix = expand(rule.prefix ?? flavor.prefix);
    tags.push(tagOf(`${prefix}${found.text}${expand(rule.suffix ?? flavor.suffix)}`));
    // The version decides.
    latest ??= flavor.latest === "auto" ? found.isLatest : flavor.latest === "true";
  }
  if (latest === true) {
    const prefix = flavor.prefixesLatest ? expand(flavor.prefix) : "";
    tags.push(tagOf(`${prefix}latest${flavor.suffixesLatest ? expand(flavor.suffix) : ""}`));
  }
  return { tags: [...new Set(tags)], warnings };
}

interface Applied {
  text: string;
  /** True for what is the newest of its kind: a tag of git that is no pre-release. */
  isLatest: boolean;
}

interface Applying {
  expand(text: string): string;
  warn(text: string): void;
}

function apply(rule: TagRule, facts: GitFacts, { expand, warn }: Applying): Applied | undefined {
  const { ref = "", sha } = facts;
  const { type, fields } = rule;
  const [branch, tag] = [partOf(ref, "refs/heads/"), partOf(ref, "refs/tags/")];
  const plain = (text: string | undefined) => (text === undefined ? undefined : { text, isLatest: false });
  const given = fields.get("value") ?? "";
  const source = given === "" ? tag : expand(given);
  switch (type) {
    case "branch":
      return plain(branch);
    case "tag":
      return tag === undefined ? undefined : { text: tag, isLatest: true };
    case "pr":
      return plain(partOf(ref, "refs/pull/"));
    case "sha":
      return plain(fields.get("format") === "long" ? sha : sha?.slice(0, shortLength));
    case "edge":
      return branch !== undefined && branch === (fields.get("branch") || facts.defaultBranch)
        ? plain("edge")
        : undefined;
    case "raw":
      return plain(expand(given));
    case "schedule":
      return facts.isScheduled ? plain(expand(fields.get("pattern") ?? "nightly")) : undefined;
    case "match":
      return source === undefined ? undefined : applyMatch(rule, source, warn);
    case "semver":
    case "pep440":
      return source === undefined ? undefined : applyVersion(rule, versions[type], source, warn);
  }
}

interface VersionKind {
  parse(raw: string): Version | undefined;
  /** For messages. */
  example: string;
}

const versions: Readonly<Record<"semver" | "pep440", VersionKind>> = {
  semver: { parse: parseSemanticVersion, example: "1.2.3 (https://semver.org)" },
  pep440: { parse: parsePythonVersion, example: "1.2.3rc1 (https://peps.python.org/pep-0440)" },
};

function applyVersion(
  { fields, text }: TagRule,
  { parse, example }: VersionKind,
  source: string,
  warn: Applying["warn"],
): Applied | undefined {
  const { match = "", pattern = "{{version}}" } = Object.fromEntries(fields);
  const found = match === "" ? undefined : matchOf(match, source, text);
  if (match !== "" && found === undefined) warn(`${option} ${text}: ${match} does not match ${source}`);
  const raw = (found?.[1] ?? source).replaceAll("/", "-");
  const version = parse(raw);
  if (version === undefined) {
    warn(`${option} ${text}: ${raw} is not a version such as ${example}`);
    return undefined;
  }
  const { isRelease, parts } = version;
  const own = isRelease || pattern.replace(/\s/g, "") === "{{raw}}" ? pattern : "{{version}}";
  const names = Object.fromEntries(Object.entries(parts).map(([name, value]) => [name, () => value]));
  return { text: expandText(own, names, option), isLatest: isRelease };
}

function applyMatch({ fields, text }: TagRule, source: string, warn: Applying["warn"]): Applied | undefined {
  const { pattern = "", group = "0" } = Object.fromEntries(fields);
  const found = matchOf(pattern, source, text)?.[Number(group)];
  if (found !== undefined) return { text: found, isLatest: true };
  warn(`${option} ${text}: ${pattern} does not match ${source}`);
  return undefined;
}

function matchOf(pattern: string, source: string, text: string): RegExpMatchArray | undefined {
  return source.match(expressionOf(pattern, text)) ?? undefined;
}

function namesOf(facts: GitFacts, now: number): Expand {
  const { ref = "", sha = "", baseBranch = "", defaultBranch, isScheduled, committedAt = now } = facts;
  const branch = partOf(ref, "refs/heads/");
  const isDefault = isScheduled || (branch !== undefined && branch === defaultBranch);
  return {
    branch: () => branch ?? "",
    tag: () => partOf(ref, "refs/tags/") ?? "",
    sha: () => sha.slice(0, shortLength),
    base_ref: () => baseBranch,
    is_default_branch: () => String(isDefault),
    is_not_default_branch: () => String(!isDefault),
    date: (format = "YYYY-MM-DD", zone) => formatTime(now, format, zone, option),
    commit_date: (format = "YYYY-MM-DD", zone) => formatTime(committedAt, format, zone, option),
  };
}

function partOf(ref: string, prefix: string): string | undefined {
  return ref.startsWith(prefix) ? ref.slice(prefix.length) : undefined;
}

/** Returns a text as a tag: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests */
function tagOf(text: string): string {
  return text
    .replace(/[^a-zA-Z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, maxTagLength);
}
