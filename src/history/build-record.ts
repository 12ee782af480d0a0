import { basename } from "node:path";
import type { Explanation } from "../builder/cache/step-difference.ts";
import type { CountedAsDocker, ShownInstruction, StepInStage } from "../builder/events.ts";
import type { StageLabel } from "../builder/step-place.ts";

/** How a build has ended. `running`: it has not ended, or its process was killed. */
export const buildStatuses = ["running", "succeeded", "failed", "interrupted"] as const;
export type BuildStatus = (typeof buildStatuses)[number];

/** The command that a build was started by. */
export const buildDoors = ["build", "bake", "docker", "mcp"] as const;
export type BuildDoor = (typeof buildDoors)[number];

/** A build's settings, which are known before its first step. They contain no secret. */
export interface BuildOrigin {
  /** The first tag, else the name of the context's directory; with the target of a bake file. */
  name: string;
  door: BuildDoor;
  /** True in a pipeline, by the variable CI. */
  isCi: boolean;
  /** The key of its session. */
  session: string;
  /** The path of the context, or the address that it was fetched from. */
  context: string;
  /** The path of the Dockerfile, relative to the context if it is in it. */
  dockerfile: string;
  /** `--target`. */
  target: string | null;
  /** The target of a bake file. */
  bakeTarget: string | null;
  platforms: readonly string[];
  /** `--tag`. */
  tags: readonly string[];
  /** `--docker` or not. */
  dialect: string;
  /** False with `--no-cache`. */
  usesCache: boolean;
  /** The file of `--lock`. */
  lock: string | null;
  /** The service: its address, or `embedded engine`. */
  service: string;
  /** `--build-arg`; the value of a secret is `null`. */
  buildArgs: readonly { name: string; value: string | null }[];
  /** The version of bough. */
  version: string;
}

/** An external input of a build. */
export type BuildInput =
  | { kind: "image"; name: string; image: string; digest: string | null }
  | { kind: "url"; name: string; sha256: string }
  | { kind: "repository"; name: string; commit: string };

/**
 * `cached`: its layer was there. `made`: its layer was made. `done`: it makes no layer. `stopped`: something else ended it, such as
 * Ctrl-C or the failure of another stage.
 */
export type StepOutcome = "cached" | "made" | "done" | "failed" | "stopped";

/** A step of a build. Times are milliseconds since the build's start. */
export interface BuildStep {
  /** The instruction's number in the Dockerfile, from 1. Steps of further platforms follow. */
  step: number;
  /** The number of instructions. */
  steps: number;
  stage: StageLabel | null;
  inStage: StepInStage | null;
  /** Its number as BuildKit counts; `null` if BuildKit does not show it. */
  counted: CountedAsDocker | null;
  line: number;
  instruction: ShownInstruction["name"];
  title: string;
  /** True for the layer of files that were staged up to a stage's end: it belongs to no instruction alone. */
  isRest: boolean;
  start: number;
  end: number;
  /** Indexes of the stages that it waited for. */
  needs: readonly number[];
  outcome: StepOutcome;
  /** Why its layer was not in the cache. */
  reason: Explanation | null;
  /** The scope that its cached layer came from. */
  scope: string | null;
  layer: string | null;
  image: string | null;
  operation: string | null;
  addedBytes: number | null;
  uploadedBytes: number;
  /** Imports, uploads, commands. */
  activities: readonly BuildActivity[];
  /** The number of characters of its output, and of those that are kept. */
  output: { length: number; kept: number } | null;
}

interface BuildActivity {
  name: string;
  start: number;
  end: number;
}

/** A build that has ended, or has been running for a while. */
export interface BuildRecord {
  id: string;
  status: BuildStatus;
  /** Milliseconds since the epoch. */
  startedAt: number;
  seconds: number;
  origin: BuildOrigin;
  /** The steps in the order in which they began. */
  steps: readonly BuildStep[];
  inputs: readonly BuildInput[];
  warnings: readonly { message: string; line: number | null }[];
  result: BuiltImage | null;
  error: { message: string; hint: string | null } | null;
}

/** A record, with the output of its steps by number. */
export interface BuildWithOutput {
  record: BuildRecord;
  outputs: ReadonlyMap<number, string>;
}

interface BuiltImage {
  image: string;
  platforms: readonly { platform: string; image: string }[];
  tags: readonly string[];
  exported: readonly { destination: string; digest: string }[];
}

/** Returns what identifies an input's content: its name may mean something else later. */
export function inputIdentity(input: BuildInput): string {
  switch (input.kind) {
    case "image":
      return input.digest ?? input.image;
    case "url":
      return `sha256:${input.sha256}`;
    case "repository":
      return input.commit;
  }
}

/** Returns steps in the order of the Dockerfile. */
export function inOrder(steps: readonly BuildStep[]): BuildStep[] {
  return steps.toSorted((one, other) => one.step - other.step || one.start - other.start);
}

/** Names a build by the last part of its context, and its Dockerfile if that has another name. */
export function nameOfContext({ context, dockerfile }: Pick<BuildOrigin, "context" | "dockerfile">): string {
  const directory = basename(context.replace(/[?#].*$/, "")) || context;
  return dockerfile === "Dockerfile" || dockerfile === "" ? directory : `${directory}/${dockerfile}`;
}

/** Counts steps that make a layer, without images of FROM, and those whose layer was in the cache. */
export function countCached(steps: readonly BuildStep[]): { layers: number; cached: number } {
  const layers = steps.filter(
    ({ instruction, outcome }) => instruction !== "FROM" && outcome !== "done" && outcome !== "stopped",
  );
  return { layers: layers.length, cached: layers.filter(({ outcome }) => outcome === "cached").length };
}
