import type { Dockerfile, FromInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { type ImageConfig, variablesIn } from "../../image/config.ts";
import { parseReference } from "../../service/images/reference.ts";
import type { FoundImage } from "../../service/service.ts";
import { nearest } from "../../suggest.ts";
import { baseHash } from "../cache/chain-hash.ts";
import type { Layer } from "../cache/layer-cache.ts";
import { notedConfiguration, notedOrigin } from "../cache/noted-configuration.ts";
import { titleOf } from "../interpreter/location.ts";
import { type StageState, startStage } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { requireBase, scratch } from "./base.ts";
import { inheritedVariables } from "./inherited.ts";
import { localBaseUrl } from "./local-base.ts";
import { noteReference } from "./noted-base.ts";

/** The time limit for the import of a base image. */
const importTimeoutSeconds = 1800;

/** Starts a stage from an image. The stage keeps the image's configuration, if the service returns it. */
export async function startFromImage(
  reference: string,
  instruction: FromInstruction,
  build: BuildJob,
): Promise<StageState> {
  const image = await findImage(reference, build);
  const { uuid, config, origin } = image;
  if (reference !== scratch) noteReference(uuid, reference, build.store);
  build.emit({ type: "resolved", reference, image: uuid });
  const layer = baseLayer(image, instruction, build);
  if (config === undefined) return startFromNoted(layer, reference, instruction, build);
  const stage = startStage(layer, config, origin ?? notedOrigin(uuid, build.store));
  warnOfConfiguration(reference, config, instruction, build);
  return { ...stage, inherited: inheritedVariables(variablesIn(config)) };
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
  const noted = notedConfiguration(layer.image, build.store);
  const origin = notedOrigin(layer.image, build.store);
  if (noted === undefined) return startStage(layer, {}, origin);
  const { Env: _, ...config } = noted;
  warnOfConfiguration(reference, config, instruction, build);
  return { ...startStage(layer, config, origin), env: variablesIn(noted) };
}

function warnOfConfiguration(
  reference: string,
  { OnBuild = [], Shell = [] }: ImageConfig,
  { range }: FromInstruction,
  { emit, mode }: BuildJob,
): void {
  if (mode === "docker") return;
  const ignored = [
    ...OnBuild.map((trigger) => `its trigger ONBUILD ${trigger} is not run`),
    ...(Shell.length === 0
      ? []
      : [`its SHELL ${JSON.stringify(Shell)} is not used: every RUN goes through /bin/sh`]),
  ];
  for (const what of ignored) emit({ type: "warning", message: `${reference}: ${what}`, line: range.start });
}

function baseLayer(
  image: FoundImage,
  instruction: FromInstruction,
  { layers, service, useCache, early }: BuildJob,
): Layer {
  const hash = baseHash(image, service);
  const known = layers.find(hash);
  // If the image has no layer yet, this session has never started from it and no step is cached, unless others share their
  // layers.
  if ((known === undefined && !layers.hasOthers) || !useCache) early.begin();
  // Several equal images have the same hash.
  if (known?.image === image.uuid) return known;
  const title = titleOf(instruction);
  return layers.put({
    hash,
    image: image.uuid,
    parent: undefined,
    kind: "from",
    title,
    operation: undefined,
  });
}

/** Finds the image of a reference. Imports it once for all stages, if the service lacks it. */
export async function findImage(reference: string, build: BuildJob): Promise<FoundImage> {
  const found = await build.shared.images(reference, () => resolveImage(reference, build));
  build.inputs?.image(reference, found.uuid);
  return found;
}

async function resolveImage(reference: string, build: BuildJob): Promise<FoundImage> {
  const { service, store, useCache } = build;
  await requireBase(reference, service);
  if (reference === scratch) {
    const image = await service.importImage({ url: scratch, timeoutSeconds: importTimeoutSeconds });
    return foundAgain(image, build);
  }
  const found = await service.findImage(reference);
  if (found !== undefined && found !== "unsupported") return found;
  if (found === "unsupported" && useCache) {
    const remembered = store.imports.get(reference);
    if (remembered !== undefined) return { uuid: remembered };
  }
  const parsed = parseReference(reference);
  if (parsed.kind === "uuid" || parsed.kind === "tag") {
    throw new BoughError(`there is no image ${reference}`, {
      hint: "`bough images` lists those it has.",
    });
  }
  const image =
    parsed.kind === "local"
      ? await importBase(reference, { url: localBaseUrl(parsed, build), tag: undefined }, build)
      : await importBase(
          reference,
          { url: parsed.url, tag: await freeTag(reference, parsed.tag, build) },
          build,
        );
  // A local path means another image in every context.
  if (parsed.kind === "registry") store.imports.set(reference, image);
  return found === "unsupported" ? { uuid: image } : foundAgain(image, build);
}

/** Returns an image that was just imported, with its configuration. */
async function foundAgain(uuid: string, { service }: BuildJob): Promise<FoundImage> {
  const found = await service.findImage(uuid);
  return found === undefined || found === "unsupported" ? { uuid } : found;
}

/** Returns the tag if no image has it yet: a Dockerfile never moves a tag. The caller has looked up the reference itself. */
async function freeTag(
  reference: string,
  tag: string | undefined,
  { service }: BuildJob,
): Promise<string | undefined> {
  if (tag === undefined || !reference.startsWith("docker://")) return tag;
  return (await service.findImage(tag)) === undefined ? tag : undefined;
}

function importBase(
  reference: string,
  { url, tag }: { url: string; tag: string | undefined },
  { service, emit, dockerfile }: BuildJob,
): Promise<string> {
  emit({ type: "importing", reference, url });
  return service
    .importImage({
      url,
      tag,
      timeoutSeconds: importTimeoutSeconds,
      onProgress: (message) => emit({ type: "import-progress", message }),
    })
    .catch((error: unknown) => {
      throw withStageHint(error, reference, dockerfile);
    });
}

/** Adds a hint to an import's error if the reference looks like a misspelt stage name. */
function withStageHint(error: unknown, reference: string, { stages }: Dockerfile): unknown {
  if (!(error instanceof BoughError) || error.kind !== "failed") return error;
  const meant = nearest(
    reference,
    stages.flatMap(({ name }) => name ?? []),
  );
  if (meant === undefined || meant === reference) return error;
  const hint = `Did you mean the stage ${meant}? ${error.hint ?? ""}`.trimEnd();
  return new BoughError(error.message, { hint, cause: error });
}
