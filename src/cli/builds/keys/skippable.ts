import { readBuildOptions } from "../options/build-options.ts";
import type { BuildInvocation } from "../request.ts";
import { keyAnnotation, type Place, registryPlaces } from "./existing-image.ts";
import type { KeyedBuild } from "./keyed-build.ts";

/** A build that need not be done if its places have what it would push. */
interface SkippableBuild {
  places: readonly Place[];
  /** The annotations by which its image is found where a tag does not have the key. */
  annotations: KeyedBuild["annotations"];
}

/** True for a build that is to be done, whatever there is already. */
export function isForced({ options }: Pick<BuildInvocation, "options">): boolean {
  return options["no-cache"] === true || (options["no-cache-filter"] ?? []).length > 0;
}

/** Returns `undefined` for a build that makes something else than images of registries. One that is forced is not skipped, but later ones may be. */
export function skippableBuild(invocation: BuildInvocation, key: string): SkippableBuild | undefined {
  const places = registryPlaces(readBuildOptions(invocation).outputs);
  if (places === undefined) return undefined;
  const isInTags = places.every(({ tag }) => tag.includes(key));
  return { places, annotations: isInTags ? undefined : new Map([[keyAnnotation, key]]) };
}
