import type { InputObserver } from "../../../builder/contexts/named-context.ts";
import type { Emit } from "../../../builder/events.ts";
import type { BuildResult } from "../../../builder/result.ts";
import { type GivenSecrets, secretTexts } from "../../../builder/state/secrets.ts";
import { steadyTime } from "../../../clock.ts";
import { secretsAmong } from "../../../dockerfile/secrets.ts";
import { messageOf } from "../../../errors.ts";
import type {
  BuildInput,
  BuildOrigin,
  BuildRecord,
  BuildStatus,
  BuildWithOutput,
} from "../../../history/build-record.ts";
import type { TimedEvent } from "../../../history/record-build.ts";
import type { Surroundings } from "../../command-line/command.ts";
import { stateDirectory } from "../../process/runtime.ts";
import type { BuildInputs } from "../inputs.ts";
import type { BuildRequest } from "../request.ts";
import { originOf } from "./origin.ts";
import { createRecordedOutput } from "./recorded-output.ts";

/** A build as it will be seen afterwards. Nothing that fails here fails the build. */
export interface Recording {
  /** The name of the build in the history. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Begins the record once it is known what is built. Before that, a failure is not recorded. */
  begin(inputs: BuildInputs, about: { session: string; service: string }): void;
  /** Masks the values of secrets wherever they occur. */
  hide(secrets: GivenSecrets): void;
  /** Returns a text with the secrets masked. */
  mask(text: string): string;
  /** Sets the process, by which others see whether the build still runs. */
  setOwner(id: string): void;
  /** Notes an event. */
  note: Emit;
  /** Returns an observer that passes on what it is told. */
  observe(inputs: InputObserver | undefined): InputObserver;
  succeed(result: BuildResult): Promise<void>;
  fail(error: unknown): Promise<void>;
  /** Returns the record of a build that has ended, with `keepsOutput` also its output; `undefined` if it has not begun. */
  read(): BuildWithOutput | undefined;
  /** Returns what is known of the build before its first step; `undefined` if it has not begun. */
  origin(): BuildOrigin | undefined;
  /** Returns what the build has used so far. */
  inputs(): BuildInput[];
}

/** The fewest milliseconds between two notes of a running build, for whoever finds it killed. */
const noteEveryMilliseconds = 1000;

