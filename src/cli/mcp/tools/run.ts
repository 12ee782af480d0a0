import { z } from "zod";
import { BoughError, usageError } from "../../../errors.ts";
import { sentences, wording } from "../../../messages/wording.ts";
import { StoppedCommandError } from "../../../service/operations/outcome.ts";
import { sessionKey } from "../../references/session-argument.ts";
import { latestStep } from "../../run/execution-options.ts";
import { parseFileArgument } from "../../run/file-argument.ts";
import { missingCommandError, runDefaults, type UnresolvedRun } from "../../run/image-command.ts";
import { describeRun, performRun } from "../../run/run-to-end.ts";
import { connectQuietly } from "../../service/connection.ts";
import { lastBytes } from "../output-tail.ts";
import { additive, type Tool } from "../tool.ts";
import { surroundingsFor } from "../tool-call.ts";
import { image, maxBytes, network, session, timeoutSeconds, toolInput } from "./fields.ts";

const input = toolInput({
  command: z.array(z.string()).min(1).optional().describe("Program and arguments, run without a shell"),
  script: z.string().min(1).optional().describe("Instead of a command: a shell expression, for `sh -c`"),
  session,
  image,
  keep: z
    .boolean()
    .default(false)
    .describe(
      "Make the result the session's new image, with any exit code. Otherwise the changes are thrown away",
    ),
  failed_step: z
    .boolean()
    .optional()
    .describe(
      "Run in place of the step at which the session's latest build failed: with its files, ENV, WORKDIR, USER",
    ),
  env: z.record(z.string().min(1), z.string()).optional(),
  cwd: z.string().startsWith("/").optional().describe("Working directory (default: the image's, else /)"),
  user: z.string().min(1).optional().describe("USER[:GROUP], by name or number"),
  stdin: z.string().optional(),
  local_files: z
    .array(z.string().min(1))
    .optional()
    .describe(
      "Files and directories of this machine to copy into the image first: HOST[:PATH][:uN][:gN][:mMODE]",
    ),
  timeout_seconds: timeoutSeconds,
  network,
  max_output_bytes: maxBytes(64 * 1024),
});

const output = z.object({
  operation: z.string(),
  exitCode: z.number(),
  image: z.string().nullable().describe("The session's new image; null if the changes were thrown away"),
  session: z.string().nullable(),
  branch: z.string().nullable(),
  stdout: z.string(),
  stderr: z.string(),
  truncated: z
    .boolean()
    .describe("True if only the last parts of stdout and stderr are returned; the tool `logs` has more"),
});

export const run: Tool<typeof input, typeof output> = {
  name: "run",
  title: "Run a command in an image",
  description:
    "Run a command in the session's image or another one, in a sandbox. Without command and script, it runs the image's ENTRYPOINT and CMD. An exit code other than 0 is not an error of this tool: look at exitCode. Cancelling ends the command.",
  input,
  output,
  annotations: additive,
  async perform(given, call) {
    const { command, script, session, image, keep, env = {}, cwd, user, stdin, local_files = [] } = given;
    if (command !== undefined && script !== undefined)
      throw usageError(
        "command and script cannot be used together",
        "Give the program and its arguments as command, or a line for the shell as script.",
      );
    call.root.requireLocalFiles(local_files);
    call.report(script ?? command?.join(" ") ?? "the image's command");
    const surroundings = surroundingsFor(call, { session, stdin });
    const source: UnresolvedRun["source"] =
      given.failed_step === true
        ? latestStep(image !== undefined)
        : image === undefined
          ? { kind: "session" }
          : { kind: "image", image, pull: "never" };
    if (source.kind === "latest step" && (command ?? script) === undefined)
      throw missingCommandError(wording`${{ option: "failed-step" }} needs one.`);
    const request: UnresolvedRun = {
      ...runDefaults,
      ...{ key: sessionKey(surroundings), source, env, cwd, user, network: given.network ?? "default" },
      command: commandOf(given),
      files: local_files.map(parseFileArgument),
      timeout: given.timeout_seconds,
      isDisposable: !keep,
    };
    await using connection = await connectQuietly(surroundings);
    const ended = await performRun(request, surroundings, connection).catch((error: unknown) => {
      throw withOutput(error, given.max_output_bytes);
    });
    const { stdout, stderr, truncated, ...rest } = describeRun(ended);
    const [out, err] = [lastBytes(stdout, given.max_output_bytes), lastBytes(stderr, given.max_output_bytes)];
    return {
      ...rest,
      exitCode: ended.exitCode,
      stdout: out.text,
      stderr: err.text,
      truncated: truncated || out.isCut || err.isCut,
    };
  },
};

function commandOf({ command, script }: z.infer<typeof input>): UnresolvedRun["command"] {
  if (script !== undefined) return { form: "shell", line: script };
  return command === undefined
    ? { form: "image", entrypoint: undefined, args: [] }
    : { form: "exec", words: command };
}

/** Adds the output of a command that was stopped, which may tell why it did not end. */
function withOutput(error: unknown, maxBytes: number): unknown {
  if (!(error instanceof StoppedCommandError)) return error;
  const { wording: message, hint, outcome } = error;
  const parts = (["stdout", "stderr"] as const).flatMap((stream) => {
    const { text, isCut } = lastBytes(outcome[stream].text, maxBytes);
    const isPart = isCut || outcome[stream].truncated;
    return text === "" ? [] : [`${stream}${isPart ? ", its end" : ""}:`, text.trimEnd()];
  });
  return new BoughError(wording`${message}\n${parts.join("\n")}`, {
    hint: sentences([hint, wording`${{ command: "logs" }} has the output of the operation.`]),
    cause: error,
  });
}
