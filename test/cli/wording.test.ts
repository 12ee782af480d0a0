/** The words of each door: a message names commands and options as its users write them, or leaves out what they lack. */
import { expect, test } from "bun:test";
import { failureForAgent, messageForAgent } from "../../src/cli/mcp/agent-wording.ts";
import { dockerWords } from "../../src/cli/plugin/docker-command-line.ts";
import { latestStep } from "../../src/cli/run/execution-options.ts";
import { requireFailedStep } from "../../src/cli/run/failed-step.ts";
import { missingCommandError } from "../../src/cli/run/image-command.ts";
import { BoughError, usageError } from "../../src/errors.ts";
import { lines, type Message, sentences, wording } from "../../src/messages/wording.ts";
import type { Store } from "../../src/store/store.ts";
import { describeForDocker } from "../../src/terminal/failure.ts";
import { createLog, prefixLog } from "../../src/terminal/log.ts";
import { createSolveProgress } from "../../src/terminal/solve-progress.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";

const failed = (hint: Message | undefined) => failureForAgent({ wording: "failed", hint });
const inSession = { session: "build:1", isLine: true };

test.each<[hint: Message, line: string, agent: string | undefined]>([
  [
    wording`${{ command: "images" }} lists its images${wording`; ${{ command: "images import", words: ["REFERENCE"] }} imports one`}.`,
    "`bough images` lists its images; `bough images import REFERENCE` imports one.",
    "The tool `images` lists its images.",
  ],
  [
    wording`${wording`${{ command: "session checkout", words: ["BRANCH"], session: "a b" }} switches; `}${{ command: "use", words: ["IMAGE"], session: "a b" }} sets an image.`,
    "`bough -S 'a b' session checkout BRANCH` switches; `bough -S 'a b' use IMAGE` sets an image.",
    "The tool `run` with session: a b, image: IMAGE, keep: true sets an image.",
  ],
  [
    wording`${wording`${{ command: "bake" }} builds targets.`} Or tag the target.${wording` ${{ command: "doctor" }} says more.`}`,
    "`bough bake` builds targets. Or tag the target. `bough doctor` says more.",
    "Or tag the target.",
  ],
  [
    wording`Give more digits${wording`; ${{ command: "ps", options: [{ option: "all" }] }} lists them`}.`,
    "Give more digits; `bough ps --all` lists them.",
    "Give more digits; the tool `operations` with all: true lists them.",
  ],
  [
    wording`${{ command: "session show", words: ["k"] }} shows them.`,
    "`bough session show k` shows them.",
    "The tool `sessions` with session: k shows them.",
  ],
  [
    wording`If that is right, \`${{ option: "update-lock" }}=alpine:3.20\` takes what it is now.`,
    "If that is right, `--update-lock=alpine:3.20` takes what it is now.",
    "If that is right, `update_lock=alpine:3.20` takes what it is now.",
  ],
  [
    wording`Allow it more time with ${{ option: "timeout", value: "SECONDS" }}.`,
    "Allow it more time with --timeout SECONDS.",
    "Allow it more time with timeout_seconds: SECONDS.",
  ],
  [
    wording`Killed: out of memory${wording`; raise it with ${{ option: "memory" }}`}.`,
    "Killed: out of memory; raise it with --memory.",
    "Killed: out of memory.",
  ],
  [
    sentences(["Give a number.", wording`${{ option: "no-config" }} runs as root.`, "Or none."]) ?? "",
    "Give a number. --no-config runs as root. Or none.",
    "Give a number. Or none.",
  ],
  [
    lines(
      [
        wording`  ${{ command: "shell", options: [{ option: "failed-step" }], service: ["--local"], ...inSession }}`,
        wording`  ${{ command: "run", options: [{ option: "disposable", letter: "D" }, { option: "failed-step" }], words: ["--", "COMMAND"], service: ["--local"], ...inSession }}`,
      ],
      "To open the failed step:",
    ) ?? "",
    "To open the failed step:\n  bough --local -S build:1 shell --failed-step\n  bough --local -S build:1 run -D --failed-step -- COMMAND",
    "To open the failed step:\n  the tool `run` with session: build:1, failed_step: true",
  ],
  [
    lines([
      "A program was not found in the image.",
      lines([wording`  ${{ command: "session checkout", words: ["layer:1"], ...inSession }}`], "To open it:"),
    ]) ?? "",
    "A program was not found in the image.\nTo open it:\n  bough -S build:1 session checkout layer:1",
    "A program was not found in the image.",
  ],
  [
    wording`${{ command: "kill", options: [{ option: "all" }] }} ends them.`,
    "`bough kill --all` ends them.",
    undefined,
  ],
  [
    "Is this an image service? See `bough images`.",
    "Is this an image service? See `bough images`.",
    "Is this an image service? See `bough images`.",
  ],
])("a hint: %s", (hint, line, agent) => {
  expect(String(hint)).toBe(line);
  expect(failed(hint)).toBe(agent === undefined ? "failed" : `failed\n${agent}`);
});

