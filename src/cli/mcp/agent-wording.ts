/** Messages for an agent, with its tools and their arguments in the place of commands and options. */
import type { BoughError } from "../../errors.ts";
import {
  type CommandTerm,
  commandLineWords,
  type Message,
  render,
  type Term,
} from "../../messages/wording.ts";

/** Returns an error's message and hint. */
export function failureForAgent({ wording, hint }: Pick<BoughError, "wording" | "hint">): string {
  const advice = hint === undefined ? undefined : render(hint, wordsForAgent);
  return advice === undefined ? messageForAgent(wording) : `${messageForAgent(wording)}\n${advice}`;
}

/** Renders a message completely: terms without a tool or argument keep their names of the command line. */
export function messageForAgent(message: Message): string {
  return render(message, (term, before) => wordsForAgent(term, before) ?? commandLineWords(term)) ?? "";
}

function wordsForAgent(term: Term, before: string): string | undefined {
  if ("command" in term) {
    const tool = toolFor(term);
    return /(^|[.?!] )$/.test(before) ? tool?.replace(/^t/, "T") : tool;
  }
  const name = Object.hasOwn(argumentsByOption, term.option) ? argumentsByOption[term.option] : undefined;
  return name === undefined || term.value === undefined ? name : `${name}: ${term.value}`;
}

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
  use: "image",
  user: "user",
};

/** Returns the tool that corresponds to a command, with its arguments. */
function toolFor({ command, options = [], words, session: chosen }: CommandTerm): string | undefined {
  const session = typeof chosen === "object" ? chosen.placeholder : chosen;
  const [place] = words ?? [];
  const has = (name: string) => options.some(({ option }) => option === name);
  switch (command) {
    case "images":
      return place === undefined ? tool("images", { all: has("all") }) : undefined;
    case "ps":
      return tool("operations", { all: has("all") });
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
      if (has("failed-step")) return tool("run", { session, failed_step: true });
      return words === undefined && options.length === 0 ? tool("run", {}) : undefined;
    case "shell":
      return place === undefined ? undefined : tool("run", { image: place });
    case "build":
      return tool("build", { docker: has("docker") });
    case "session list":
      return tool("sessions", {});
    case "session show":
      return tool("sessions", { session: place ?? session });
    case "session rollback":
      return tool("rollback", { session });
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
