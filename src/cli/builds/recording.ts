import type { InputObserver } from "../../builder/contexts/named-context.ts";
import type { Emit } from "../../builder/events.ts";
import type { BuildResult } from "../../builder/result.ts";
import { type GivenSecrets, secretTexts } from "../../builder/state/secrets.ts";
import { steadyTime } from "../../clock.ts";
import { pathWithin } from "../../context/file-system/display-path.ts";
import { isSecretName, isSecretValue, secretsAmong } from "../../dockerfile/secrets.ts";
import { messageOf } from "../../errors.ts";
import {
  type BuildDoor,
  type BuildInput,
  type BuildOrigin,
  type BuildRecord,
  type BuildStatus,
  type BuildWithOutput,
  nameOfContext,
} from "../../history/build-record.ts";
import { createOutputText, type OutputText } from "../../history/output-text.ts";
import type { TimedEvent } from "../../history/record-build.ts";
import { formatPlatform } from "../../image/platform.ts";
import { isCi } from "../../terminal/color.ts";
import { version } from "../../version.ts";
import type { Invocation } from "../command-line/command.ts";
import { stateDirectory } from "../process/runtime.ts";
import type { BuildInputs } from "./inputs.ts";
import type { BakedTarget } from "./request.ts";

/** Returns the path of a Dockerfile as records have it. */
export function recordedDockerfile({
  context,
  dockerfile,
}: Pick<BuildInputs, "context" | "dockerfile">): string {
  return pathWithin(context.absolutePath, dockerfile.absolutePath) ?? dockerfile.path;
}

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
/** Characters of output in memory between two notes, beside that of running steps. More is not recorded. */
const maxHeldOutput = 4 * 1024 * 1024;

export function startRecording(
  { runtime, log, values, target: bakeTarget }: Pick<Invocation, "runtime" | "log" | "values"> & BakedTarget,
  { isBaked = false, keepsOutput = false } = {},
): Recording {
  const { clock } = runtime;
  const id = createBuildId();
  const start = steadyTime(clock);
  const startedAt = clock.now();
  const events: TimedEvent[] = [];
  const inputs = new Map<string, BuildInput>();
  const running = new Map<number, OutputText>();
  /** Output of steps that have ended: sizes, and texts that are not stored yet. */
  const sizes = new Map<number, { length: number; kept: number }>();
  const ended = new Map<number, string>();
  /** Characters of `ended`. */
  let held = 0;
  /** Output of all steps, for the page. */
  const kept = new Map<number, string>();
  let origin: BuildOrigin | undefined;
  let buildArgs: BuildInputs["buildArgs"] = new Map();
  let mask = (text: string) => text;
  let owner = "";
  let isBroken = false;
  let notedAt = start;
  let noting: Promise<void> | undefined;
  let finished: BuildWithOutput | undefined;

  function endOutput(step: number): void {
    const output = running.get(step)?.read();
    running.delete(step);
    if (output === undefined || output.length === 0) return;
    const text = mask(output.text);
    const isHeld = !isBroken && held < maxHeldOutput;
    if (isHeld) {
      ended.set(step, text);
      held += text.length;
    }
    if (keepsOutput) kept.set(step, text);
    sizes.set(step, { length: output.length, kept: isHeld || keepsOutput ? text.length : 0 });
  }

  async function makeRecord(known: {
    status: BuildStatus;
    result?: BuildResult;
    error?: BuildRecord["error"];
  }) {
    if (origin === undefined) return undefined;
    const { recordBuild } = await import("../../history/record-build.ts");
    const now = steadyTime(clock);
    return {
      ...recordBuild(events, {
        ...known,
        id,
        origin,
        start,
        now,
        inputs: [...inputs.values()],
        outputs: sizes,
      }),
      startedAt,
    };
  }

  async function save(record: BuildRecord | undefined): Promise<void> {
    if (record === undefined || isBroken) return;
    try {
      const { openHistory } = await import("../../history/history-database.ts");
      using history = openHistory(stateDirectory(runtime));
      history.save(record, owner, ended);
    } catch (error) {
      // A full disk, a home that can't be written: the build is worth more than its record.
      isBroken = true;
      log.debug(`the build is not recorded in the history: ${messageOf(error)}`);
    }
    ended.clear();
    held = 0;
  }

  /** Stores what is known so far, from time to time, while steps run. */
  function noteRunning(at: number): void {
    if (noting !== undefined || isBroken || at - notedAt < noteEveryMilliseconds) return;
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
    for (const step of [...running.keys()]) endOutput(step);
    try {
      const record = await makeRecord(known);
      if (record === undefined) return;
      finished = { record, outputs: kept };
      await save(record);
    } catch (error) {
      log.debug(messageOf(error));
    }
  }

  return {
    ...{ id, startedAt },
    begin(built, { session, service }) {
      buildArgs = built.buildArgs;
      const known = secretsAmong(buildArgs);
      mask = known.mask;
      const isSecret = (name: string, value: string) =>
        isSecretName(name) || isSecretValue(value) || known.has(name);
      const { place, target } = built;
      const path = recordedDockerfile(built);
      const tags = values.list("tag");
      const named = tags[0] ?? nameOfContext({ context: place, dockerfile: path });
      origin = {
        name:
          bakeTarget === undefined || tags.length > 0
            ? named
            : `${nameOfContext({ context: place, dockerfile: "" })} ${bakeTarget}`,
        door: doorOf(runtime, isBaked),
        isCi: isCi(runtime.environment.CI),
        ...{
          session,
          context: place,
          dockerfile: path,
          target: target ?? null,
          bakeTarget: bakeTarget ?? null,
        },
        platforms: built.platforms.map(formatPlatform),
        tags,
        dialect: built.dialect.name,
        usesCache: !values.flag("no-cache"),
        lock: values.text("lock") ?? null,
        service,
        buildArgs: [...built.buildArgs].map(([name, value]) => ({
          name,
          value: isSecret(name, value) ? null : value,
        })),
        version,
      };
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
        running.getOrInsertComputed(event.step, createOutputText).append(event.chunk);
        return;
      }
      if (isAmount(event.type)) return;
      const at = steadyTime(clock);
      events.push({ at, event });
      if (event.type === "ran") endOutput(event.step);
      if (event.type === "spawned" || event.type === "ran" || event.type === "step-end") noteRunning(at);
    },
    observe: (observer) => ({
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
    }),
    succeed: (result) => end({ status: "succeeded", result }),
    async fail(error) {
      const { failureOf } = await import("../../terminal/failure.ts");
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

/** Progress within a step, of which the end says everything. */
function isAmount(type: Parameters<Emit>[0]["type"]): boolean {
  return ["hashed", "download-progress", "upload-progress", "import-progress"].includes(type);
}

function doorOf({ isPlugin, isCalledByAgent }: Invocation["runtime"], isBaked: boolean): BuildDoor {
  if (isPlugin === true) return "docker";
  if (isCalledByAgent === true) return "mcp";
  return isBaked ? "bake" : "build";
}

/** 60 random bits, in letters and digits that are not taken for each other. */
function createBuildId(): string {
  const digits = "0123456789abcdefghjkmnpqrstvwxyz";
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => digits[byte % 32]).join("");
}
