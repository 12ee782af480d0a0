import { idOf } from "../../account-rows.ts";
import type { RunInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandExecWords, expandRunLine } from "../../dockerfile/words/run-substitution.ts";
import type { Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { quote } from "../../programs/quote.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";

/** The fields of a request for the command and its user. */
type ProcessFields = Pick<InstanceRequest, "command" | "args" | "shell" | "uid" | "gid">;

/** The command of a RUN, with variables replaced. */
export type ExpandedCommand =
  | { form: "shell"; line: string }
  | { form: "exec"; words: readonly string[] }
  /** No command: a layer that only has files. */
  | { form: "none" };

/**
 * Replaces the variables of a RUN. References to variables that `isSecret` accepts stay where a shell resolves them from its
 * environment. The exec form has no shell: there the value is in the command line, where the program expects it.
 */
export function expandCommand(
  instruction: RunInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
  isSecret?: (name: string) => boolean,
  isEmpty?: (name: string) => boolean,
): ExpandedCommand {
  const { command, expand } = instruction;
  switch (command.form) {
    case "shell":
      return {
        form: "shell",
        line: expand ? expandRunLine(command.line, lookup, escape, isSecret, isEmpty) : command.line,
      };
    case "script":
      return { form: "shell", line: runScript(command.content) };
    case "exec":
      return {
        form: "exec",
        words: requireProgram(expandExecWords(command.words, lookup, escape, isSecret, isEmpty)),
      };
  }
}

/**
 * Returns the command as Docker runs it: the shell gets the line as written and has all variables in its environment.
 *
 * @param shell of a SHELL instruction; empty: the default one
 */
export function commandAsWritten({ command }: RunInstruction, shell: readonly string[]): ExpandedCommand {
  if (command.form === "exec") return { form: "exec", words: requireProgram(command.words) };
  const line = command.form === "script" ? runScript(command.content) : command.line;
  return shell.length === 0 ? { form: "shell", line } : { form: "exec", words: [...shell, line] };
}

function requireProgram(words: readonly string[]): readonly string[] {
  if (words[0] !== "") return words;
  throw new BoughError("the program name of the RUN is empty", {
    kind: "usage",
    hint: "Is a variable in it not set?",
  });
}

/** Spec 1, "Directives": after USER a command is wrapped as `su -s /bin/sh -c '<cmd>' <name>`. */
export function processFields(command: ExpandedCommand, user: string | undefined): ProcessFields {
  if (command.form === "none") return { command: "", shell: false };
  const numeric = user === undefined ? undefined : numericUser(user);
  if (user === undefined || numeric !== undefined) {
    // A service accepts no empty command.
    if (command.form === "shell") return { command: command.line || ":", shell: true, ...numeric };
    const [program = "", ...args] = command.words;
    return { command: program, args, shell: false, ...numeric };
  }
  const line = command.form === "shell" ? command.line : command.words.map(quote).join(" ");
  return { command: `su -s /bin/sh -c ${quote(line)} ${quote(user)}`, shell: true };
}

/**
 * Parses `uid` or `uid:gid` of a USER. Numbers need no passwd entry, which `su` would require. Without a group, the service uses
 * the groups that the image gives that user.
 */
export function numericUser(user: string): { uid: number; gid?: number } | undefined {
  const match = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(user);
  if (match === null) return undefined;
  const [uid, gid] = [idOf(match[1]), idOf(match[2])];
  if (uid === undefined || (gid === undefined && match[2] !== undefined)) return undefined;
  return { uid, ...(gid === undefined ? {} : { gid }) };
}

const pathsPerCommand = 100;

/** Combines paths in as few commands as their arguments allow, as each command is a process. */
export function commandsFor(command: (paths: string) => string, paths: readonly string[]): string[] {
  const lines: string[] = [];
  for (let index = 0; index < paths.length; index += pathsPerCommand)
    lines.push(
      command(
        paths
          .slice(index, index + pathsPerCommand)
          .map(quote)
          .join(" "),
      ),
    );
  return lines;
}

/** Returns a command that runs a script. The kernel reads a `#!` line only from a file, which is removed afterwards. */
function runScript(content: string): string {
  let delimiter = "END";
  while (content.split("\n").includes(delimiter)) delimiter += "_";
  const body = content.endsWith("\n") ? content : `${content}\n`;
  return [
    "script=$(mktemp) || exit",
    `cat > "$script" <<'${delimiter}'`,
    `${body}${delimiter}`,
    'chmod 755 "$script"; "$script"; status=$?; rm -f "$script"; exit "$status"',
  ].join("\n");
}
