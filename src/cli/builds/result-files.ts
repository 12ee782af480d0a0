import { basename, resolve } from "node:path";
import type { BuildResult } from "../../builder/result.ts";
import { ignoreFileCandidates } from "../../context/patterns/ignore.ts";
import { BoughError, usageError } from "../../errors.ts";
import { indexTypes } from "../../image/oci-layout.ts";
import { wording } from "../../messages/wording.ts";
import { normalizedName } from "../../registry/repository.ts";
import { jsonText } from "../../terminal/json-text.ts";
import {
  findPlace,
  type ResultPlace,
  removeOld,
  requireWritable,
  unusablePlace,
  writeAllOrNone,
} from "../command-line/result.ts";
import { isSameFile } from "../process/same-file.ts";
import { type LocatedBuild, locateInputs } from "./inputs.ts";
import type { OpenedLock } from "./lock/open-lock.ts";
import type { BuildInvocation } from "./request.ts";

/** Files that a build writes: `--metadata-file` and `--iidfile` if it succeeds, `--trace` and `--report` in any case. */
export interface ResultFiles {
  /** @throws BoughError if one of them can't be written: then neither exists */
  write(result: BuildResult, buildx: BuildxKeys): void;
  /** Writes `--digest-file` for an image that is in its registry already. */
  writeDigest(digest: string): void;
  /** @throws BoughError if it can't be written */
  writeTrace(text: string): void;
  /** @throws BoughError if it can't be written */
  writeReport(text: string): void;
}

/**
 * Removes the file of `--iidfile` that an earlier build has written: as with docker build, none exists after a failure. The build may
 * copy the other files: they are replaced when there is something to write. Removes nothing if one of the paths is unusable.
 *
 * @throws BoughError of kind `usage` if no file can be written at a path
 */
export function prepareResultFiles(invocation: BuildInvocation): ResultFiles {
  const { files, traces, reports } = findResultFiles(invocation);
  const all = [...files, ...traces, ...reports];
  for (const place of all) requireWritable(place);
  for (const place of files) if (place.name === "iidfile") removeOld(place);
  return {
    // The metadata last: that of an earlier build stays if another file can't be written.
    write: (result, buildx) =>
      writeAllOrNone(files.toReversed().map((file) => ({ ...file, text: file.textOf(result, buildx) }))),
    writeDigest: (text) =>
      writeAllOrNone(files.flatMap((file) => (file.name === "digest-file" ? [{ ...file, text }] : []))),
    writeTrace: (text) => writeAllOrNone(traces.map((place) => ({ ...place, text }))),
    writeReport: (text) => writeAllOrNone(reports.map((place) => ({ ...place, text }))),
  };
}

/** Throws a BoughError of kind `usage` if a path can be seen to be unusable. Writes and removes nothing. */
export function findResultFiles(invocation: BuildInvocation) {
  const { options, runtime } = invocation;
  const placeOf = (name: ResultOption) => {
    const given = options[name];
    return given === undefined ? [] : [findPlace(`--${name}`, given, runtime.workingDirectory)];
  };
  const files = (["metadata-file", "digest-file", "iidfile"] as const).flatMap((name) =>
    placeOf(name).map((place) => ({ ...place, name, textOf: contents[name] })),
  );
  const traces = placeOf("trace");
  const reports = placeOf("report");
  const all = [...files, ...traces, ...reports];
  for (const place of all) {
    refuseInput(place, invocation);
    refuseOutput(place, invocation);
  }
  const lock = findLock(invocation);
  refuseSame(lock === undefined ? all : [...all, lock]);
  return { files, traces, reports };
}

/** Opens the lock of `--lock`; `undefined` without it. Throws a BoughError of kind `usage` for one that can't be used. */
export async function openLock(
  invocation: Pick<BuildInvocation, "options" | "runtime">,
): Promise<OpenedLock | undefined> {
  const place = findLock(invocation);
  // Few builds have one.
  return place && (await import("./lock/open-lock.ts")).openLock(place, invocation.options);
}

/** Returns the place of `--lock`; `undefined` without it. Throws a BoughError of kind `usage` for options that need it. */
function findLock({
  options,
  runtime,
}: Pick<BuildInvocation, "options" | "runtime">): ResultPlace | undefined {
  if (options.lock !== undefined) return findPlace("--lock", options.lock, runtime.workingDirectory);
  const option = (["locked", "update-lock"] as const).find((name) => (options[name] ?? false) !== false);
  if (option === undefined) return undefined;
  throw usageError(
    wording`${{ option }} needs ${{ option: "lock" }}`,
    wording`Name the file with ${{ option: "lock" }} bough.lock.`,
  );
}

type ResultOption = "metadata-file" | "digest-file" | "iidfile" | "trace" | "report";

