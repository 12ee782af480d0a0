import type { Invocation } from "../../command-line/command.ts";
import type { BakedTarget } from "../inputs.ts";
import { readBuildOptions } from "../options/build-options.ts";
import { besideBuild } from "./beside-image.ts";
import { createKeyFinder, openConnections } from "./build-key.ts";
import { placeholderKey, withKey } from "./key-in-tags.ts";
import { type ConnectTo, keyedBuild } from "./keyed-build.ts";

/** Finds the content key of `bough build`, and puts it into the options. The build itself connects again. */
export async function withOwnKey(invocation: Invocation): Promise<Invocation & BakedTarget> {
  const { values, runtime } = invocation;
  // An invalid option is the same error as without a key.
  readBuildOptions({ ...invocation, values: withKey(values, placeholderKey, runtime) });
  const finder = createKeyFinder(runtime.signal);
  const beside = besideBuild(values);
  const find = (connectTo: ConnectTo) => finder.find(invocation, { connectTo, beside });
  // The build itself says which service it uses.
  const log = { ...invocation.log, info: () => undefined };
  await using connections = openConnections({ runtime, log });
  const found = await find(connections.connectTo);
  return { ...invocation, values: withKey(values, found.key, runtime), keyed: keyedBuild(found, find) };
}
