/** Scripts of RUN here-documents as files. */
import { posix } from "node:path";
import { type ExpandedCommand, quote } from "../commands/command.ts";
import { stageText } from "../copy/staged-items.ts";
import type { RunMount, RunMounts } from "../mounts/run-mounts.ts";
import { root } from "../owners/ownership.ts";
import type { ServiceSupport } from "../service-support.ts";
import type { Step } from "./step.ts";

/** BuildKit's place for them. */
const directory = "/dev/pipes";

/**
 * Returns the step with its script as a mounted file, as in BuildKit, if the service has mounts: a command line that has the whole
 * script is limited to 128 KiB. The chain hash is that of the script in the command line.
 */
export async function withScriptFile(step: Step, supports: Pick<ServiceSupport, "mounts">): Promise<Step> {
  const { script } = step;
  if (script === undefined || !(await supports.mounts()).secrets) return step;
  const name = /^[^/]+$/.test(script.name) && !/^\.\.?$/.test(script.name) ? script.name : "script";
  const file = stageText(script.content, 0o755, { ...root, line: step.line });
  const files = new Map([[name, file]]);
  const mount: RunMount = {
    spec: { type: "bind", target: directory, from: undefined, source: "/", readonly: true },
    source: { kind: "files", files },
  };
  const path = posix.join(directory, name);
  return {
    ...step,
    command: runFile(step.command, path),
    mounts: {
      ...(step.mounts ?? { ...noMounts, instruction: script.instruction }),
      mounts: [mount, ...(step.mounts?.mounts ?? [])],
      files: new Map([...(step.mounts?.files ?? []), [path, file]]),
    },
  };
}

const noMounts: Omit<RunMounts, "instruction"> = {
  mounts: [],
  key: "",
  files: new Map(),
  images: [],
  losable: [],
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
