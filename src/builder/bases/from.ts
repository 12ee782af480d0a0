import type { FromInstruction } from "../../dockerfile/instruction.ts";
import { type ImageConfig, variablesIn, withDefaultPath } from "../../image/config.ts";
import { formatPlatform, type Platform, requireFor } from "../../image/platform.ts";
import { baseHash } from "../cache/chain-hash.ts";
import { notedConfiguration, notedOrigin, noteReference } from "../cache/noted-images.ts";
import type { BaseImage, BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import type { Layer } from "../state/layer.ts";
import { type StageState, startStage } from "../state/state.ts";
import { scratch } from "./base.ts";
import { findLockedImage } from "./locked-image.ts";

/** Starts a stage from an image. The stage keeps the image's configuration, if the service returns it. */
export async function startFromImage(
  name: string,
  instruction: FromInstruction,
  platform: Platform | undefined,
  build: BuildJob,
): Promise<StageState> {
  const image = await findLockedImage(name, platform, build);
  const { uuid, origin, reference } = image;
  requireFor(image.platform, platform && formatPlatform(platform), reference);
  // Docker's empty image has this directory, which the engine's does not say.
  const config =
    reference === scratch && build.asked.dialect.keepsConfiguration
      ? { WorkingDir: "/", ...image.config }
      : image.config;
  if (reference !== scratch) noteReference(uuid, reference, build.services.store);
  build.emit({ type: "resolved", reference, image: uuid });
  const layer = baseLayer(image, instruction, build);
  if (config === undefined) return startFromNoted(layer, reference, instruction, build);
  const stage = startStage(layer, config, { ...notedOrigin(uuid, build.services.store), ...origin });
  warnOfConfiguration(reference, config, instruction, build);
  return { ...stage, inherited: withDefaultPath(variablesIn(config)) };
}

/**
 * Starts a stage with the configuration that bough noted when it built the image, for a service that returns none. The note does
 * not have the variables of the image's own base.
 */
function startFromNoted(
  layer: Layer,
  reference: string,
  instruction: FromInstruction,
  build: BuildJob,
): StageState {
  const noted = notedConfiguration(layer.image, build.services.store);
  const origin = notedOrigin(layer.image, build.services.store);
  if (noted === undefined) return startStage(layer, {}, origin);
  const { Env: _, ...config } = noted;
  warnOfConfiguration(reference, config, instruction, build);
  return { ...startStage(layer, config, origin), env: variablesIn(noted) };
}

function warnOfConfiguration(
  reference: string,
  { OnBuild = [], Shell = [] }: ImageConfig,
  { range }: FromInstruction,
  { emit, asked }: BuildJob,
): void {
  if (asked.dialect.keepsConfiguration) return;
  const ignored = [
    ...OnBuild.map((trigger) => `its trigger ONBUILD ${trigger} is not run`),
    ...(Shell.length === 0
      ? []
      : [`its SHELL ${JSON.stringify(Shell)} is not used: every RUN goes through /bin/sh`]),
  ];
  for (const what of ignored) emit({ type: "warning", message: `${reference}: ${what}`, line: range.start });
}

function baseLayer(
  image: BaseImage,
  instruction: FromInstruction,
  { services, useCache, early }: BuildJob,
): Layer {
  const { layers } = services;
  const hash = baseHash(image, services.service);
  const known = layers.findLocal(hash);
  // If the image has no layer yet, this session has never started from it and no step is cached, unless others share their
  // layers.
  if ((known === undefined && !layers.hasOthers) || !useCache) early.markNeeded();
  // Several equal images have the same hash.
  if (known?.image === image.uuid) return known;
  const title = titleOf(instruction);
  const layer = layers.put({
    hash,
    image: image.uuid,
    parent: undefined,
    kind: "from",
    title,
    operation: undefined,
  });
  return image.isRemembered === true ? { ...layer, cached: true } : layer;
}
