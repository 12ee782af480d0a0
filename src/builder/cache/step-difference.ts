import type { RecordedValue, StepInputs } from "./step-inputs.ts";

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
  /** An option that is not in the instruction's text, or whose value is that of a variable, such as `--network`. */
  | { reason: "option"; name: string }
  /** The same text expands to another command. */
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
    optionDifference(before.options, now.options) ??
    commandDifference(before.command, now.command) ??
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

function optionDifference(was: StepInputs["options"], is: StepInputs["options"]): Difference | undefined {
  if (was === undefined || is === undefined) return undefined;
  const [name] = differing(was, is);
  return name === undefined ? undefined : { reason: "option", name };
}

function commandDifference(was: string | undefined, is: string | undefined): Difference | undefined {
  return was === undefined || is === undefined || was === is ? undefined : { reason: "command" };
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

function shown(value: RecordedValue | null | undefined): Shown {
  return value && "withheld" in value ? { isWithheld: true } : value;
}
