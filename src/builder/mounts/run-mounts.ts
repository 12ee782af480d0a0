import { posix } from "node:path";
import type { RunInstruction } from "../../dockerfile/instruction.ts";
import { visible } from "../../visible.ts";
import { findImageSource, type SourceImage } from "../bases/locked-image.ts";
import { stagedDigest } from "../cache/chain-hash.ts";
import type { MountedImage } from "../cache/step-key.ts";
import { type BuildJob, withSourceDirectory } from "../job.ts";
import type { EvictableImage } from "../state/layer.ts";
import { variableLookup } from "../state/scope.ts";
import type { Staged, StagedEntry } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import type { MountSpec } from "./mount-spec.ts";
import { expandMounts, mountedDirectory } from "./mount-support.ts";
import { stageMountedFiles } from "./mounted-files.ts";

/** The mounts of a RUN with their contents. */
export interface RunMounts {
  instruction: RunInstruction;
  mounts: readonly RunMount[];
  /** The mounts' part of the chain hash. It leaves out the content of caches, tmpfs and secrets. */
  key: string;
  /** Files of the context, by the path at which the command sees them. */
  files: Staged;
  /** Mounted stages and images. */
  images: readonly MountedImage[];
  /** Mounted images that the service may have lost. */
  evictable: readonly EvictableImage[];
}

export interface RunMount {
  spec: MountSpec;
  source: MountContent | undefined;
}

type MountContent =
  | ({ kind: "image" } & SourceImage)
  /** Files of the context, by path below the target; a lone file has the path "". */
  | { kind: "files"; files: Staged };

export async function findMounts(
  instruction: RunInstruction,
  stage: StageState,
  build: BuildJob,
): Promise<RunMounts> {
  const { escape } = build.asked.dockerfile;
  const specs = expandMounts(instruction, {
    lookup: variableLookup(stage),
    escape,
    workdir: stage.config.WorkingDir,
  });
  const mounts: RunMount[] = [];
  for (const spec of specs) mounts.push({ spec, source: await findContent(spec, instruction, build) });
  return {
    instruction,
    mounts,
    key: await mountsKey(mounts, build.services.signal),
    files: new Map(mounts.flatMap(filesOf)),
    images: mounts.flatMap(imagesOf),
    evictable: mounts.flatMap(({ source }) => (source?.kind === "image" ? (source.evictable ?? []) : [])),
  };
}

/** Returns `undefined` for a mount without content from the context or an image. */
async function findContent(
  spec: MountSpec,
  instruction: RunInstruction,
  build: BuildJob,
): Promise<MountContent | undefined> {
  switch (spec.type) {
    case "bind": {
      const directory = mountedDirectory(spec, build.asked.contexts);
      if (spec.from !== undefined && directory === undefined)
        return findImageOf(spec.from, instruction, build);
      const job = directory === undefined ? build : await withSourceDirectory(build, directory);
      return { kind: "files", files: await stageMountedFiles(spec.source, instruction, job) };
    }
    case "cache":
      // Throws for a directory.
      mountedDirectory(spec, build.asked.contexts);
      return spec.from === undefined ? undefined : findImageOf(spec.from, instruction, build);
    case "tmpfs":
    case "secret":
    case "ssh":
      return undefined;
  }
}

async function findImageOf(
  from: string,
  instruction: RunInstruction,
  build: BuildJob,
): Promise<MountContent> {
  const stage = await build.stages.mountedStage(instruction, from);
  return { kind: "image", ...(await findImageSource(from, stage, build)) };
}

/** A mount with the part of its content that the chain hash covers. */
export interface MountInput {
  spec: MountSpec;
  source: (Pick<SourceImage, "hash"> & { kind: "image" }) | { kind: "files"; files: Staged } | undefined;
}

/** Returns the mounts' part of the chain hash. As in BuildKit, a secret counts by its id, neither by value nor by presence. */
export async function mountsKey(mounts: readonly MountInput[], signal: AbortSignal): Promise<string> {
  return JSON.stringify(await Promise.all(mounts.map((mount) => keyOf(mount, signal))));
}

async function keyOf({ spec, source }: MountInput, signal: AbortSignal): Promise<unknown[]> {
  const { type, target, ...rest } = spec;
  const own = Object.entries({ ...rest, sharing: undefined, from: undefined, required: undefined })
    .filter(([, value]) => value !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  if (source === undefined) return [type, target, own];
  if (source.kind === "image") return [type, target, own, source.hash];
  // The path in the context makes no difference.
  const content = own.filter(([key]) => key !== "source");
  return [type, target, content, await stagedDigest(source.files, signal)];
}

function imagesOf({ spec, source }: RunMount): MountedImage[] {
  if (source?.kind !== "image" || !("from" in spec)) return [];
  return [{ from: spec.from ?? "", path: spec.source, hash: source.hash }];
}

function filesOf({ spec, source }: RunMount): [string, StagedEntry][] {
  if (source?.kind !== "files") return [];
  return [...source.files].map(([path, entry]) => [posix.join(spec.target, path), entry]);
}

/** Returns the mounts of secrets and agents that are not executable, as messages name them. */
export function unexecutable(mounts: RunMounts | undefined): string[] {
  return (mounts?.mounts ?? []).flatMap(({ spec }) => {
    if (spec.type !== "ssh" && !(spec.type === "secret" && spec.isFile)) return [];
    const isExecutable = spec.mode !== undefined && (Number.parseInt(spec.mode, 8) & 0o111) !== 0;
    return isExecutable ? [] : [`type=${spec.type},target=${visible(spec.target)}`];
  });
}
