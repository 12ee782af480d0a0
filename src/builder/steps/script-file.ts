/** Scripts of RUN here-documents as files. */
import { posix } from "node:path";
import type { RunInstruction } from "../../dockerfile/instruction.ts";
import { quote } from "../../programs/quote.ts";
import type { ExpandedCommand } from "../commands/command.ts";
import { stageText } from "../copy/staged-items.ts";
import type { RunMount, RunMounts } from "../mounts/run-mounts.ts";
import { root } from "../owners/ownership.ts";
import type { ServiceSupport } from "../service-support.ts";

/** The directory that BuildKit uses, too. */
const directory = "/dev/pipes";

/** The command of a RUN with its mounts. */
export interface MountedCommand {
  instruction: RunInstruction;
  /** References to secrets are left to the shell, which has them in its environment. */
  command: ExpandedCommand;
  mounts: RunMounts | undefined;
}

/**
 * Returns the command with its script as a mounted file, as in BuildKit, if the service has mounts: a command line that has the whole
 * script is limited to 128 KiB. The chain hash is that of the script in the command line.
 */
export async function withScriptFile(
  { instruction, command, mounts }: MountedCommand,
  supports: Pick<ServiceSupport, "mounts">,
): Promise<MountedCommand> {
  const { command: script, range } = instruction;
  if (script.form !== "script" || !(await supports.mounts()).secrets) return { instruction, command, mounts };
  const name = /^[^/]+$/.test(script.name) && !/^\.\.?$/.test(script.name) ? script.name : "script";
  const file = stageText(script.content, 0o755, { ...root, line: range.start });
  const files = new Map([[name, file]]);
  const mount: RunMount = {
    spec: { type: "bind", target: directory, from: undefined, source: "/", readonly: true },
    source: { kind: "files", files },
  };
  const path = posix.join(directory, name);
  return {
    instruction,
    command: runFile(command, path),
    mounts: {
      ...(mounts ?? { ...noMounts, instruction }),
      mounts: [mount, ...(mounts?.mounts ?? [])],
      files: new Map([...(mounts?.files ?? []), [path, file]]),
    },
  };
}

const noMounts: Omit<RunMounts, "instruction"> = {
  mounts: [],
  key: "",
  files: new Map(),
  images: [],
  evictable: [],
};

function runFile(command: ExpandedCommand, path: string): ExpandedCommand {
  switch (command.form) {
    case "shell":
      return { form: "shell", line: quote(path) };
    case "exec":
      return { form: "exec", words: [...command.words.slice(0, -1), quote(path)] };
    case "none":
      return command;
  }
}
