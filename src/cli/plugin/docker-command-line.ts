/** docker's command line: its own options, what they mean for bough's commands, and what messages call bough's options. */
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { usageError } from "../../errors.ts";
import { dockerDirectory } from "../../home-directory.ts";
import { commandLineWords, type Term, wordsAfter } from "../../messages/wording.ts";
import { asRecord } from "../../service/http/json.ts";
import { findCommand, type ParsedValues, parseArguments } from "../command-line/arguments.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import type { Runtime } from "../process/runtime.ts";
import { commonOptions } from "./subcommand.ts";

/** Options of docker itself, which it passes to its plug-ins, and options before a command of buildx. */
const options: ArgumentDefinitions = {
  ...commonOptions,
  config: { type: "string" },
  context: { type: "string", alias: "c" },
  host: { type: "string", alias: "H" },
  "log-level": { type: "string", alias: "l" },
  tls: { type: "boolean" },
  tlscacert: { type: "string" },
  tlscert: { type: "string" },
  tlskey: { type: "string" },
  tlsverify: { type: "boolean" },
  help: { type: "boolean", alias: "h" },
  version: { type: "boolean", alias: "v" },
};

interface PluginLine {
  /** The options before the command. */
  values: ParsedValues[];
  command: string;
  rest: readonly string[];
}

/** Parses the command line of the plug-in. `docker help buildx build` and `docker buildx help build` mean `build --help`. */
export function parsePluginLine(words: readonly string[]): PluginLine {
  const line = splitPluginLine(words);
  const [command] = words[0] === "help" && line.rest[0] === "buildx" ? line.rest.slice(1) : line.rest;
  if (line.command !== "help" || command === undefined) return line;
  return { values: line.values, command, rest: ["--help"] };
}

/** Splits `[OPTIONS] buildx [OPTIONS] COMMAND ...`, or the same without `buildx`. */
function splitPluginLine(words: readonly string[]): PluginLine {
  const start = findCommand(words, options);
  const values = [parseArguments(words.slice(0, start), options, "docker")];
  const { command, rest } = { command: words[start] ?? "", rest: words.slice(start + 1) };
  if (command !== "buildx") return { values, command, rest };
  const next = findCommand(rest, options);
  values.push(parseArguments(rest.slice(0, next), options, "docker buildx"));
  return { values, command: rest[next] ?? "", rest: rest.slice(next + 1) };
}

/** Returns docker's own options as the environment variables with the same meaning. */
export function dockerEnvironment(given: readonly ParsedValues[]): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const values of given) {
    const [config, context, host] = [values.text("config"), values.text("context"), values.text("host")];
    if (config !== undefined) environment.DOCKER_CONFIG = config;
    if (context !== undefined) environment.DOCKER_CONTEXT = context;
    if (host !== undefined) environment.DOCKER_HOST = host;
    if (values.flag("tlsverify")) environment.DOCKER_TLS_VERIFY = "1";
    for (const [option, file] of certificates) {
      const path = values.text(option);
      if (path === undefined) continue;
      if (basename(path) !== file)
        throw usageError(
          `--${option} ${path}: the file must be named ${file}`,
          "DOCKER_CERT_PATH names the directory of ca.pem, cert.pem and key.pem; so does a context of docker.",
        );
      environment.DOCKER_CERT_PATH = dirname(path);
    }
  }
  return environment;
}

const certificates = [
  ["tlscacert", "ca.pem"],
  ["tlscert", "cert.pem"],
  ["tlskey", "key.pem"],
] as const;

/** Adds the options that the environment gives where the command line does not, and `--load`. */
export function withDefaults(
  given: ParsedValues,
  { environment }: Pick<Runtime, "environment">,
  loads: boolean,
): ParsedValues {
  const { BUILDKIT_PROGRESS, DOCKER_DEFAULT_PLATFORM } = environment;
  const defaults = new Map([
    ["progress", given.flag("quiet") ? "" : BUILDKIT_PROGRESS],
    ["platform", DOCKER_DEFAULT_PLATFORM],
  ]);
  const text = (name: string) => given.text(name) ?? (defaults.get(name) || undefined);
  return {
    ...given,
    text,
    flag: (name) => given.flag(name) || (name === "load" && loads),
    list: (name) => (defaults.has(name) ? [text(name) ?? []].flat() : given.list(name)),
  };
}

/** Returns the build arguments for the proxies in docker's `config.json`. */
export function dockerProxies(environment: Runtime["environment"]): Record<string, string> {
  const { DOCKER_HOST } = environment;
  const path = join(dockerDirectory(environment), "config.json");
  let config: unknown;
  try {
    config = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // The reader of credentials reports what is wrong with the file.
    return {};
  }
  const all = asRecord(asRecord(config)?.proxies);
  const proxies = asRecord(all?.[DOCKER_HOST ?? ""] ?? all?.default) ?? {};
  const pairs = Object.entries(proxies).flatMap(([key, value]) => {
    const [, kind] = /^(http|https|no|ftp|all)Proxy$/.exec(key) ?? [];
    if (kind === undefined || typeof value !== "string" || value === "") return [];
    return [`${kind.toUpperCase()}_PROXY`, `${kind}_proxy`].map((name) => [name, value] as const);
  });
  return Object.fromEntries(pairs);
}

/** Returns what a term is called on docker's command line. */
export function dockerWords(term: Term): string {
  if ("option" in term)
    return commandLineWords(term.option === "dockerfile" ? { ...term, option: "file" } : term);
  const { command } = term;
  return ["build", "bake"].includes(command)
    ? `\`${["docker", "buildx", command, ...wordsAfter(term)].join(" ")}\``
    : commandLineWords(term);
}
