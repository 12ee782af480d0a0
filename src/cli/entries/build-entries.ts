/** The options of a build that have fields, as data: each door makes it of its own words, and nothing below parses them again. */
import { once } from "../../once.ts";
import type { Values } from "../command-line/arguments.ts";
import { type AgentEntry, parseAgent } from "./agent.ts";
import { type ContextEntry, parseContext } from "./context.ts";
import { parseSecret, type SecretEntry } from "./secret.ts";

export interface BuildEntries {
  /** `--secret` */
  secrets: readonly SecretEntry[];
  /** `--ssh` */
  agents: readonly AgentEntry[];
  /** `--build-context` */
  contexts: readonly ContextEntry[];
}

/** The names of the options that are entries. */
export type EntryOption = "secret" | "ssh" | "build-context";

export const noEntries: BuildEntries = { secrets: [], agents: [], contexts: [] };

/** Parses the options of a command line, each when a build asks for it: its errors come in the order in which it reads its options. */
export function entriesIn(values: Pick<Values, "list">): BuildEntries {
  const parsed = <Entry>(option: EntryOption, parse: (text: string) => Entry) =>
    once(() => values.list(option).map(parse));
  const secrets = parsed("secret", parseSecret);
  const agents = parsed("ssh", parseAgent);
  const contexts = parsed("build-context", parseContext);
  return {
    get secrets() {
      return secrets();
    },
    get agents() {
      return agents();
    },
    get contexts() {
      return contexts();
    },
  };
}
