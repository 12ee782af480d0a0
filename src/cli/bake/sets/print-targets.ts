import { normalizedName } from "../../../registry/repository.ts";
import { jsonText } from "../../../terminal/json-text.ts";
import type { Performed } from "../../builds/perform-build.ts";
import { metadataOf } from "../../builds/result-files.ts";
import { printResult } from "../../command-line/result.ts";
import { isDroppable } from "../keys/key-use.ts";
import type { BakeInvocation } from "../options/bake-options.ts";
import type { ResolvedTarget } from "../resolve.ts";
import type { TargetOutcome, TargetOutcomes } from "./target-outcome.ts";

/** Returns the text of `--metadata-file`: a map by target, as docker buildx bake writes it. */
export function metadataText(ends: TargetOutcomes, called: readonly ResolvedTarget[]): string {
  const all = new Map<string, object>(called.map(({ name }) => [name, {}]));
  for (const [name, end] of ends) {
    if (end.status === "built") all.set(name, metadataOf(end.result, end.result.buildx));
    if (end.status !== "skipped") continue;
    const names = end.tags.map(normalizedName).join(",");
    all.set(name, { "containerimage.digest": end.digest, "image.name": names });
  }
  return `${jsonText(Object.fromEntries([...all].sort(byName)), { indent: 2 })}\n`;
}

/** Prints the images of the targets that are built or already in their registries. */
export function printTargets(
  targets: ReadonlyMap<string, ResolvedTarget>,
  ends: TargetOutcomes,
  invocation: BakeInvocation,
): void {
  const found = [...ends].filter(([, { status }]) => status === "built" || status === "skipped");
  // Standard output has an image, and must have nothing else then.
  if (found.length === 0 || found.some(([, end]) => end.status === "built" && !end.result.printsImage))
    return;
  const drops = invocation.options["drop-pushed"] === true;
  const shown = found
    .flatMap(([name, end]) => {
      const target = targets.get(name);
      return target === undefined ? [] : shownOf(target, end, drops).map((each) => [name, each] as const);
    })
    .sort(byName);
  printResult(invocation, {
    id: shown.flatMap(([, { image, platforms }]) => platforms?.map((each) => each.image) ?? image ?? []),
    json: Object.fromEntries(
      shown.map(([name, { image, tags, session, exported, platforms, digest }]) => {
        const chosen = platforms && { platforms };
        return [name, { image, tag: tags[0] ?? null, tags, session, ...chosen, digest, exported }];
      }),
    ),
    table: () => {
      const hasPlatforms = shown.some(([, { platforms }]) => platforms !== undefined);
      const rows = shown.flatMap(
        ([name, { image, tags, session, platforms = [{ image, platform: null }] }]) =>
          (tags.length === 0 ? [null] : tags).flatMap((tag) =>
            platforms.map((each) => [
              name,
              each.image,
              ...(hasPlatforms ? [each.platform] : []),
              tag,
              session,
            ]),
          ),
      );
      return {
        header: ["TARGET", "IMAGE", ...(hasPlatforms ? ["PLATFORM"] : []), "TAG", "SESSION"],
        rows: rows.map((row) => row.map((whole) => whole && { whole })),
      };
    },
  });
}

type Shown = Pick<Performed, "tags" | "exported" | "platforms"> & {
  image: string | null;
  session: string | null;
  digest: string | null;
};

function shownOf(target: ResolvedTarget, end: TargetOutcome, drops: boolean): Shown[] {
  if (end.status === "skipped")
    return [{ image: null, session: null, tags: end.tags, digest: end.digest, exported: [] }];
  if (end.status !== "built" || target.isLinked) return [];
  const { platforms, ...result } = end.result;
  const shown = { ...result, digest: result.exported[0]?.descriptor.digest ?? null };
  // With `--drop-pushed` only the registry has the image.
  return [
    drops && isDroppable(target) ? { ...shown, image: null } : { ...shown, ...(platforms && { platforms }) },
  ];
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}
