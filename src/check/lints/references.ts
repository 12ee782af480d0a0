import { lockedName, namesCommit } from "../../builder/addresses/repository-address.ts";
import { redactUrl } from "../../builder/addresses/source-url.ts";
import type { PlannedCopy } from "../../builder/copy/plan.ts";
import type { Edge } from "../../builder/graph/build-graph.ts";
import { notLocked, type Pins } from "../../builder/reference-lock.ts";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { parseReference } from "../../service/images/reference.ts";
import type { ErrorRule, Finding, WarningRule } from "../rules.ts";

/** The lock that a build would resolve its references with. */
export interface CheckedLock {
  path: string;
  has(kind: keyof Pins, name: string): boolean;
  /** True with `--locked`: the build adds nothing to the lock. */
  isFrozen: boolean;
}

/** A reference without a digest, checksum or commit. */
export interface OpenReference extends Pick<Finding, "range"> {
  kind: keyof Pins;
  /** The name that a lock has. */
  name: string;
}

/** Returns the sources that an ADD fetches without a checksum or a commit. */
export function openReferences(
  { words, plan }: PlannedCopy,
  buildArgs: ReadonlyMap<string, string>,
): Pick<OpenReference, "kind" | "name">[] {
  return plan.items.others.flatMap((item): Pick<OpenReference, "kind" | "name">[] => {
    if (item.kind === "url" && words.checksum === undefined)
      return [{ kind: "url", name: redactUrl(item.url, buildArgs) }];
    if (item.kind === "repository" && !namesCommit(item.address))
      return [{ kind: "git", name: lockedName(item.address, buildArgs) }];
    return [];
  });
}

/** Returns the image without a digest that a dependency names; `undefined` for all others. */
export function openImage({ instruction: { range }, reference, target }: Edge): OpenReference | undefined {
  const image =
    target.kind === "context" && target.context.kind === "image" ? target.context.reference : reference;
  if (target.kind !== "image" && image === reference) return undefined;
  try {
    const parsed = parseReference(image);
    const isOpen = parsed.kind === "registry" && parsed.digest === undefined && image !== "scratch";
    return isOpen ? { kind: "image", name: image, range } : undefined;
  } catch (error) {
    // The plan reports an invalid name.
    if (error instanceof BoughError) return undefined;
    throw error;
  }
}

const advice: Readonly<Record<keyof Pins, string>> = {
  image: "is not pinned to a digest: write NAME@sha256:...",
  url: "is not pinned to a content: give ADD its --checksum",
  git: "is not pinned to a commit: write its hash after #",
};

/** UnpinnedReference. */
export function lintReferences(
  references: readonly OpenReference[],
  lock: CheckedLock | undefined,
): Finding[] {
  return absentFrom(lock, references).map(({ kind, name, range }): Finding => {
    const rule: WarningRule = "UnpinnedReference";
    const message = wording`${name} ${advice[kind]}, or build with ${{ option: "lock" }}`;
    return { rule, message, range, subject: name };
  });
}

/** Returns the errors of a build with `--locked`. */
export function findNotLocked(
  references: readonly OpenReference[],
  lock: CheckedLock | undefined,
): Finding[] {
  if (lock?.isFrozen !== true) return [];
  return absentFrom(lock, references).map(({ name, range }): Finding => {
    const rule: ErrorRule = "NotLocked";
    const { message, hint } = notLocked(name, lock.path);
    return { rule, message, range, subject: name, ...(hint === undefined ? {} : { hint }) };
  });
}

function absentFrom(lock: CheckedLock | undefined, references: readonly OpenReference[]): OpenReference[] {
  return references.filter(({ kind, name }) => lock?.has(kind, name) !== true);
}
