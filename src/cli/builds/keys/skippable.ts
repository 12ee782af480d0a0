import { asksForPlatforms } from "../../../builder/state/platform.ts";
import type { Values } from "../../command-line/arguments.ts";
import type { Invocation } from "../../command-line/command.ts";
import { readPlatforms, splitPair } from "../../command-line/option-values.ts";
import { readBuildOptions } from "../options/build-options.ts";
import { keyAnnotation, type Place, registryPlaces } from "./existing-image.ts";

/** A build that need not be done if its places have what it would push. */
export interface SkippableBuild {
  places: readonly Place[];
  /** The options with which its image gets the key where a tag does not have it. */
  values: Values;
}

/** Returns `undefined` for a build that somebody asks to be done, or that makes something else than images of registries. */
export function skippableBuild(invocation: Invocation, key: string): SkippableBuild | undefined {
  const { values } = invocation;
  if (values.flag("no-cache") || values.list("no-cache-filter").length > 0) return undefined;
  const options = readBuildOptions(invocation);
  const places = registryPlaces(options.outputs);
  if (places === undefined) return undefined;
  if (places.every(({ tag }) => tag.includes(key))) return { places, values };
  const isIndex =
    options.attestations !== undefined ||
    readPlatforms(values.text("platform")).length > 1 ||
    asksForPlatforms(
      new Map(
        values
          .list("build-arg")
          .map((text) => splitPair(text))
          .map(([name, value = ""]) => [name, value]),
      ),
    ) ||
    options.outputs.some(({ annotations }) => annotations.some(({ part }) => part !== "manifest"));
  const annotation = `${isIndex ? "index" : "manifest"}:${keyAnnotation}=${key}`;
  const list = (name: string) =>
    name === "annotation" ? [...values.list(name), annotation] : values.list(name);
  return { places, values: { ...values, list } };
}
