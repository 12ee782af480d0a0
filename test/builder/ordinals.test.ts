/** The numbers that identify the steps of a Dockerfile from build to build, and the stage of each. */
import { expect, test } from "bun:test";
import { dialects } from "../../src/builder/dialect.ts";
import { ordinalsOf } from "../../src/builder/stages/running-stages.ts";
import { stepsOf } from "../../src/builder/step-place.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";

const text = `ARG A=1
FROM a AS one
RUN 1
COPY x /x
FROM b AS two
COPY --from=one /x /y
RUN 2
RUN 3
`;

test.each<[mode: "default" | "docker", makers: [instruction: number, ordinal: number, stage: number][]]>([
  [
    "default",
    [
      [2, 0, 0],
      [3, 1, 0],
      [6, 2, 1],
      [7, 3, 1],
    ],
  ],
  [
    "docker",
    [
      [2, 0, 0],
      [3, 1, 0],
      [5, 2, 1],
      [6, 3, 1],
      [7, 4, 1],
    ],
  ],
])("numbers the steps in the mode %s", (mode, makers) => {
  const dockerfile = parseDockerfile(text, "Dockerfile");
  const ordinals = ordinalsOf(dockerfile, dialects[mode]);
  const steps = stepsOf(dockerfile);
  const last = makers.length - 1;
  const [one, two] = [steps[1], steps[4]].map((step) => (step === undefined ? 0 : ordinals.ofStep(step)));
  for (const [instruction, ordinal, stage] of makers) {
    const step = steps[instruction];
    expect(step && ordinals.ofStep(step)).toBe(ordinal);
    expect(ordinals.stageOf(ordinal)).toBe(stage);
  }
  expect([0, 1].map(ordinals.ofCommit)).toEqual([last + 2, last + 1]);
  expect([last + 1, last + 2, last + 3].map(ordinals.stageOf)).toEqual([1, 0, undefined]);
  // Numbers of the triggers of a FROM's image.
  const triggers = [one, (one ?? 0) + 1, two, (two ?? 0) + 9_999, (two ?? 0) - 1];
  expect(triggers.map((ordinal) => ordinals.stageOf(ordinal ?? 0))).toEqual([0, 0, 1, 1, undefined]);
});