const neverFailed: Pick<Store, "failedSteps"> = {
  failedSteps: { set() {}, get: () => undefined, latestSession: () => undefined, delete() {} },
};

test.each<[name: string, fails: () => unknown, line: string, agent: string]>([
  [
    "no command",
    () => {
      throw missingCommandError("The image has none.");
    },
    "bough run: no command given. The image has none.\nGive it after IMAGE or --, as in: bough run app:dev ls -l /",
    "The tool `run`: no command given. The image has none.",
  ],
  [
    "no failed step",
    () => requireFailedStep("k", neverFailed),
    "the latest build of session k has not failed at a step\nA failed build prints the line to paste: bough -S build:<hash> shell --failed-step",
    "the latest build of session k has not failed at a step",
  ],
  [
    "another image than the failed step's",
    () => latestStep(true),
    "--failed-step runs in that step's image: no other image can be given\nGive the session with -S, and the command after --: bough -S build:<hash> run --failed-step -- COMMAND",
    "failed_step runs in that step's image: no other image can be given",
  ],
])("an agent gets no command line: %s", (_, fails, line, agent) => {
  const error = failureFrom(fails);
  expect(`${error.message}\n${error.hint}`).toBe(line);
  expect(failureForAgent(error)).toBe(agent);
});

function failureFrom(work: () => unknown): BoughError {
  try {
    work();
  } catch (error) {
    if (error instanceof BoughError) return error;
  }
  throw new Error("it did not fail");
}

test.each<[message: Message, agent: string]>([
  [wording`only a build with ${{ option: "docker" }} keeps it`, "only a build with docker: true keeps it"],
  [wording`${{ option: "build-arg" }} A has no effect`, "build_args A has no effect"],
  [wording`${{ option: "memory" }} takes a size`, "--memory takes a size"],
  [wording`as in ${{ option: "network", value: "host" }}`, "as in network: host"],
  ["RUN make --target prod --docker: it is quoted", "RUN make --target prod --docker: it is quoted"],
])("a message that has to be whole: %s", (message, agent) => expect(messageForAgent(message)).toBe(agent));

test("in the place of docker's builder, options and commands have docker's names", () => {
  const message = wording`${{ option: "dockerfile" }} a: there is no such file`;
  const hint = wording`${{ command: "build", options: [{ option: "pull" }] }} asks for it.`;
  const { reason } = describeForDocker(usageError(message, hint), dockerWords);
  expect(reason).toBe("ERROR: --file a: there is no such file. `docker buildx build --pull` asks for it.\n");
  let written = "";
  const write = (text: string) => {
    written += text;
  };
  const log = createLog("info", write, dockerWords);
  log.warn(message);
  prefixLog(log, "app").error(hint);
  expect(written).toBe(
    "[WARN] --file a: there is no such file\n[ERROR] app: `docker buildx build --pull` asks for it.\n",
  );
  written = "";
  createSolveProgress({
    write,
    clock: createManualClock(),
    logLevel: "info",
    wordsOf: dockerWords,
  }).log.warn(message);
  const { warnings } = JSON.parse(written.trim().split("\n").at(-1) ?? "");
  expect(Buffer.from(warnings[0].short, "base64").toString()).toBe("--file a: there is no such file");
});
