import { idOf } from "../../account-rows.ts";
import type { RunInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandExecWords, expandRunLine } from "../../dockerfile/words/run-substitution.ts";
import type { Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";

/** The part of a request that says what to run, and as whom. */
type ProcessFields = Pick<InstanceRequest, "command" | "args" | "shell" | "uid" | "gid">;

/** What a RUN comes to, once its variables are replaced. */
export type ExpandedCommand =
  | { form: "shell"; line: string }
  | { form: "exec"; words: readonly string[] }
  /** A layer of files alone. */
  | { form: "none" };

/**
 * `isSecret`: references to such variables stay where a shell resolves them, with the value from its environment. In the exec
 * form there is none: then the value is in the command line, where the program wants it.
 */
export function expandCommand(
  instruction: RunInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
  isSecret?: (name: string) => boolean,
): ExpandedCommand {
  const { command, expand } = instruction;
  switch (command.form) {
    case "shell":
      return {
        form: "shell",
        line: expand ? expandRunLine(command.line, lookup, escape, isSecret) : command.line,
      };
    case "script":
      return { form: "shell", line: runScript(command.content) };
    case "exec":
      return {
        form: "exec",
        words: requireProgram(expandExecWords(command.words, lookup, escape, isSecret)),
      };
  }
}

/**
 * What Docker runs: the line goes to the shell as it stands, which has all variables in its environment.
 *
 * @param shell of a SHELL instruction; empty: the usual one
 */
export function commandAsWritten({ command }: RunInstruction, shell: readonly string[]): ExpandedCommand {
  if (command.form === "exec") return { form: "exec", words: requireProgram(command.words) };
  const line = command.form === "script" ? runScript(command.content) : command.line;
  return shell.length === 0 ? { form: "shell", line } : { form: "exec", words: [...shell, line] };
}

function requireProgram(words: readonly string[]): readonly string[] {
  if (words[0] !== "") return words;
  throw new BoughError("the first word of the RUN, which names the program, is empty", {
    kind: "usage",
    hint: "Is a variable in it not set?",
  });
}

/** Spec 1, "Directives": after USER a command is wrapped as `su -s /bin/sh -c '<cmd>' <name>`. */
export function processFields(command: ExpandedCommand, user: string | undefined): ProcessFields {
  if (command.form === "none") return { command: "", shell: false };
  const numeric = user === undefined ? undefined : numericUser(user);
  if (user === undefined || numeric !== undefined) {
    // A service takes no command that is empty.
    if (command.form === "shell") return { command: command.line || ":", shell: true, ...numeric };
    const [program = "", ...args] = command.words;
    return { command: program, args, shell: false, ...numeric };
  }
  const line = command.form === "shell" ? command.line : command.words.map(quote).join(" ");
  return { command: `su -s /bin/sh -c ${quote(line)} ${quote(user)}`, shell: true };
}

/**
 * `uid` or `uid:gid` of a USER: no passwd entry is needed for these, and `su` would demand one. Without a group it is for the
 * service to say which ones the image gives that user.
 */
export function numericUser(user: string): { uid: number; gid?: number } | undefined {
  const match = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(user);
  if (match === null) return undefined;
  const [uid, gid] = [idOf(match[1]), idOf(match[2])];
  if (uid === undefined || (gid === undefined && match[2] !== undefined)) return undefined;
  return { uid, ...(gid === undefined ? {} : { gid }) };
}

/** One word for a POSIX shell, whatever is in it. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A script with a `#!` line has to be a file for the kernel to read that line; it leaves none behind. */
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
