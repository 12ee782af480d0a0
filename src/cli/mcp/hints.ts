/** Rewrites hints for agents: command lines and options become tools and their arguments, or are left out. */
import type { BoughError } from "../../errors.ts";

/** Returns an error's message and hint for an agent. */
export function failureForAgent({ message, hint }: Pick<BoughError, "message" | "hint">): string {
  const told = hint === undefined ? undefined : hintForAgent(hint);
  return told === undefined ? messageForAgent(message) : `${messageForAgent(message)}\n${told}`;
}

/** Returns a hint in an agent's words; `undefined` if no line of it applies to an agent. */
export function hintForAgent(hint: string): string | undefined {
  const lines = hint.split("\n").flatMap((line) => {
    const told = lineForAgent(line);
    return told === undefined ? [] : [told];
  });
  const kept = lines.flatMap((line, at) => {
    // A sentence that introduces other lines goes with them.
    const leads = line.endsWith(":") && lines[at + 1]?.startsWith(" ") !== true;
    const rest = leads ? line.replace(/(^|(?<=[.?!]) +)[^.?!]*:$/, "") : line;
    return rest === "" ? [] : [rest];
  });
  return kept.length === 0 ? undefined : kept.join("\n");
}

/** Rewrites only bough's own phrases in a warning, because it may quote a Dockerfile. */
export function warningForAgent(warning: string): string {
  return messageForAgent(warning)
    .replace(/(?<=\bwith |; )--docker\b/, "docker: true")
    .replace("(--no-default-excludes copies them)", "(no_default_excludes: true copies them)")
    .replace(/`bough [^`]+`/g, (quoted) => toolFor(quoted.slice(1, -1)) ?? quoted);
}

/** Rewrites only bough's own phrases in an error's message: the rest may be a command's output. */
function messageForAgent(message: string): string {
  const rewrite = (option: string, name: string) => argumentOf(name) ?? option;
  return message
    .replace(/^bough run: /, "")
    .replace(/^--([a-z-]+)/, rewrite)
    .replace(/(?<=^[\w: -]+ and )--([a-z-]+)(?= cannot be used together$)/, rewrite)
    .replace(/(?<= needs )--([a-z-]+)$/, rewrite)
    .replace(/(?<=^\S+ does not support )--([a-z-]+)/, rewrite);
}

function lineForAgent(line: string): string | undefined {
  const [, indent = "", command] = /^(\s+)(bough .*)$/.exec(line) ?? [];
  if (command !== undefined) {
    const tool = toolFor(command);
    return tool === undefined ? undefined : `${indent}${tool}`;
  }
  const sentences = line.split(/(?<=[.?!])\s+(?=[A-Z`-])/).flatMap((sentence) => {
    const parts = sentence.split("; ").flatMap((part) => partForAgent(part) ?? []);
    if (parts.length === 0) return [];
    const text = parts.join("; ");
    const end = /[.?!:]$/.test(text) ? "" : (/[.?!:]$/.exec(sentence)?.[0] ?? "");
    return [text.replace(/^the (?=tool|resource)/, "The ") + end];
  });
  return sentences.length === 0 ? undefined : sentences.join(" ");
}

/** `undefined` if the part names something that no tool does. */
function partForAgent(part: string): string | undefined {
  // The argument is an object, so the option's examples would mislead.
  if (part.startsWith("For example: --add-host")) return undefined;
  let isKnown = true;
  const known = (word: string | undefined) => {
    isKnown &&= word !== undefined;
    return word ?? "";
  };
  const told = part
    .replace(/`bough ([^`]*)`/g, (quoted) => known(toolFor(quoted.slice(1, -1))))
    .replace(/(?<![\w-])--([a-z-]+)( SECONDS)?/g, (_, name: string) => known(argumentOf(name)))
    .replace(/(?<![\w-])-u /g, "user ");
  return isKnown && !commandLines.test(told) ? told : undefined;
}

/** Finds command lines without backticks, and options of one letter. */
const commandLines =
  /\bbough (-|\.\.\.|(auth|build|cp|engine|images|push|run|session|shell)\b)|(?<!\S)-[a-zA-Z]\b/;

const argumentsByOption: Readonly<Record<string, string>> = {
  "add-host": "add_hosts",
  "build-arg": "build_args",
  "build-context": "build_contexts",
  cwd: "cwd",
  docker: "docker: true",
  dockerfile: "dockerfile",
  env: "env",
  "failed-step": "failed_step",
  file: "local_files",
  lock: "lock",
  locked: "locked: true",
  network: "network",
  "no-cache": "no_cache: true",
  "no-cache-filter": "no_cache_filter",
  "no-default-excludes": "no_default_excludes: true",
  pull: "pull: true",
  secret: "secrets",
  "shm-size": "shm_size",
  tag: "tags",
  target: "target",
  timeout: "timeout_seconds",
  "update-lock": "update_lock",
  user: "user",
};

function argumentOf(option: string): string | undefined {
  return Object.hasOwn(argumentsByOption, option) ? argumentsByOption[option] : undefined;
}

/** Returns the tool that does what a command line does, with its arguments. */
function toolFor(line: string): string | undefined {
  const { session, words } = withoutGlobals(line.split(" ").slice(1));
  const [first = "", second = ""] = words;
  const has = (...options: string[]) => options.some((option) => words.includes(option));
  const place = words.slice(1).find((word) => !word.startsWith("-"));
  switch (first) {
    case "images":
      return place === undefined || place === "list" ? tool("images", { all: has("--all") }) : undefined;
    case "ps":
      return tool("operations", { all: has("--all", "-a") });
    case "show":
      return tool("operations", { operation: place });
    case "logs":
      return tool("logs", { operation: place });
    case "ls":
      return tool("list_files", {});
    case "cat":
      return tool("read_file", {});
    case "use":
      return tool("run", { session, image: place, keep: true });
    case "run":
      return has("--failed-step") ? tool("run", { session, failed_step: true }) : undefined;
    case "shell":
      return place === undefined ? undefined : tool("run", { image: place });
    case "build":
      return tool("build", { docker: has("--docker") });
    case "session":
      if (second === "list") return tool("sessions", {});
      if (second === "show") return tool("sessions", { session: words[2] ?? session });
      return second === "rollback" ? tool("rollback", { session }) : undefined;
    case "agent":
      return "the resource bough://manual";
    default:
      return undefined;
  }
}

function tool(name: string, given: Readonly<Record<string, string | boolean | undefined>>): string {
  const words = Object.entries(given).flatMap(([key, value]) =>
    value === undefined || value === false ? [] : [`${key}: ${value}`],
  );
  return `the tool \`${name}\`${words.length === 0 ? "" : ` with ${words.join(", ")}`}`;
}

function withoutGlobals(words: readonly string[]): { session: string | undefined; words: string[] } {
  let session: string | undefined;
  const rest = [...words];
  while (rest[0]?.startsWith("-") === true) {
    const option = rest.shift();
    if (option === "--local") continue;
    const value = rest.shift();
    if (option === "-S") session = value;
  }
  return { session, words: rest };
}
