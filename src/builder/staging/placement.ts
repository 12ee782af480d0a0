import { PersistentMap } from "../../columns/persistent-map.ts";
import { createPace } from "../../pace.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { lineNamedIn, PlacementError } from "../location.ts";
import { collectGarbage } from "../operations/gc.ts";
import { isSuccess, requireSuccess } from "../operations/operation.ts";
import { runOperation, scriptFields } from "../operations/run-operation.ts";
import type { FileFeatures } from "../service-support.ts";
import type { Staged } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import { findLinkedFiles, hasLinkedFiles, type LinkedFile, placeLinkedFiles } from "./hard-links.ts";
import { hostFilesOf, readsHostFiles } from "./host-files.ts";
import { packImageFiles, unpackScript } from "./image-archive.ts";
import { hasNames, placeNamedFiles } from "./named-owners.ts";
import { exitCodeWithoutShell, isOwnedParent, placementScript, prelude } from "./placement-script.ts";
import { allFeatures, entriesToMake, featuresFor, instanceEntries, instanceFiles } from "./request-fields.ts";
import { uploadStaged } from "./upload.ts";

/** The image that the next operation starts from, and the fields that its request needs. */
type Placement = Pick<InstanceRequest, "image" | "files" | "host_files" | "earlier_image" | "entries">;

/**
 * Uploads what is staged. The API puts regular files in place and makes their parents. One small operation before that makes
 * symbolic links, hard links, empty directories, and directories with their own owner or mode. `hash`: the chain hash of the
 * resulting layer. `earlier`: the image that the same step has made before.
 */
export async function placeStaged(
  hash: string,
  stage: StageState,
  build: BuildJob,
  earlier: string | undefined,
): Promise<Placement> {
  const { image } = stage.layer;
  if (readsHostFiles(stage.staged, build.services)) {
    const pace = createPace(build.services.signal);
    const entries = instanceEntries(stage.staged, allFeatures);
    await pace.step();
    const hostFiles = await hostFilesOf(stage.staged, build);
    // Collected before threads copy files, which need memory themselves.
    collectGarbage(stage.staged.size);
    const before = earlier === undefined ? {} : { earlier_image: earlier };
    return { image, files: {}, host_files: hostFiles, ...before, entries };
  }
  const packed = await packImageFiles(stage, build);
  const staged =
    packed === undefined
      ? stage.staged
      : PersistentMap.of(stage.staged).without((path) => packed.paths.has(path));
  const ids = await uploadStaged(staged, build);
  const features = await featuresFor(staged, build.services.supports);
  const all = instanceFiles(staged, ids, features);
  const entries = instanceEntries(staged, features);
  const made = placementScript(staged);
  const needsMore = made !== "" || Object.keys(entries).length > 0;
  if (packed === undefined && needsMore && (await canPlace(staged, features, build.services)))
    return { image, files: all, entries };
  const found = features.links ? [] : findLinkedFiles(staged);
  const isMade =
    found.length > 0 && (await canLink(found, made !== "" || packed !== undefined, stage, build));
  const place = `/.bough-${hash.slice(0, 16)}`;
  const linked = placeLinkedFiles(isMade ? found : [], all, place);
  const named = placeNamedFiles(stage.staged, linked.files, place);
  const { files } = named;
  const unpacking = packed === undefined ? "" : unpackScript(packed.path);
  const script = `${made === "" && isMade ? prelude : made}${unpacking}${linked.script}${named.script}`;
  if (script === "") {
    warnOfDirectories(staged, build);
    return { image, files };
  }
  const placed = {
    ...linked.originals,
    ...named.originals,
    ...(packed === undefined ? {} : { [packed.path]: packed.file }),
  };
  const { service } = build.services;
  const options = { ...build.asked.commands, service, place: `${place}.sh` };
  const outcome = await runOperation(
    { image, ...(await scriptFields(script, { files: placed }, options)) },
    {
      key: placementKey(hash),
      title: "(makes the staged directories and links)",
      showsOutput: false,
    },
    build,
  );
  if (outcome.status === "SUCCESS" && !outcome.timedOut && !isSuccess(outcome))
    throw placementError(outcome, stage.staged);
  return { image: requireSuccess(outcome, build.asked.commands.timeoutSeconds), files };
}

/** Warns where Docker would give the directories that a COPY makes the owner of its files. */
function warnOfDirectories(staged: Staged, { asked, shared, emit }: BuildJob): void {
  if (!asked.dialect.looksUpUsers || shared.warned.has("directories")) return;
  const [path, directory] = [...staged].find(([, entry]) => isOwnedParent(entry)) ?? [];
  if (directory === undefined) return;
  shared.warned.add("directories");
  const message = `the service makes the directories on the way to copied files, so ${path} belongs to root if the image lacks it, not to the --chown: make it in a RUN before`;
  emit({ type: "warning", message, line: directory.line });
}

/** Returns true if the service places these entries itself, without a script. */
async function canPlace(
  staged: Staged,
  { links, attributes }: FileFeatures,
  services: BuildServices,
): Promise<boolean> {
  if ((!links && hasLinkedFiles(staged)) || hasNames(staged)) return false;
  if (!attributes && staged.values().some(({ replaces }) => replaces === true)) return false;
  return services.supports.fileLayers();
}

/** Returns false if the image has no shell: the names of a file then become separate files. */
async function canLink(
  [first]: readonly LinkedFile[],
  needsShell: boolean,
  { layer }: StageState,
  { services, emit }: BuildJob,
): Promise<boolean> {
  if (needsShell || (await services.inspection.isFile(layer.image, "/bin/sh"))) return true;
  const message = `the image has no shell, which is needed to make hard links: ${first?.paths.join(" and ")} become separate files`;
  emit({ type: "warning", message, line: first?.file.line });
  return false;
}

function placementError(outcome: OperationOutcome, staged: Staged): PlacementError {
  const { exitCode, stdout, stderr, operation } = outcome;
  const [path, first] = entriesToMake(staged, { withTimes: false })[0] ?? [];
  if (exitCode === exitCodeWithoutShell) {
    const link = first?.type === "symlink" ? "the symbolic link" : "the directory";
    const what = first === undefined ? "put the copied files in place" : `make ${link} ${path}`;
    return new PlacementError(`the image has no shell, which is needed to ${what}`, first?.line, {
      hint: "Start from an image with /bin/sh, or copy only regular files, without --chown for their directories.",
    });
  }
  const reason = stderr.text.trim() || `exit code ${exitCode}`;
  const hint =
    staged.get(stdout.text)?.names === undefined
      ? undefined
      : "Create the user and its group in a RUN before this line, or write numbers.";
  return new PlacementError(
    `cannot put the staged files in place: ${reason} (operation ${operation})`,
    staged.get(stdout.text)?.line ?? lineNamedIn(reason, staged) ?? first?.line,
    { hint },
  );
}

/** Returns the key of the operation that prepares the layer of this chain hash. */
export function placementKey(hash: string): string {
  return `place ${hash}`;
}
