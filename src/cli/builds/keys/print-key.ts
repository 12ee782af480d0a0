import { printResult } from "../../command-line/result.ts";
import { openConnections } from "../../service/connections.ts";
import { readBuildOptions } from "../options/build-options.ts";
import type { BuildInvocation } from "../request.ts";
import { createKeyFinder } from "./build-key.ts";
import { placeholderKey, replaceKeyMark, withKey } from "./key-in-tags.ts";

/** `bough build --print-key`: prints the content key, and builds nothing. Returns the exit code. */
export async function printKey(invocation: BuildInvocation): Promise<number> {
  // An invalid option is the same error as in a build.
  readBuildOptions(withKey(invocation, placeholderKey));
  await using connections = openConnections(invocation);
  const finder = createKeyFinder(invocation.runtime.signal);
  const { key } = await finder.find(invocation, connections);
  finder.save();
  const tags = (invocation.options.tag ?? []).map((tag) => replaceKeyMark(tag, key));
  printResult(invocation, { id: key, json: { key, tags }, table: () => `${key}\n` });
  return 0;
}
