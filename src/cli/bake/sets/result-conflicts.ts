import { resolve } from "node:path";
import { usageError } from "../../../errors.ts";
import { withLatest } from "../../../service/images/reference.ts";
import { hasKeyMark } from "../../builds/keys/key-in-tags.ts";
import { refuseInput, refuseOutput } from "../../builds/result-files.ts";
import { type ResultPlace, unusablePlace } from "../../command-line/result.ts";
import { readBuildOutputs, takesStandardOutput } from "../../export/build-outputs.ts";
import { isSameFile } from "../../process/same-file.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedBake, ResolvedTarget } from "../resolve.ts";
import { inTarget, withTarget } from "../target-error.ts";
import { buildOf, placeholder } from "../target-request.ts";
import type { ResultsPlace } from "./results-file.ts";

/** Throws for a result file that would replace a bake file, an input of a target, or an archive that a target writes. */
export function refuseFilesOf(
  place: ResultPlace,
  targets: ResolvedBake["targets"],
  files: ReadonlySet<string>,
  invocation: BakeInvocation,
): void {
  for (const file of files)
    if (isSameFile(resolve(invocation.runtime.workingDirectory, file), place.path))
      throw unusablePlace(place, "this is a file of the bake");
  for (const target of targets.values()) {
    const own = readOf(target, invocation, (own) => own);
    if (own === undefined) continue;
    inTarget(target, () => {
      refuseInput(place, own);
      refuseOutput(place, own);
    });
  }
}

/** Throws if two targets would set the same tag on different images, or write the same file. Several may write to one directory. */
export function refuseSameResults(targets: readonly ResolvedTarget[], workingDirectory: string): void {
  const owners = new Map<string, ResolvedTarget>();
  for (const target of targets) {
    const { tags = [], output = [] } = target.fields;
    const places = output.flatMap(({ type, dest }) =>
      type === "local" || typeof dest !== "string" || dest === "-" ? [] : [resolve(workingDirectory, dest)],
    );
    const results = [
      // Targets with the same key have the same image.
      ...(target.isLinked
        ? []
        : tags
            .filter((tag) => !hasKeyMark(tag))
            .map((tag) => ({ key: withLatest(tag), shown: `the tag ${tag}` }))),
      ...places.map((path) => ({ key: path, shown: `the output ${path}` })),
    ];
    for (const { key, shown } of results) {
      const other = owners.get(key);
      owners.set(key, target);
      // Services of a compose file often share an image and its build.
      const isSame = !places.includes(key) && Bun.deepEquals(other?.fields, target.fields);
      if (other === undefined || other === target || isSame) continue;
      throw withTarget(
        usageError(`${shown} is also that of the target ${other.name}`, "Each needs its own."),
        target,
      );
    }
  }
}

/** Throws if `--results` names the file of another option. */
export function refuseSameFile(results: ResultsPlace | undefined, others: readonly ResultPlace[]): void {
  if (results === undefined || results === "stdout") return;
  for (const { path, option } of others)
    if (isSameFile(path, results.path) || path === results.path)
      throw unusablePlace(results, `this is also the file of ${option}`);
}

/** Throws if standard output would get two images, or an image and the lines of `--results`. */
export function refuseSameStream(
  results: ResultsPlace | undefined,
  targets: readonly ResolvedTarget[],
  invocation: BakeInvocation,
): void {
  const [writing, other] = targets.filter(
    (target) =>
      readOf(target, invocation, (own) =>
        takesStandardOutput(readBuildOutputs(own, own.options.tag ?? [])),
      ) === true,
  );
  if (writing === undefined) return;
  const what = "its image goes to standard output, and so";
  if (results === "stdout")
    throw withTarget(usageError(`${what} do the lines of --results -`, "Give --results a file."), writing);
  if (other !== undefined)
    throw withTarget(
      usageError(`${what} does that of the target ${writing.name}`, "Each needs its own."),
      other,
    );
}

/** Returns what `read` gets of a target's request; with `--keep-going`, `undefined` for an invalid target, which fails when it is built. */
function readOf<Result>(
  target: ResolvedTarget,
  invocation: BakeInvocation,
  read: (own: ReturnType<typeof buildOf>) => Result,
): Result | undefined {
  try {
    const own = buildOf(target, () => placeholder, invocation);
    return inTarget(target, () => read(own));
  } catch (error) {
    if (invocation.options["keep-going"] === true) return undefined;
    throw error;
  }
}
