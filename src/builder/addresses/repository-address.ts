import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { decodePercent, redactUrl } from "./source-url.ts";

/** The address of a git repository, with the options in it. */
export interface RepositoryAddress {
  /** The address that git takes, without query and fragment: `https://host/x.git`, `git@host:x`. */
  remote: string;
  /** `http`, `https`, `ssh` or `git`; `git@host:x` is `ssh`. */
  scheme: string;
  /** A branch, a tag or a commit; `undefined`: the default branch. */
  ref: string | undefined;
  /** Relative to the repository's root; empty: the whole repository. */
  subdirectory: string;
  /** The beginning of the expected commit's hash, in hex. */
  commit: string | undefined;
  keepsGitDirectory: boolean | undefined;
  hasSubmodules: boolean;
  /** True if `commit` is fetched, whatever the ref points to now. */
  isByCommit: boolean;
  /** True if all files get the commit's time, not that of the build. */
  hasCommitTimes: boolean;
}

/** A repository and the commit that its address means now. */
export interface ResolvedRepository {
  address: RepositoryAddress;
  /** The address without secrets, for messages. */
  shown: string;
  /** The full name of the branch or tag; `undefined`: the commit was named. */
  ref: string | undefined;
  /** Its hash: 40 or 64 hex digits. */
  commit: string;
  /** `--exclude`. */
  exclude: readonly string[];
}

export type FoundCommit = Pick<ResolvedRepository, "ref" | "commit">;

const schemes = ["http", "https", "ssh", "git"];
const withScheme = /^([a-zA-Z0-9]+):\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;
/** `user@host:path`, as in scp. */
const likeScp = /^([\w-]+@[a-zA-Z0-9.-]+:[^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;

/** Returns the name that a repository and its ref have in a lock: `https://host/x.git#ref`, without secrets. */
export function lockedName(
  { remote, ref }: Pick<RepositoryAddress, "remote" | "ref">,
  buildArgs?: ReadonlyMap<string, string>,
): string {
  return `${redactUrl(remote, buildArgs)}${ref === undefined ? "" : `#${ref}`}`;
}

/** Returns true if the address itself names a commit. */
export function namesCommit({ ref, commit }: Pick<RepositoryAddress, "ref" | "commit">): boolean {
  return commit !== undefined || (ref !== undefined && isCommitHash(ref));
}

/** Returns true if a word of ADD names a git repository. */
export function isRepositoryAddress(word: string): boolean {
  return splitAddress(word) !== undefined;
}

/**
 * Parses BuildKit's grammar: `https://host/x.git#ref:subdirectory`, or the same as a query (`?tag=v1&subdir=docs`). An HTTP
 * address names a repository if its path ends in `.git`.
 *
 * @returns `undefined` if the word names no repository
 * @throws BoughError of kind `usage` if its host, query or fragment is invalid
 */
export function parseRepositoryAddress(word: string): RepositoryAddress | undefined {
  const split = splitAddress(word);
  if (split === undefined) return undefined;
  const { remote, scheme, query, fragment } = split;
  const refuse = (problem: string) => new BoughError(`${redactUrl(word)}: ${problem}`, { kind: "usage" });
  if (scheme.startsWith("http") && !URL.canParse(remote)) throw refuse("invalid address");
  const values = readQuery(query, refuse);
  const [, ref = "", directory = ""] = /^([^:]*):?(.*)$/s.exec(decodePercent(fragment)) ?? [];
  const tag = qualified("refs/tags/", values.get("tag"));
  const branch = qualified("refs/heads/", values.get("branch"));
  if (tag !== undefined && branch !== undefined) throw refuse("branch conflicts with tag");
  const only = (what: string, ...given: (string | undefined)[]) => {
    const [first, second] = new Set(given.filter((value) => value !== undefined && value !== ""));
    if (second !== undefined)
      throw refuse(`${what} conflicts: ${JSON.stringify(first)} and ${JSON.stringify(second)}`);
    return first;
  };
  const chosen = only("ref", ref, values.get("ref"), tag, branch);
  if (chosen?.startsWith("-") === true) throw refuse(`invalid git ref ${JSON.stringify(chosen)}`);
  const commit = only("checksum", values.get("checksum"), values.get("commit"));
  return {
    remote,
    scheme,
    ref: chosen,
    subdirectory: cleaned(only("subdir", cleaned(directory), cleaned(values.get("subdir") ?? "")) ?? ""),
    commit,
    keepsGitDirectory: readSwitch("keep-git-dir", values, refuse),
    hasSubmodules: readSwitch("submodules", values, refuse) ?? true,
    isByCommit: readSwitch("fetch-by-commit", values, refuse) ?? false,
    hasCommitTimes: readTimes(values, refuse),
  };
}

export function isCommitHash(text: string): boolean {
  return /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

type Refuse = (problem: string) => BoughError;

function splitAddress(word: string) {
  const url = withScheme.exec(word);
  if (url !== null) {
    const [, given = "", host = "", path = "", query = "", fragment = ""] = url;
    const scheme = given.toLowerCase();
    if (!schemes.includes(scheme)) return undefined;
    if (scheme.startsWith("http") && !decodePercent(path).endsWith(".git")) return undefined;
    return { scheme, remote: `${scheme}://${host}${path}`, query, fragment };
  }
  const [, remote, query = "", fragment = ""] = likeScp.exec(word) ?? [];
  return remote === undefined ? undefined : { scheme: "ssh", remote, query, fragment };
}

const switches = ["keep-git-dir", "submodules", "fetch-by-commit"];
const names = ["ref", "tag", "branch", "subdir", "checksum", "commit", "mtime", ...switches];

function readQuery(query: string, refuse: Refuse): Map<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (!names.includes(name))
      throw refuse(`unexpected query ${JSON.stringify(name)}: expected one of ${names.join(", ")}`);
    if (values.has(name)) throw refuse(`query ${JSON.stringify(name)} has multiple values`);
    if (value === "" && !switches.includes(name)) throw refuse(`query ${JSON.stringify(name)} has no value`);
    values.set(name, value);
  }
  return values;
}

function readTimes(values: ReadonlyMap<string, string>, refuse: Refuse): boolean {
  const time = values.get("mtime") ?? "checkout";
  if (time === "checkout" || time === "commit") return time === "commit";
  throw refuse(`invalid mtime value: ${JSON.stringify(time)} (expected checkout or commit)`);
}

/** Reads a boolean option. Without a value it is true. */
function readSwitch(name: string, values: ReadonlyMap<string, string>, refuse: Refuse): boolean | undefined {
  const value = values.get(name);
  if (value === undefined) return undefined;
  const isOn = value === "" ? true : parseGoBoolean(value);
  if (isOn !== undefined) return isOn;
  throw refuse(`invalid ${name} value: ${JSON.stringify(value)}`);
}

function qualified(prefix: string, name: string | undefined): string | undefined {
  return name === undefined || name.startsWith(prefix) ? name : `${prefix}${name}`;
}

/** Normalizes a path; `..` can't lead out of the repository's root. */
function cleaned(directory: string): string {
  return posix.join("/", directory).replace(/^\/|\/$/g, "");
}
