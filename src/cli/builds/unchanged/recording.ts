import { join } from "node:path";
import type { NamedContexts } from "../../../builder/contexts/named-context.ts";
import type { BuildEvent } from "../../../builder/events.ts";
import type { BuildContext } from "../../../context/build-context.ts";
import type { FileSystem } from "../../../context/file-system/file-system.ts";
import { localFileSystem } from "../../../context/file-system/local-file-system.ts";
import { ignoreFileCandidates } from "../../../context/patterns/ignore-file.ts";
import { parseReference } from "../../../service/images/reference.ts";
import type { Progress } from "../../../terminal/progress.ts";
import type { Invocation } from "../../command-line/command.ts";
import type { ServiceWatcher } from "../../service/connection.ts";
import { locateInputs } from "../inputs.ts";
import { namedIgnoreFiles } from "../options/build-contexts.ts";
import type { BuildIdentity } from "./identity.ts";
import { ObservedFiles } from "./observed-files.ts";
import { type Look, lookAt, lookAtLog, lookAtTarget, type PathStates, settledStates } from "./path-states.ts";
import { type RecordedRequest, recordRequests } from "./recorded-requests.ts";
import {
  type ContextPath,
  type OutputItem,
  type RememberedBuild,
  writeRememberedBuild,
} from "./remembered-build.ts";

/** Records a build. If it finds nothing to do, the next identical build can repeat its output without running. */
export interface Recording extends ServiceWatcher {
  /** The same progress, recorded. */
  progress: Progress;
  /** The context's files, observed. */
  files: FileSystem;
  /** Declares that the build depends only on what is below these directories or was read through `files`. */
  noteContexts(context: BuildContext, contexts: NamedContexts): void;
  /** Notes the time of the last use that the session has recorded, in milliseconds since the epoch. */
  noteUse(since: number): void;
  /** Saves the record of a build that had nothing to do, after it has succeeded and everything is closed. Never rejects. */
  save(): Promise<void>;
}

/** The maximum number of lines and events together, against endless Dockerfiles. */
const maxOutputItems = 20_000;

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
  const requests: Promise<RecordedRequest | undefined>[] = [];
  const output: OutputItem[] = [];
  let noted: Pick<RememberedBuild, "context" | "contexts"> | undefined;
  /** A build without a session marks nothing as used. */
  let usedAt = startedAt;
  let isIdle = true;

  function giveUp(): void {
    isIdle = false;
    output.length = 0;
    requests.length = 0;
    files.end();
  }

  function note(item: OutputItem): void {
    if (output.length === maxOutputItems) giveUp();
    if (isIdle) output.push(item);
  }

  async function save(): Promise<void> {
    if (!isIdle || noted === undefined) return;
    const { context, contexts } = noted;
    const others = contexts.map(({ realPath }) => realPath);
    const recorded = (await Promise.all(requests)).filter((request) => request !== undefined);
    const states = { ...before, files: files.states(context.realPath, others) };
    if (recorded.length < requests.length || !areKnown(states)) return;
    writeRememberedBuild(place, { usedAt, ...states, ...noted, requests: recorded, output }, clock.now());
  }

  return {
    files,
    progress: {
      ...progress,
      log: {
        ...progress.log,
        info(message) {
          note({ info: message });
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
        note(event);
        progress.emit(event);
      },
    },
    watch: (fetch) =>
      choice.kind === "embedded"
        ? fetch
        : recordRequests(fetch, { base: choice.url, clock }, (request) => {
            if (request === undefined) giveUp();
            else if (isIdle) requests.push(request);
          }),
    onServed() {},
    noteContexts(main, named) {
      const all = [...named.values()];
      const contexts: ContextPath[] = [];
      for (const each of all) {
        // The files of a layout are not observed, and what an address leads to may change.
        if (each.kind === "image" && parseReference(each.reference).kind === "local") return;
        if (each.kind === "image") continue;
        if (each.source.kind !== "local") return;
        contexts.push(pathOf(each.source.context));
      }
      noted = { context: pathOf(main), contexts };
    },
    noteUse(since) {
      usedAt = since;
    },
    save: () => save().catch(() => undefined),
  };
}

function pathOf({ absolutePath: path, realPath }: BuildContext): ContextPath {
  return { path, realPath };
}

/** Returns the paths of the Dockerfile and the ignore files, and of files that would take precedence if they existed. */
function inputPaths(invocation: Invocation): string[] {
  const places = locateInputs(invocation);
  if (places.isFetched) return [];
  const { dockerfile, ignore } = places;
  const ignoreFiles = [...ignoreFileCandidates(ignore), ...namedIgnoreFiles(invocation)];
  const others = [join(ignore.contextPath, "Dockerfile"), ...ignoreFiles];
  return [...new Set([dockerfile.absolutePath, ...others])];
}

/** Follows a link. Throws for a pipe or device, whose content can differ each time. */
const lookForFile: Look = (path) => {
  const stats = lookAtTarget(path);
  if (stats !== undefined && !stats.isFile()) throw new Error(`${path} is not a file`);
  return stats;
};

function areKnown<Key extends string>(
  states: Readonly<Record<Key, PathStates | undefined>>,
): states is Record<Key, PathStates> {
  return Object.values(states).every((each) => each !== undefined);
}
