import { forEachConcurrently } from "../../../service/http/concurrency.ts";
import { replaceKeyMark } from "../../builds/keys/key-in-tags.ts";
import { printResult } from "../../command-line/result.ts";
import { openConnections } from "../../service/connections.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedBake } from "../resolve.ts";
import { createTargetKeys, maxConcurrentKeys } from "./target-keys.ts";

/** Prints the content key of each target, and builds nothing. Returns the exit code. */
export async function printKeys({ targets }: ResolvedBake, invocation: BakeInvocation): Promise<number> {
  await using connections = openConnections(invocation);
  const keys = createTargetKeys(targets, connections, invocation);
  const asked = [...targets.values()].filter(({ isLinked }) => !isLinked);
  const found = new Map<string, string>();
  await forEachConcurrently(asked, maxConcurrentKeys, invocation.runtime.signal, async (target) => {
    found.set(target.name, (await keys.keyOf(target)).key);
  });
  keys.save();
  const rows = asked
    .map(({ name, fields: { tags = [] } }) => ({ name, key: found.get(name) ?? "", tags }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  printResult(invocation, {
    id: rows.map(({ key }) => key),
    json: Object.fromEntries(
      rows.map(({ name, key, tags }) => [name, { key, tags: tags.map((tag) => replaceKeyMark(tag, key)) }]),
    ),
    table: () => ({
      header: ["TARGET", "KEY"],
      rows: rows.map(({ name, key }) => [{ whole: name }, { whole: key }]),
    }),
  });
  return 0;
}
