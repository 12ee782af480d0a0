/** Records of builds for tests. */
import type { BuildOrigin, BuildRecord, BuildStep } from "../../src/history/build-record.ts";

export const start = Date.parse("2026-03-01T10:00:00Z");

export function originOf(name: string, given: Partial<BuildOrigin> = {}): BuildOrigin {
  return {
    ...{ name, door: "build", isCi: false, session: "build:0123456789abcdef", context: `/src/${name}` },
    ...{
      dockerfile: "Dockerfile",
      target: null,
      bakeTarget: null,
      platforms: [],
      tags: [],
      dialect: "docker",
    },
    ...{ usesCache: true, lock: null, service: "embedded engine", buildArgs: [], version: "1.0.0" },
    ...given,
  };
}

export function stepOf(step: number, title: string, given: Partial<BuildStep> = {}): BuildStep {
  const instruction = /^(FROM|COPY|CMD)\b/.exec(title)?.[1] ?? "RUN";
  return {
    ...{
      step,
      steps: 20,
      stage: { index: 0, name: null },
      inStage: null,
      counted: null,
      line: step,
      title,
      isRest: false,
    },
    ...{
      instruction: instruction as BuildStep["instruction"],
      start: 0,
      end: 100,
      needs: [],
      outcome: "made",
    },
    ...{ reason: null, scope: null, layer: null, image: null, operation: null, addedBytes: null },
    ...{ uploadedBytes: 0, activities: [], output: null },
    ...given,
  };
}

export function recordOf(
  id: string,
  steps: readonly BuildStep[] = [],
  given: Partial<BuildRecord> = {},
): BuildRecord {
  return {
    ...{ id, status: "succeeded", startedAt: start, seconds: 1, origin: originOf("app"), steps, inputs: [] },
    ...{ warnings: [], result: null, error: null },
    ...given,
  };
}
