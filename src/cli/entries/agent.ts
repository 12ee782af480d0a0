import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { splitPair } from "../command-line/option-values.ts";

/** An SSH agent of a build: the paths of its socket, or of files of keys. Without a path, it is the agent of the user. */
export interface AgentEntry {
  id: string;
  paths: readonly string[];
}

/** Parses `default|ID[=SOCKET|KEY,...]`, which is docker's syntax. */
export function parseAgent(text: string): AgentEntry {
  const [id, paths = ""] = splitPair(text);
  return agentOf({ id, paths: paths.split(",") });
}

/** Returns the agent that the fields mean. An empty path is as if it were not given. */
export function agentOf({ id, paths = [] }: { id: string; paths?: readonly string[] }): AgentEntry {
  const given = paths.filter((path) => path !== "");
  if (id !== "") return { id, paths: given };
  const text = given.length === 0 ? "" : `=${given.join(",")}`;
  throw usageError(
    wording`${{ option: "ssh" }} takes default or ID[=SOCKET|KEY], not ${JSON.stringify(text)}`,
  );
}
