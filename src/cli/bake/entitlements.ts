/** `--allow`: what bake files, which others may have written, can use on this machine, as in docker buildx bake. */
import { realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { usageError } from "../../errors.ts";
import { splitPair } from "../command-line/option-values.ts";
import { findContextSource } from "../contexts/context-source.ts";
import { layoutPath } from "../entries/context.ts";
import type { Runtime } from "../process/runtime.ts";
import type { ResolvedBake, ResolvedTarget } from "./resolve.ts";
import { withTarget } from "./target-error.ts";
import { localPath } from "./target-names.ts";

/** A path of this machine that a target reads or writes. */
interface FileAccess {
  kind: "fs.read" | "fs.write";
  path: string;
  /** The field that names it. */
  field: string;
}

const kinds = [
  "network.host",
  "security.insecure",
  "ssh",
  "buildx.local.delete",
  "fs",
  "fs.read",
  "fs.write",
];

/** What bake files may use: this directory, and what `--allow` adds. */
export interface Entitlements {
  has(kind: "network.host" | "ssh"): boolean;
  /** Returns a path without links if it is inside, and `undefined` if it is outside. The path need not exist. */
  resolve(kind: FileAccess["kind"], path: string): string | undefined;
  /** True if `--allow` names the file itself for reading, or all files. Such a file may be a pipe. */
  includesFile(path: string): boolean;
}

/** Reads `--allow`. Throws a usage BoughError for an invalid one. */
export function readEntitlements(given: readonly string[], workingDirectory: string): Entitlements {
  const allowed = given.map((text) => {
    const [kind, path] = splitPair(text);
    if (!kinds.includes(kind) || kind.startsWith("fs") !== (path !== undefined && path !== ""))
      throw usageError(
        `--allow takes network.host, ssh, fs.read=PATH, fs.write=PATH or fs=PATH, not ${JSON.stringify(text)}`,
      );
    const absolute = resolve(workingDirectory, path ?? "");
    return { kind, absolute, path: path === "*" ? "/" : realPath(absolute) };
  });
  const roots = [{ kind: "fs", path: realPath(workingDirectory) }, ...allowed];
  return {
    has: (wanted) => allowed.some(({ kind }) => kind === wanted),
    resolve(kind, path) {
      const real = realPath(resolve(workingDirectory, path));
      const isInside = roots.some(
        (root) => (root.kind === "fs" || root.kind === kind) && isBelow(real, root.path),
      );
      return isInside ? real : undefined;
    },
    includesFile: (path) =>
      allowed
        .filter(({ kind }) => kind === "fs" || kind === "fs.read")
        .some((each) => each.path === "/" || each.absolute === path),
  };
}

/** Throws a usage BoughError for a target that uses what is not allowed. */
export function requireEntitlements(
  { targets }: ResolvedBake,
  allowed: Entitlements,
  runtime: Pick<Runtime, "workingDirectory" | "environment">,
): void {
  for (const target of targets.values()) {
    const isHost = target.fields.entitlements?.includes("network.host") === true;
    if (isHost && !allowed.has("network.host"))
      throw refuse(target, "it asks for the machine's network", "network.host");
    const agent = target.fields.ssh?.find(({ paths }) => paths === undefined);
    if (agent !== undefined && !allowed.has("ssh"))
      throw refuse(target, `it asks for the SSH agent ${agent.id}`, "ssh");
    for (const { kind, path, field } of fileAccesses(target, runtime))
      if (allowed.resolve(kind, path) === undefined)
        throw refuse(target, `${field}: ${path} is outside of this directory`, `${kind}=${path}`);
  }
}

function refuse(target: ResolvedTarget, what: string, option: string): unknown {
  return withTarget(usageError(what, allowHint(option)), target);
}

/** Returns the hint that names the missing `--allow`. */
export function allowHint(option: string): string {
  return `If you trust the file, allow it: --allow ${option}`;
}

/** Returns the paths of this machine that a target reads and writes. */
function fileAccesses(
  { fields, remote }: ResolvedTarget,
  { workingDirectory, environment }: Pick<Runtime, "workingDirectory" | "environment">,
): FileAccess[] {
  const read = (field: string, path: unknown): FileAccess[] =>
    typeof path === "string" && path !== "" ? [{ kind: "fs.read", path, field }] : [];
  const write = (field: string, path: unknown): FileAccess[] =>
    typeof path === "string" && path !== "-" ? [{ kind: "fs.write", path, field }] : [];
  const { context, dockerfile } = fields;
  // As for the build: a directory wins, even if its name looks like an address.
  const isPath = (text: string) => findSource(text, workingDirectory) === "directory";
  const isLocal = remote?.context === undefined && isPath(context);
  const local = localPath(dockerfile);
  const own =
    isLocal && !isAbsolute(dockerfile)
      ? join(context, dockerfile)
      : isLocal || isAbsolute(dockerfile)
        ? dockerfile
        : undefined;
  return [
    ...(isLocal ? read("context", context) : []),
    ...(fields["dockerfile-inline"] === undefined
      ? [...read("dockerfile", local ?? own), ...(isLocal ? read("dockerfile", local ?? dockerfile) : [])]
      : []),
    ...Object.entries(fields.contexts ?? {}).flatMap(([name, value]) => {
      const path = localPath(value) ?? value;
      const layout = layoutPath(path);
      const isImage = /^(target:|docker-image:\/\/|container-image:\/\/|docker:\/\/)/i.test(path);
      const isLocalPath = layout === undefined && !isImage && !remote?.contexts.has(name) && isPath(path);
      return read(`contexts.${name}`, layout ?? (isLocalPath ? path : undefined));
    }),
    ...(fields["cache-from"] ?? []).flatMap(({ src }) => read("cache-from", src)),
    // A secret without a source is the variable or file of its name.
    ...(fields.secret ?? []).flatMap(({ id, src, env }) =>
      read("secret", src ?? (env === undefined && environment[String(id)] === undefined ? id : undefined)),
    ),
    ...(fields.ssh ?? []).flatMap(({ paths }) =>
      Array.isArray(paths) ? paths.flatMap((path) => read("ssh", path)) : [],
    ),
    ...(fields["cache-to"] ?? []).flatMap(({ dest }) => write("cache-to", dest)),
    ...(fields.output ?? []).flatMap(({ dest }) => write("output", dest)),
  ];
}

function findSource(text: string, workingDirectory: string): string | undefined {
  try {
    return findContextSource(text, workingDirectory)?.kind;
  } catch {
    // The build reports an invalid address.
    return undefined;
  }
}

function isBelow(path: string, root: string): boolean {
  const fromRoot = relative(root, path);
  return fromRoot !== ".." && !fromRoot.startsWith(`..${sep}`) && !isAbsolute(fromRoot);
}

/** Resolves links. A path that does not exist is resolved as far as its directories exist. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), relative(parent, path));
  }
}
