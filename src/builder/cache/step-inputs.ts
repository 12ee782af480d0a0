import { edenGC } from "bun:jsc";
import { isSecretName, type Secrets, secretsAmong } from "../../dockerfile/secrets.ts";
import { octalMode } from "../../image/file-mode.ts";
import { createPace } from "../../pace.ts";
import { sha256Of } from "../../sha256.ts";
import type { Staged, StagedEntry } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import { hashedState } from "./chain-hash.ts";

/** The inputs of a layer: everything that is in its chain hash, each under a name that a person knows. */
export interface StepInputs {
  /** The parent layer's chain hash; the UUID of a base image. */
  parent: string;
  /** The instruction on one line, as written. */
  title: string;
  /** A salted hash of the command, with variables replaced. */
  command: string;
  args: Variables;
  env: Variables;
  user: string | null;
  workdir: string;
  /** The stage or image of a `COPY --from`, and its chain hash. Earlier versions stored none. */
  source?: { from: string; hash: string };
  /** What a RUN mounts of stages and images. Earlier versions stored none. */
  mounted?: readonly MountedImage[];
  /** Type, mode, owner and the beginning of the hash, by the path in the image or of the mount. */
  files: Readonly<Record<string, string>>;
}

/** What a mount takes from a stage or image. */
export interface MountedImage {
  /** The stage or image as it is written. */
  from: string;
  /** Absolute. */
  path: string;
  /** The chain hash of the stage or image. */
  hash: string;
}

/** Values by name; `null`: declared without a value. */
export type Variables = Readonly<Record<string, Value | null>>;

/** The text itself. For a secret, a salted hash, which is enough to detect a change. */
export type Value = { text: string } | { withheld: string };

/** `salt`: makes equal secrets of different contexts look different. */
export function inputsOf(
  stage: StageState,
  {
    title,
    directive,
    source,
    mounts,
  }: Pick<StepInputs, "title" | "source"> & {
    directive: readonly string[];
    mounts?: { files: Staged; images: readonly MountedImage[] };
  },
  salt: string,
): StepInputs {
  const { args, env, user, workdir } = hashedState(stage);
  const secrets = secretsAmong([...args, ...env]);
  const variables = (values: Iterable<readonly [string, string | undefined]>): Variables =>
    Object.fromEntries(
      [...values].map(([name, value]) => {
        if (value === undefined) return [name, null];
        const isSecret = isSecretName(name) || secrets.mask(value) !== value;
        return [name, isSecret ? { withheld: shortHash(salt + value) } : { text: value }];
      }),
    );
  return {
    parent: stage.layer.isBase ? stage.layer.image : stage.layer.hash,
    title,
    command: shortHash(salt + JSON.stringify(directive)),
    args: variables(args),
    env: variables(env),
    user: user && secrets.mask(user),
    workdir: secrets.mask(workdir),
    ...(source && { source: { from: source.from, hash: source.hash } }),
    ...(mounts && mounts.images.length > 0 && { mounted: masked(mounts.images, secrets) }),
    files: describeFiles(stagedIn(stage, mounts), secrets),
  };
}

function masked(images: readonly MountedImage[], secrets: Secrets): MountedImage[] {
  return images.map((image) => ({ ...image, path: secrets.mask(image.path) }));
}

/** A row is garbage right away; without collections, rows would pile up. */
const rowsBetween = 10_000;

/**
 * Returns the same inputs as JSON, in UTF-8. Writes one row at a time: for a large context, an object of all files would take
 * noticeable time, and so would one loop that never yields.
 */
export async function inputsText(
  stage: StageState,
  step: Parameters<typeof inputsOf>[1],
  salt: string,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const { mounts } = step;
  const plain = { ...step, ...(mounts && { mounts: { ...mounts, files: new Map() } }) };
  const { files: _, ...inputs } = inputsOf({ ...stage, staged: new Map() }, plain, salt);
  const { args, env } = hashedState(stage);
  const secrets = secretsAmong([...args, ...env]);
  const pace = createPace(signal);
  const text = new Bun.ArrayBufferSink();
  text.start({ asUint8Array: true });
  text.write(`${JSON.stringify(inputs).slice(0, -1)},"files":{`);
  let count = 0;
  for (const staged of stagedIn(stage, mounts)) {
    for (const [path, entry] of staged) {
      if (count > 0) text.write(",");
      text.write(`${JSON.stringify(secrets.mask(path))}:${JSON.stringify(describe(entry, secrets))}`);
      count++;
      if (count % rowsBetween === 0) edenGC();
      const pause = pace.step();
      if (pause !== undefined) await pause;
    }
  }
  text.write("}}");
  return text.end() as Uint8Array;
}

function stagedIn({ staged }: StageState, mounts: { files: Staged } | undefined): Staged[] {
  return [staged, ...(mounts === undefined ? [] : [mounts.files])];
}

/** Fills one object for all: for a large context, a copy takes noticeable time. */
function describeFiles(all: readonly Staged[], secrets: Secrets): Record<string, string> {
  const described: Record<string, string> = {};
  for (const staged of all)
    for (const [path, entry] of staged) described[secrets.mask(path)] = describe(entry, secrets);
  return described;
}

/** Only a link's description can contain a secret. */
function describe(entry: StagedEntry, secrets: Secrets): string {
  const { attributes = {}, replaces = false } = entry;
  const described = entry.type === "symlink" ? secrets.mask(describeFile(entry)) : describeFile(entry);
  const hasAttributes = Object.keys(attributes).length > 0;
  return [
    described,
    ...(hasAttributes ? [`attributes ${shortHash(JSON.stringify(attributes))}`] : []),
    ...(replaces ? ["in place of what is there"] : []),
  ].join(" ");
}