/** Keys of docker buildx about the build, which only `--metadata-file` has. */
type BuildxKeys = Readonly<Record<string, unknown>> | undefined;

/** Contents by option. */
const contents: Readonly<
  Record<Exclude<ResultOption, "trace" | "report">, (result: BuildResult, buildx: BuildxKeys) => string>
> = {
  "metadata-file": (result, buildx) => `${jsonText(metadataOf(result, buildx), { indent: 2 })}\n`,
  "digest-file": ({ exported }) => exported[0]?.descriptor.digest ?? "",
  // docker build writes no line end either.
  iidfile: dockerIdOf,
};

/**
 * Returns docker's id of an image: the digest of its configuration, which is known of an image that was written; that of its index, if
 * it has several platforms or a provenance. Else its UUID.
 */
export function dockerIdOf({
  image,
  platforms,
  exported: [first],
}: Pick<BuildResult, "image" | "platforms" | "exported">): string {
  const isIndex = platforms !== undefined || indexTypes.includes(first?.descriptor.mediaType ?? "");
  return (isIndex ? first?.descriptor.digest : first?.configDigest) ?? image;
}

/** Returns what `--metadata-file` has of a build. */
export function metadataOf(
  { image, platforms, tags, session, steps, uploaded, seconds, exported }: BuildResult,
  buildx: BuildxKeys,
): Record<string, unknown> {
  return {
    ...{ image, ...(platforms && { platforms }), tag: tags[0] ?? null, tags },
    ...{ session, seconds, uploaded, steps, exported },
    ...buildx,
    ...asInBuildx(tags, platforms !== undefined, exported),
  };
}

/** The keys of docker buildx, which has no digest either if the image went nowhere. An index has no configuration. */
function asInBuildx(
  tags: readonly string[],
  isIndex: boolean,
  exported: BuildResult["exported"],
): Record<string, unknown> {
  const [first] = exported;
  const pushed = exported.flatMap(({ destination }) =>
    destination.startsWith("docker://") ? [destination.slice("docker://".length)] : [],
  );
  const names = pushed.length > 0 ? pushed : tags;
  return {
    ...(first && {
      ...(!isIndex &&
        !indexTypes.includes(first.descriptor.mediaType) && {
          "containerimage.config.digest": first.configDigest,
        }),
      "containerimage.digest": first.descriptor.digest,
      "containerimage.descriptor": first.descriptor,
    }),
    ...(names.length > 0 && { "image.name": names.map(normalizedName).join(",") }),
  };
}

/** Throws a usage BoughError if a file would replace an input of the build. */
export function refuseInput(place: ResultPlace, invocation: LocatedBuild): void {
  const places = locateInputs(invocation);
  // A Dockerfile passed as CONTEXT must not be overwritten.
  const inputs = [
    places.dockerfile?.absolutePath,
    ...(places.isFetched ? [] : [places.ignore.contextPath, ...ignoreFileCandidates(places.ignore)]),
  ];
  const input = inputs.find((path) => path !== undefined && isSameFile(path, place.path));
  if (input !== undefined) throw unusablePlace(place, `this is the build's ${basename(input)}`);
}

/** Throws a usage BoughError if a file would replace an archive that the build writes. */
export function refuseOutput(
  place: ResultPlace,
  invocation: Pick<BuildInvocation, "options" | "runtime">,
): void {
  const output = readablePlaces(invocation).find(({ path }) => isSameFile(path, place.path));
  if (output !== undefined) throw unusablePlace(place, `--output ${output.given} writes the same file`);
}

/** Throws a usage BoughError if an archive that the build writes would replace one of its inputs. */
export function requireInputsKept(invocation: BuildInvocation): void {
  for (const place of outputPlaces(invocation)) refuseInput(place, invocation);
}

/** Returns the places of outputs; none if they can't be read: the build says so once the files of an earlier one are gone. */
function readablePlaces(invocation: Pick<BuildInvocation, "options" | "runtime">): ResultPlace[] {
  try {
    return outputPlaces(invocation);
  } catch (error) {
    if (error instanceof BoughError) return [];
    throw error;
  }
}

function outputPlaces({ options, runtime }: Pick<BuildInvocation, "options" | "runtime">): ResultPlace[] {
  return (options.output ?? []).flatMap(({ dest, text }) =>
    dest === undefined || dest === "-"
      ? []
      : [{ option: "--output", given: text, path: resolve(runtime.workingDirectory, dest) }],
  );
}

function refuseSame([one, ...others]: readonly ResultPlace[]): void {
  if (one === undefined) return;
  for (const other of others) {
    if (!isSameFile(one.path, other.path)) continue;
    throw usageError(
      `${one.option} ${one.given} and ${other.option} ${other.given} are the same file`,
      "Give each option its own file.",
    );
  }
  refuseSame(others);
}
