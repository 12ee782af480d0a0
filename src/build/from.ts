import type { FromInstruction } from "../dockerfile/instruction.ts";
import { BoughError } from "../errors.ts";
import { parseReference } from "../service/reference.ts";
import { expandBase, requireImage, requirePlatform } from "./base.ts";
import type { BuildJob } from "./job.ts";
import { commitLayer, findLayer } from "./layer.ts";
import { titleOf } from "./location.ts";
import { type BuildState, type Layer, lookUp, startStage } from "./state.ts";

/** How long the service may take to import a base image. */
const importTimeoutSeconds = 1800;

/** Starts a stage: from an earlier stage of that name, else from an image, imported where the service lacks it. */
export async function performFrom(
  instruction: FromInstruction,
  state: BuildState,
  build: BuildJob,
): Promise<BuildState> {
  const lookup = lookUp(new Map(), state.globals);
  const { escape } = build.dockerfile;
  const reference = expandBase(instruction, lookup, escape);
  requirePlatform(instruction, state.platform, lookup, escape);
  const stages =
    state.stage?.name === undefined ? state.stages : new Map(state.stages).set(state.stage.name, state.stage);
  const name = instruction.stageName?.toLowerCase();
  const earlier = stages.get(reference.toLowerCase());
  const stage =
    earlier === undefined
      ? startStage(name, await resolveBase(reference, instruction, build))
      : { ...earlier, name, args: new Map() };
  return { ...state, stages, stage };
}

async function resolveBase(reference: string, instruction: FromInstruction, build: BuildJob): Promise<Layer> {
  const { store, session, emit } = build;
  requireImage(reference);
  const image = await resolveImage(reference, build);
  emit({ type: "resolved", reference, image });
  const known = findLayer(store.sessions, session, image);
  if (known !== undefined) return known;
  return commitLayer(store.sessions, session, {
    hash: image,
    image,
    parent: undefined,
    kind: "from",
    title: titleOf(instruction),
    operation: undefined,
  });
}

async function resolveImage(
  reference: string,
  { service, store, useCache, emit }: BuildJob,
): Promise<string> {
  const found = await service.findImage(reference);
  if (found !== undefined && found !== "unknowable") return found.uuid;
  if (found === "unknowable" && useCache) {
    const remembered = store.imports.get(reference);
    if (remembered !== undefined) return remembered;
  }
  const parsed = parseReference(reference);
  if (parsed.kind !== "registry") {
    throw new BoughError(`the service has no image ${reference}`, {
      hint: "`bough images` lists those it has.",
    });
  }
  emit({ type: "importing", reference, url: parsed.url });
  const image = await service.importImage({
    url: parsed.url,
    tag: parsed.tag,
    timeoutSeconds: importTimeoutSeconds,
    onProgress: (message) => emit({ type: "import-progress", message }),
  });
  store.imports.set(reference, image);
  return image;
}
