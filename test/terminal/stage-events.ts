/** The events of a build of three stages, for tests of views. */
import { type Emit, type EmitInStep, emitFor, type Ran } from "../../src/builder/events.ts";
import { showInstruction } from "../../src/builder/location.ts";
import { stepsOf } from "../../src/builder/step-place.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";

const threeStages = parseDockerfile(
  [
    ...["FROM base:1 AS build", "RUN make all", "RUN make install"],
    ...["FROM base:1", "RUN npm test"],
    ...["FROM base:1 AS docs", "COPY --from=build /srv /srv", "RUN mkdocs build"],
  ].join("\n"),
  "Dockerfile",
);

export const operation = "00000000-0000-4000-8000-000000000001";

export interface StageStep {
  emit: EmitInStep;
  /** To standard output. */
  out(text: string): void;
  /** To standard error. */
  err(text: string): void;
  ran(fields?: Partial<Ran>): void;
  end(): void;
}

/** Begins the step on a line of the Dockerfile. In the default one, lines 2 and 3 belong to `build`, 5 to the second stage. */
export function beginStep(line: number, emit: Emit, dockerfile = threeStages): StageStep {
  const steps = stepsOf(dockerfile);
  const step = steps[line - 1];
  if (step === undefined) throw new Error(`no step on line ${line}`);
  const ofStage = steps.filter(({ stage }) => stage?.index === step.stage?.index);
  const emitInStep = emitFor(step, emit);
  const inStage = { step: ofStage.indexOf(step) + 1, steps: ofStage.length };
  const { stage, instruction } = step;
  emitInStep({ type: "step", instruction: showInstruction(instruction), steps: steps.length, inStage });
  const nothing = { bytes: 0, truncated: false };
  const made = { layer: null, image: null, operation: null, cached: null, seconds: 0 };
  return {
    emit: emitInStep,
    out: (text) => emitInStep({ type: "output", chunk: { stream: "stdout", text } }),
    err: (text) => emitInStep({ type: "output", chunk: { stream: "stderr", text } }),
    ran: (fields) =>
      emitInStep({ type: "ran", operation, succeeded: true, stdout: nothing, stderr: nothing, ...fields }),
    end: () =>
      emitInStep({
        type: "step-end",
        record: { stage, step: step.step, line, instruction: instruction.title, ...made },
      }),
  };
}
