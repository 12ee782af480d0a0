import type { RunInstruction } from "../dockerfile/instruction.ts";
import { expandRunLine } from "../dockerfile/run-substitution.ts";
import { expandHeredoc, type Lookup } from "../dockerfile/words.ts";
import type { InstanceRequest } from "../service/types.ts";

/** The part of a request that says what to run, and as whom. */
export type ProcessFields = Pick<InstanceRequest, "command" | "args" | "shell" | "uid" | "gid">;

/** What a RUN comes to, once its variables are replaced. */
export type ExpandedCommand = { form: "shell"; line: string } | { form: "exec"; words: readonly string[] };

export function expandCommand(
  instruction: RunInstruction,
  lookup: Lookup,
  escape: "\\" | "`",
): ExpandedCommand {
  const { command, expand } = instruction;
  switch (command.form) {
    case "shell":
      return { form: "shell", line: expand ? expandRunLine(command.line, lookup, escape) : command.line };
    case "script":
      return { form: "shell", line: runScript(command.content) };
    case "exec": {
      const script = scriptIndex(command.words);
      return {
        form: "exec",
        // An exec form has no shell to give an unknown name its empty value, so that happens here; but `sh -c <script>`
        // does have one, and its script's own variables must reach it.
        words: command.words.map((word, index) =>
          index === script ? expandRunLine(word, lookup, escape) : expandHeredoc(word, lookup, escape),
        ),
      };
    }
  }
}

/** Spec 1, "Directives": after USER a command is wrapped as `su -s /bin/sh -c '<cmd>' <name>`. */
export function processFields(command: ExpandedCommand, user: string | undefined): ProcessFields {
  const numeric = user === undefined ? undefined : numericUser(user);
  if (user === undefined || numeric !== undefined) {
    if (command.form === "shell") return { command: command.line, shell: true, ...numeric };
    const [program = "", ...args] = command.words;
    return { command: program, args, shell: false, ...numeric };
  }
  const line = command.form === "shell" ? command.line : command.words.map(quote).join(" ");
  return { command: `su -s /bin/sh -c ${quote(line)} ${quote(user)}`, shell: true };
}

/** `uid` or `uid:gid` of a USER: no passwd entry is needed for these, and `su` would demand one. */
export function numericUser(user: string): { uid: number; gid: number } | undefined {
  const match = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(user);
  return match === null ? undefined : { uid: Number(match[1]), gid: Number(match[2] ?? 0) };
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

const shells = /^(.*\/)?(sh|ash|bash|dash|ksh|mksh|zsh)$/;

/** Where `words` are a shell with `-c`, the index of the script. */
function scriptIndex(words: readonly string[]): number {
  if (!shells.test(words[0] ?? "")) return -1;
  const option = words.findIndex((word, index) => index > 0 && /^-[a-zA-Z]*c[a-zA-Z]*$/.test(word));
  return option < 0 ? -1 : option + 1;
}
