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
import type { BuildIdentity } from "./identity.ts";
import { ObservedFiles } from "./observed-files.ts";
import { type Look, lookAt, lookAtLog, lookBehind, type PathStates, settledStates } from "./path-states.ts";
import { type RememberedBuild, type Told, writeRememberedBuild } from "./remembered-build.ts";

/** Records a build. If it finds nothing to do, the next identical build can repeat its output without running. */
export interface Recording extends ServiceWatcher {
  /** The same progress, recorded. */
  progress: Progress;
  /** The context's files, observed. */
  files: FileSystem;
  /** Declares that the build depends only on what is below this directory or was read through `files`. */
  noteContext(context: BuildContext): void;
  /** Notes the time of the last use that the session has recorded, in milliseconds since the epoch. */
  noteUse(since: number): void;
  /** Saves the record of a build that had nothing to do, after it has succeeded and everything is closed. Never rejects. */
  save(): Promise<void>;
}

/** The maximum number of lines and events together, against endless Dockerfiles. */
const maxTold = 20_000;

/** The events of a build that has nothing to do. */
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

/** Must be called before anything is read. Returns `undefined` for a build that cannot be recorded. */
export function startRecording(
  identity: BuildIdentity | undefined,
  invocation: Invocation,
  progress: Progress,
): Recording | undefined {
  try {
    return identity === undefined ? undefined : record(identity, invocation, progress);
  } catch {
    // The build itself reports the error.
    return undefined;
  }
}

function record(
  { choice, databases, directories, ...place }: BuildIdentity,
  invocation: Invocation,
  progress: Progress,
): Recording {
  const { clock } = invocation.runtime;
  const startedAt = clock.now();
  const before = {
    inputs: settledStates(inputPaths(invocation), lookForFile, startedAt),
    known: settledStates([...databases, ...directories], lookAt, startedAt),
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
  /** A build without a session marks nothing as used. */
  let usedAt = startedAt;
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
    if (!isIdle || context === undefined) return;
    const asked = (await Promise.all(questions)).filter((question) => question !== undefined);
    const states = { ...before, files: files.states(context.realPath) };
    if (asked.length < questions.length || !areKnown(states)) return;
    writeRememberedBuild(place, { usedAt, ...states, context, questions: asked, told }, clock.now());
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
        // The cause of a warning may be temporary.
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
        : recordQuestions(fetch, { base: choice.url, clock }, (question) => {
            if (question === undefined) giveUp();
            else if (isIdle) questions.push(question);
          }),
    onServed() {},
    noteContext({ absolutePath: path, realPath }) {
      context = { path, realPath };
    },
    noteUse(since) {
      usedAt = since;
    },
    save: () => save().catch(() => undefined),
  };
}

/** Returns the paths of the Dockerfile and its ignore file, and of files that would take precedence if they existed. */
function inputPaths(invocation: Invocation): string[] {
  const places = locateInputs(invocation);
  if (places.isFetched) return [];
  const { dockerfile, ignore } = places;
  const others = [join(ignore.contextPath, "Dockerfile"), ...ignoreFileCandidates(ignore)];
  return [...new Set([dockerfile.absolutePath, ...others])];
}

/** Follows a link. Throws for a pipe or device, whose content can differ each time. */
const lookForFile: Look = (path) => {
  const stats = lookBehind(path);
  if (stats !== undefined && !stats.isFile()) throw new Error(`${path} is not a file`);
  return stats;
};

function areKnown<Key extends string>(
  states: Readonly<Record<Key, PathStates | undefined>>,
): states is Record<Key, PathStates> {
  return Object.values(states).every((each) => each !== undefined);
}
