import { posix } from "node:path";
import type { RunInstruction } from "../../dockerfile/instruction.ts";
import { requireBase } from "../bases/base.ts";
import { findImage } from "../bases/from.ts";
import { baseHash, stagedDigest } from "../cache/chain-hash.ts";
import type { Layer } from "../cache/layer-cache.ts";
import { lookUp } from "../interpreter/scope.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import type { Staged, StagedEntry } from "../staging/staged.ts";
import { expandMounts } from "./expand-mounts.ts";
import type { MountSpec } from "./mount-spec.ts";
import { stageMountedFiles } from "./mounted-files.ts";
import { missingSecret } from "./secrets.ts";

/** The mounts of a RUN with what is in them. */
export interface RunMounts {
  instruction: RunInstruction;
  mounts: readonly RunMount[];
  /** What enters the chain hash: of a cache, a tmpfs and a secret not the content. */
  key: string;
  /** Files of the context by where the command sees them. */
  files: Staged;
  /** Layers of this build that something is mounted from. */
  layers: readonly Layer[];
}

export interface RunMount {
  spec: MountSpec;
  source: MountContent | undefined;
}

type MountContent =
  | { kind: "image"; image: string; layer: Layer | undefined; hash: string }
  /** Files of the context, by path below the target; a lone file has the path "". */
  | { kind: "files"; files: Staged };

export async function findMounts(
  instruction: RunInstruction,
  stage: StageState,
  build: BuildJob,
): Promise<RunMounts> {
  const { escape } = build.dockerfile;
  const specs = expandMounts(instruction, {
    lookup: lookUp(stage),
    escape,
    workdir: stage.config.WorkingDir,
  });
  const mounts: RunMount[] = [];
  for (const spec of specs) mounts.push({ spec, source: await findContent(spec, instruction, build) });
  const parts = await Promise.all(mounts.map((mount) => keyOf(mount, build.signal)));
  return {
    instruction,
    mounts,
    key: JSON.stringify(parts),
    files: new Map(mounts.flatMap(filesOf)),
    layers: mounts.flatMap(({ source }) => (source?.kind === "image" ? (source.layer ?? []) : [])),
  };
}

/** `undefined`: it has no content that counts. */
async function findContent(
  spec: MountSpec,
  instruction: RunInstruction,
  build: BuildJob,
): Promise<MountContent | undefined> {
  switch (spec.type) {
    case "bind":
      return spec.from === undefined
        ? { kind: "files", files: await stageMountedFiles(spec.source, instruction, build) }
        : findImageOf(spec.from, instruction, build);
    case "cache":
      return spec.from === undefined ? undefined : findImageOf(spec.from, instruction, build);
    case "tmpfs":
      return undefined;
    case "secret":
    case "ssh": {
      const given = spec.type === "secret" ? build.secrets.values : build.secrets.agents;
      if (spec.required && !given.has(spec.id)) throw missingSecret(spec.type, spec.id, [...given.keys()]);
      return undefined;
    }
  }
}

async function findImageOf(
  from: string,
  instruction: RunInstruction,
  build: BuildJob,
): Promise<MountContent> {
  const layer = await build.stages.mountedStage(instruction, from);
  if (layer !== undefined) return { kind: "image", image: layer.image, hash: layer.hash, layer };
  await requireBase(from, build.service);
  const image = await findImage(from, build);
  return { kind: "image", image: image.uuid, hash: baseHash(image, build.service), layer: undefined };
}

/** A secret's id says what it is; neither its value nor whether it was given makes another step of it, as in BuildKit. */
async function keyOf({ spec, source }: RunMount, signal: AbortSignal): Promise<unknown[]> {
  const { type, target, ...rest } = spec;
  const own = Object.entries({ ...rest, sharing: undefined, from: undefined, required: undefined })
    .filter(([, value]) => value !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  if (source === undefined) return [type, target, own];
  if (source.kind === "image") return [type, target, own, source.hash];
  // The place in the context where it was found makes no difference.
  const content = own.filter(([key]) => key !== "source");
  return [type, target, content, await stagedDigest(source.files, signal)];
}

function filesOf({ spec, source }: RunMount): [string, StagedEntry][] {
  if (source?.kind !== "files") return [];
  return [...source.files].map(([path, entry]) => [posix.join(spec.target, path), entry]);
}
