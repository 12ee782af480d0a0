import { type FlagKind, readFlags } from "../flags.ts";
import type { RunInstruction } from "../instruction.ts";
import { parseHeredocMarker } from "../text/heredoc.ts";
import { baseOf, placeOf, type Statement } from "../text/statement.ts";
import { isEmptyCommand, parseCommand } from "./configuration.ts";
import { parseMounts } from "./mount.ts";

const declaredFlags: Readonly<Record<string, FlagKind>> = {
  mount: "texts",
  network: "text",
  security: "text",
};
const networks = ["default", "none", "host"] as const;
const securities = ["sandbox", "insecure"] as const;

/** Parses `RUN [flags] command`, `RUN ["program", ...]` or `RUN <<NAME`. */
export function parseRun(statement: Statement): RunInstruction {
  const flags = readFlags(statement, declaredFlags);
  const network = readChoice(statement, "network", flags.text("network"), networks);
  const security = readChoice(statement, "security", flags.text("security"), securities);
  const mounts = parseMounts(statement, flags.texts("mount"));
  const command = parseCommand(statement, statement.args);
  // Docker accepts a RUN without arguments: it runs a shell with an empty command.
  if (command.form === "exec" && isEmptyCommand(command)) {
    const at = placeOf(statement.args);
    statement.report({ message: "RUN requires at least one argument", expected: "a command", at });
  }
  return {
    ...baseOf(statement, "RUN", flags.list),
    ...withHeredocs(statement, command),
    mounts,
    network,
    security,
  };
}

/** Applies BuildKit's rules for here-documents in a RUN. */
function withHeredocs(
  statement: Statement,
  command: RunInstruction["command"],
): Pick<RunInstruction, "command" | "expand"> {
  const [document] = statement.heredocs;
  if (document === undefined || command.form !== "shell") return { command, expand: true };
  if (parseHeredocMarker(command.line) === undefined) {
    return { command: { form: "shell", line: command.line + statement.heredocText }, expand: true };
  }
  if (document.content.startsWith("#!")) {
    return { command: { form: "script", name: document.name, content: document.content }, expand: false };
  }
  return { command: { form: "shell", line: document.content }, expand: document.expand };
}

function readChoice<Choice extends string>(
  statement: Statement,
  name: string,
  value: string | undefined,
  choices: readonly Choice[],
): Choice | undefined {
  if (value === undefined) return undefined;
  const choice = choices.find((known) => known === value);
  if (choice !== undefined) return choice;
  const message = `invalid ${name} mode "${value}"`;
  const expected = `one of ${choices.join(", ")}`;
  statement.report({ message, expected, at: statement.placeOfFlag(name) });
  return undefined;
}
