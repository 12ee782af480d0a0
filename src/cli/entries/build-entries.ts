/** The options of a build that have fields, as data: each door makes it of its own words, and nothing below parses them again. */
import { once } from "../../once.ts";
import { wholeName } from "../../registry/repository.ts";
import type { Values } from "../command-line/arguments.ts";
import { type AgentEntry, parseAgent } from "./agent.ts";
import { type AttestationEntry, parseAttestation, parseAttestationOf } from "./attestation.ts";
import { type CacheEntry, parseCaches, parseWrittenCaches, type WrittenCacheEntry } from "./cache.ts";
import { type ContextEntry, parseContext } from "./context.ts";
import { type OutputEntry, parseOutput } from "./output.ts";
import { parseSecret, type SecretEntry } from "./secret.ts";

export interface BuildEntries {
  /** `--secret` */
  secrets: readonly SecretEntry[];
  /** `--ssh` */
  agents: readonly AgentEntry[];
  /** `--cache-from` */
  cacheFrom: readonly CacheEntry[];
  /** `--cache-to` */
  cacheTo: readonly WrittenCacheEntry[];
  /** `--attest`, `--provenance` and `--sbom`. A later one replaces an earlier one of its kind. */
  attestations: readonly AttestationEntry[];
  /** `--output`, `--push` and `--load` */
  outputs: readonly OutputEntry[];
  /** `--build-context` */
  contexts: readonly ContextEntry[];
}

/** The names of the options that are entries. */
export type EntryOption =
  | "output"
  | "secret"
  | "ssh"
  | "build-context"
  | "cache-from"
  | "cache-to"
  | "attest"
  | "provenance"
  | "sbom";

export const noEntries: BuildEntries = {
  secrets: [],
  agents: [],
  contexts: [],
  cacheFrom: [],
  cacheTo: [],
  attestations: [],
  outputs: [],
};

/**
 * Parses the options of a command line, each when a build asks for it: its errors come in the order in which it reads its options.
 * `isPlugin`: the words are docker's, for which a name is one of an image.
 */
export function entriesIn(
  values: Pick<Values, "list" | "flag">,
  { isPlugin = false }: { isPlugin?: boolean | undefined },
): BuildEntries {
  const parsed = <Entry>(option: EntryOption, parse: (text: string) => Entry | readonly Entry[]) =>
    once(() => values.list(option).flatMap((text) => parse(text)));
  const secrets = parsed("secret", parseSecret);
  const agents = parsed("ssh", parseAgent);
  const contexts = parsed("build-context", parseContext);
  // A name that scopes can have too stays one.
  const asInDocker = (text: string) =>
    isPlugin && /^[^=]*[:@][^=]*$/.test(text) ? `type=registry,ref=${wholeName(text)}` : text;
  const cacheFrom = parsed("cache-from", (text) => parseCaches(asInDocker(text), "--cache-from"));
  const cacheTo = parsed("cache-to", (text) => parseWrittenCaches(asInDocker(text), "--cache-to"));
  const attestations = once(() => [
    ...values.list("attest").map(parseAttestation),
    ...(["provenance", "sbom"] as const).flatMap((kind) =>
      values.list(kind).map((text) => parseAttestationOf(kind, text)),
    ),
  ]);
  const outputs = once(() => [
    ...values.list("output").map(parseOutput),
    ...(values.flag("push") ? [parseOutput("type=registry")] : []),
    ...(values.flag("load") ? [parseOutput("type=docker")] : []),
  ]);
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
    get cacheFrom() {
      return cacheFrom();
    },
    get cacheTo() {
      return cacheTo();
    },
    get attestations() {
      return attestations();
    },
    get outputs() {
      return outputs();
    },
  };
}
