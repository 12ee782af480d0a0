import { join } from "node:path";
import type { BuildEvent } from "../../../builder/events.ts";
import type { BuildContext } from "../../../context/build-context.ts";
import type { FileSystem } from "../../../context/file-system/file-system.ts";
import { localFileSystem } from "../../../context/file-system/local-file-system.ts";
import { ignoreFileCandidates } from "../../../context/patterns/ignore-file.ts";
import type { Progress } from "../../../terminal/progress.ts";
import type { Invocation } from "../../command-line/command.ts";
import type { ServiceWatcher } from "../../service/connection.ts";
import { locateInputs } from "../inputs.ts";
import { type AskedQuestion, recordQuestions } from "./asked-questions.ts";
import { identifyBuild } from "./identity.ts";
import {
  type FileStates,
  lookAt,
  lookAtLog,
  lookBehind,
  ObservedFiles,
  settledStates,
} from "./observed-files.ts";
import { type RememberedBuild, type Told, writeRememberedBuild } from "./remembered-build.ts";

/** Listens to a build: where that finds nothing to do, the next one need not find it out again. */
export interface Recording extends ServiceWatcher {
  /** The same progress, listened to. */
  progress: Progress;
  /** The context's files, observed. */
  files: FileSystem;
  /** Says that all which the build depends on is below this directory, or was looked at through `files`. */
  noteContext(context: BuildContext): void;
  /** Remembers a build that had nothing to do, once it has succeeded and all is closed. Never rejects. */
  save(): Promise<void>;
}

/** Of lines and events, against Dockerfiles without end. */
const maxTold = 20_000;

/** What a build tells that has nothing to do. */
const idleEvents: ReadonlySet<BuildEvent["type"]> = new Set([
  "step",
  "step-end",
  "warning",
  "resolved",
  "cached",
  "excluded",
  "large-context",
  "hashing",
  "staged",
  "tagged",
  "finished",
]);

/** To be called before anything is read. `undefined` for a build of which nothing can be remembered. */
export function startRecording(invocation: Invocation, progress: Progress): Recording | undefined {
  try {
    return record(invocation, progress);
  } catch {
    // What is wrong will be said by the build.
    return undefined;
  }
}

function record(invocation: Invocation, progress: Progress): Recording | undefined {
  const identity = identifyBuild(invocation);
  if (identity === undefined) return undefined;
  const { choice, databases, ...place } = identity;
  const startedAt = invocation.runtime.clock.now();
  const known = {
    inputs: settledStates(inputPaths(invocation), lookBehind, startedAt),
    databases: settledStates(databases, lookAt, startedAt),
    logs: settledStates(
      databases.map((path) => `${path}-wal`),
      lookAtLog,
      startedAt,
    ),
  };
  const files = new ObservedFiles(localFileSystem, startedAt);
  const questions: Promise<AskedQuestion | undefined>[] = [];
  const told: Told[] = [];
  let context: RememberedBuild["context"] | undefined;
  let isIdle = true;

  function giveUp(): void {
    isIdle = false;
    told.length = 0;
    questions.length = 0;
    files.end();
  }

  function tell(one: Told): void {
    if (told.length === maxTold) giveUp();
    if (isIdle) told.push(one);
  }

  async function save(): Promise<void> {
    const asked = (await Promise.all(questions)).filter((question) => question !== undefined);
    const states = { ...known, files: files.states() };
    if (!isIdle || context === undefined || asked.length < questions.length || !areKnown(states)) return;
    writeRememberedBuild(place, { builtAt: startedAt, ...states, context, questions: asked, told });
  }

  return {
    files,
    progress: {
      ...progress,
      log: {
        ...progress.log,
        info(message) {
          tell({ info: message });
          progress.log.info(message);
        },
        // What has gone wrong on the way need not do so again.
        warn(message) {
          giveUp();
          progress.log.warn(message);
        },
      },
      emit(event) {
        if (!idleEvents.has(event.type)) giveUp();
        tell(event);
        progress.emit(event);
      },
    },
    watch: (fetch) =>
      choice.kind === "embedded"
        ? fetch
        : recordQuestions(fetch, choice.url, (question) => {
            if (isIdle) questions.push(question);
          }),
    onServed() {},
    noteContext({ absolutePath: path, realPath }) {
      context = { path, realPath };
    },
    save: () => save().catch(() => undefined),
  };
}

/** The Dockerfile and its ignore file, and what would be taken instead if it were there. */
function inputPaths(invocation: Invocation): string[] {
  const places = locateInputs(invocation);
  if (places.isFetched) return [];
  const { dockerfile, ignore } = places;
  const others = [join(ignore.contextPath, "Dockerfile"), ...ignoreFileCandidates(ignore)];
  return [...new Set([dockerfile.absolutePath, ...others])];
}

function areKnown<Key extends string>(
  states: Readonly<Record<Key, FileStates | undefined>>,
): states is Record<Key, FileStates> {
  return Object.values(states).every((each) => each !== undefined);
}
