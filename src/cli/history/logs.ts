import { BoughError } from "../../errors.ts";
import type { BuildRecord, BuildStep } from "../../history/build-record.ts";
import { stepCounter } from "../../terminal/step-row.ts";
import { formatOutput } from "../../terminal/terminal-text.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { buildArgument, requireBuild, requireRecord, withHistory } from "./find-build.ts";

export const logs = command({
  name: "logs",
  description: "Print what the commands of a build have printed: all of it, or that of one step.",
  args: {
    build: buildArgument,
    step: {
      type: "positional",
      required: false,
      description: "The step's number, as `bough history show` has it",
    },
  },
  run: printLogs,
  examples: [
    ["history logs", "of the last build"],
    ["history logs 3kx9 7", "of its step 7 alone"],
  ],
  agentNote:
    "Of long output, the beginning and the end of each step are kept. The values of --secret and of build arguments named like secrets are masked.",
});

interface StepLog {
  step: BuildStep;
  text: string;
}

async function printLogs(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  const [build, given] = values.positionals;
  const number = positiveInteger(given, "STEP", "`bough history show BUILD` numbers the steps.");
  const { record, found } = await withHistory(runtime, (builds, history) => {
    const record = requireRecord(requireBuild(build, builds), history);
    return { record, found: readLogs(record, number, (step) => history.output(record.id, step)) };
  });
  const format = (text: string) => formatOutput(text, runtime.stdout);
  printResult(invocation, {
    id: record.id,
    json: found.map(({ step, text }) => ({
      step: step.step,
      line: step.line,
      instruction: step.title,
      log: text,
    })),
    table: () =>
      number !== undefined
        ? found.map(({ text }) => format(text)).join("")
        : found.map(({ step, text }) => `${heading(step)}\n${format(text)}`).join(""),
  });
}

/** Returns the recorded output in the order of the Dockerfile, or only that of step `number`. */
function readLogs(
  record: BuildRecord,
  number: number | undefined,
  read: (step: number) => string | undefined,
): StepLog[] {
  const steps = record.steps.filter((step) => !step.isRest && (number === undefined || step.step === number));
  if (number !== undefined && steps.length === 0)
    throw new BoughError(`the build ${record.id} has no step ${number}`, {
      hint: "`bough history show` numbers its steps.",
    });
  return steps
    .toSorted((one, other) => one.step - other.step)
    .flatMap((step): StepLog[] => {
      const text = step.output === null ? undefined : read(step.step);
      return text === undefined ? [] : [{ step, text: text.endsWith("\n") ? text : `${text}\n` }];
    });
}

function heading(step: BuildStep): string {
  return `${visible(stepCounter({ ...step, inStage: step.inStage ?? undefined }))} ${visible(step.title)}`;
}
