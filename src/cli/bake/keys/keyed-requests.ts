import type { BakedTarget } from "../../builds/inputs.ts";
import { hasKeyMark } from "../../builds/keys/key-in-tags.ts";
import { type ConnectTo, keyedBuild } from "../../builds/keys/keyed-build.ts";
import type { Invocation } from "../../command-line/command.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { buildOf, type ImageOf } from "../target-request.ts";
import { createTargetKeys } from "./target-keys.ts";

interface KeyedRequestsOptions {
  imageOf: ImageOf;
  connectTo: ConnectTo;
}

type RequestOf = (target: ResolvedTarget) => Promise<Invocation & BakedTarget>;

/**
 * Returns a function that makes the request of a target when its turn has come. If a tag of any target has a place for the content key,
 * all are built from what their keys are made of: such a target may be made of another one.
 */
export function createRequests(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { imageOf, connectTo }: KeyedRequestsOptions,
  invocation: Invocation,
): RequestOf {
  const { isPlugin } = invocation.runtime;
  if (isPlugin === true || !targets.values().some(isKeyed))
    return async (target) => buildOf(target, imageOf, invocation);
  const keys = createTargetKeys(targets, connectTo, invocation);
  return async (target) => {
    const found = await keys.findAgain(target);
    const own = buildOf({ ...target, key: found.key }, imageOf, invocation);
    return { ...own, keyed: keyedBuild(found, () => keys.findAgain(target)) };
  };
}

function isKeyed({ fields: { tags = [], output = [] } }: ResolvedTarget): boolean {
  const texts = output.flatMap((entry) => Object.values(entry)).map(String);
  return [...tags, ...texts].some(hasKeyMark);
}