export function startRecording(
  {
    runtime,
    log,
    options,
    target: bakeTarget,
  }: Pick<Surroundings, "runtime" | "log"> & Pick<BuildRequest, "options" | "target">,
  { isBaked = false, keepsOutput = false } = {},
): Recording {
  const { clock } = runtime;
  const id = createBuildId();
  const start = steadyTime(clock);
  const startedAt = clock.now();
  const events: TimedEvent[] = [];
  const inputs = new Map<string, BuildInput>();
  const output = createRecordedOutput(keepsOutput, (text) => mask(text));
  let origin: BuildOrigin | undefined;
  let buildArgs: BuildInputs["buildArgs"] = new Map();
  let mask = (text: string) => text;
  let owner = "";
  let notedAt = start;
  let noting: Promise<void> | undefined;
  let finished: BuildWithOutput | undefined;

  async function makeRecord(known: {
    status: BuildStatus;
    result?: BuildResult;
    error?: BuildRecord["error"];
  }) {
    if (origin === undefined) return undefined;
    const { recordBuild } = await import("../../../history/record-build.ts");
    const now = steadyTime(clock);
    return {
      ...recordBuild(events, {
        ...known,
        id,
        origin,
        start,
        now,
        inputs: [...inputs.values()],
        outputs: output.sizes,
      }),
      startedAt,
    };
  }

  async function save(record: BuildRecord | undefined): Promise<void> {
    if (record !== undefined && output.isHeld) await saveRecord(record, owner, output, { runtime, log });
  }

  /** Stores what is known so far, from time to time, while steps run. */
  function noteRunning(at: number): void {
    if (noting !== undefined || !output.isHeld || at - notedAt < noteEveryMilliseconds) return;
    notedAt = at;
    noting = makeRecord({ status: "running" })
      .then(save)
      .catch((error: unknown) => log.debug(messageOf(error)))
      .finally(() => {
        noting = undefined;
      });
  }

  async function end(known: Parameters<typeof makeRecord>[0]): Promise<void> {
    await noting;
    output.endAll();
    try {
      const record = await makeRecord(known);
      if (record === undefined) return;
      finished = { record, outputs: output.kept };
      await save(record);
    } catch (error) {
      log.debug(messageOf(error));
    }
  }

  return {
    ...{ id, startedAt },
    begin(built, { session, service }) {
      buildArgs = built.buildArgs;
      const amongArgs = secretsAmong(buildArgs);
      mask = amongArgs.mask;
      const known = { session, service, options, bakeTarget, isBaked, runtime };
      origin = originOf(built, { ...known, isSecret: amongArgs.has });
    },
    hide(secrets) {
      mask = secretsAmong([...buildArgs, ...secretTexts(secrets)]).mask;
    },
    mask: (text) => mask(text),
    setOwner(process) {
      owner = process;
    },
    note(event) {
      if (event.type === "output") {
        output.add(event.step, event.chunk);
        return;
      }
      if (isAmount(event.type)) return;
      const at = steadyTime(clock);
      events.push({ at, event });
      if (event.type === "ran") output.end(event.step);
      if (event.type === "spawned" || event.type === "ran" || event.type === "step-end") noteRunning(at);
    },
    observe: (observer) => noteInputs(inputs, observer),
    succeed: (result) => end({ status: "succeeded", result }),
    async fail(error) {
      const { failureOf } = await import("../../../terminal/failure.ts");
      const { kind, message, hint } = failureOf(error);
      const isInterrupted = kind === "interrupted" || runtime.signal.aborted;
      const described = { message: mask(message), hint: hint === undefined ? null : mask(String(hint)) };
      await end({ status: isInterrupted ? "interrupted" : "failed", error: described });
    },
    read: () => finished,
    origin: () => origin,
    inputs: () => [...inputs.values()],
  };
}

/** Saves a record with its output. A full disk, a home that can't be written: the build is worth more than its record. */
async function saveRecord(
  record: BuildRecord,
  owner: string,
  output: ReturnType<typeof createRecordedOutput>,
  { runtime, log }: Pick<Surroundings, "runtime" | "log">,
): Promise<void> {
  try {
    const { openHistory } = await import("../../../history/history-database.ts");
    using history = openHistory(stateDirectory(runtime));
    history.save(record, owner, output.unsaved);
  } catch (error) {
    output.stopHolding();
    log.debug(`the build is not recorded in the history: ${messageOf(error)}`);
  }
  output.forgetUnsaved();
}

/** Returns an observer that notes inputs, and passes on what it is told. */
function noteInputs(inputs: Map<string, BuildInput>, observer: InputObserver | undefined): InputObserver {
  return {
    image(name, image) {
      const digest = /@(sha256:[0-9a-f]{64})$/.exec(name)?.[1] ?? null;
      inputs.set(`image ${name}`, { kind: "image", name, image, digest });
      observer?.image(name, image);
    },
    url(name, sha256) {
      inputs.set(`url ${name}`, { kind: "url", name, sha256 });
      observer?.url(name, sha256);
    },
    repository(name, commit) {
      inputs.set(`repository ${name}`, { kind: "repository", name, commit: commit.commit });
      observer?.repository(name, commit);
    },
    ...(observer?.file && { file: observer.file }),
  };
}

/** Progress within a step, of which the end says everything. */
function isAmount(type: Parameters<Emit>[0]["type"]): boolean {
  return ["hashed", "download-progress", "upload-progress", "import-progress"].includes(type);
}

/** 60 random bits, in letters and digits that are not taken for each other. */
function createBuildId(): string {
  const digits = "0123456789abcdefghjkmnpqrstvwxyz";
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => digits[byte % 32]).join("");
}