/** `file 0644 0:0 3f2a9c0d1e4b` */
function describeFile(entry: StagedEntry): string {
  const owner = entry.names ?? `${entry.uid}:${entry.gid}`;
  switch (entry.type) {
    case "file":
      return `file ${octalMode(entry.mode)} ${owner} ${entry.sha256.slice(0, shownDigits)}`;
    case "directory":
      return `directory ${octalMode(entry.mode)} ${owner} ${entry.isExplicit ? "as it is here" : ""}`.trimEnd();
    case "symlink":
      return `link ${owner} to ${entry.target}`;
    case "special":
      return [
        `${entry.kind} ${octalMode(entry.mode)} ${owner}`,
        ...(entry.kind === "pipe" ? [] : [`${entry.major}:${entry.minor}`]),
      ].join(" ");
  }
}

/** The number of hexadecimal digits shown of a hash: enough to tell files apart. */
const shownDigits = 12;

function shortHash(text: string): string {
  return sha256Of(text).slice(0, shownDigits);
}

/** The reason why a step could not be taken from the cache. */
export type Explanation =
  /** No earlier build of this context with this Dockerfile has finished a step. */
  | { reason: "first build" }
  | { reason: "--no-cache" }
  /** The option names the step's stage, or one that the step uses. */
  | { reason: "--no-cache-filter" }
  /** No earlier build has finished such an instruction. */
  | { reason: "new instruction" }
  | Difference
  /** The inputs are equal, but the layer no longer exists. */
  | { reason: "layer gone" };

/** The first input that differs from the latest build's. */
export type Difference =
  | { reason: "instruction"; before: string }
  | { reason: "ARG" | "ENV"; name: string; before: Shown; now: Shown }
  | { reason: "USER" | "WORKDIR"; before: string | null; now: string | null }
  | FileDifference
  | SourceDifference
  /** The stage or image that a RUN mounts is another one. */
  | { reason: "mount"; from: string; path: string }
  /** The same text, which results in another command. */
  | { reason: "command" }
  | ParentDifference;

/** The stage or image of a `COPY --from` is another one. */
interface SourceDifference {
  reason: "source";
  from: string;
  /** The first of the copied paths whose files have changed; `undefined` if the earlier image is gone. */
  path?: string;
}

interface ParentDifference {
  reason: "parent";
  /** Chain hashes; the UUID of a base image. */
  before: string;
  now: string;
  /** The title of the instruction that made it. */
  title?: string;
}

export interface FileDifference {
  reason: "file";
  /** The path in the image. */
  path: string;
  /** Type, mode, owner and the beginning of the hash; `undefined` if there is no such file. */
  before: string | undefined;
  now: string | undefined;
  /** The number of further files that differ. */
  others: number;
  /** The path relative to the build context, if the file comes from there or from another directory that the user gave. */
  source?: string;
}

/** A variable's value: `null` if it is declared without one, `undefined` if it is not declared. */
export type Shown = { text: string } | { isWithheld: true } | null | undefined;

/** Returns the first difference. The parent comes last: its difference is explained at its own step. */
export function findDifference(before: StepInputs, now: StepInputs): Difference | undefined {
  if (before.title !== now.title) return { reason: "instruction", before: before.title };
  for (const [reason, was, is] of [
    ["ARG", before.args, now.args],
    ["ENV", before.env, now.env],
  ] as const) {
    const name = differing(was, is)[0];
    if (name !== undefined) return { reason, name, before: shown(was[name]), now: shown(is[name]) };
  }
  if (before.user !== now.user) return { reason: "USER", before: before.user, now: now.user };
  if (before.workdir !== now.workdir) return { reason: "WORKDIR", before: before.workdir, now: now.workdir };
  return (
    fileDifference(before.files, now.files) ??
    sourceDifference(before.source, now.source) ??
    mountDifference(before.mounted, now.mounted) ??
    (before.command === now.command ? undefined : { reason: "command" }) ??
    (before.parent === now.parent ? undefined : { reason: "parent", before: before.parent, now: now.parent })
  );
}

function sourceDifference(was: StepInputs["source"], is: StepInputs["source"]): Difference | undefined {
  if (was === undefined || is === undefined || was.hash === is.hash) return undefined;
  return { reason: "source", from: is.from };
}

function mountDifference(
  was: StepInputs["mounted"] = [],
  is: StepInputs["mounted"] = [],
): Difference | undefined {
  const changed = is.find(({ hash }, index) => was[index] !== undefined && was[index].hash !== hash);
  return changed && { reason: "mount", from: changed.from, path: changed.path };
}

function fileDifference(was: StepInputs["files"], is: StepInputs["files"]): Difference | undefined {
  const paths = differing(was, is);
  const [path, ...others] = paths.sort();
  if (path === undefined) return undefined;
  return { reason: "file", path, before: was[path], now: is[path], others: others.length };
}

/** Returns the names whose values differ, first those of `is`, in its order. */
function differing<Item>(was: Readonly<Record<string, Item>>, is: Readonly<Record<string, Item>>): string[] {
  return [...new Set([...Object.keys(is), ...Object.keys(was)])].filter(
    (name) => !Bun.deepEquals(was[name], is[name], true),
  );
}

function shown(value: Value | null | undefined): Shown {
  return value && "withheld" in value ? { isWithheld: true } : value;
}
