import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { readAtMost } from "../../streams.ts";
import { scratch } from "../bases/base.ts";
import { supportOf } from "../service-support.ts";
import type { IndexFiles } from "./index-file.ts";
import { scopeOfTag, scopeTag } from "./scope-name.ts";

/** The part of a service that scopes use. */
export type ScopeService = Pick<
  Service,
  | "address"
  | "cancel"
  | "capabilities"
  | "follow"
  | "importImage"
  | "layerSizes"
  | "listImages"
  | "openFile"
  | "pathType"
  | "removeTag"
  | "spawn"
  | "tagImage"
  | "uploadStream"
>;

/** An image with an index of a scope. */
export interface IndexImage {
  image: string;
  tag: string;
  /** True if it has the scope's own tag. The others are left by single writes, in case another writer moves that tag. */
  isMain: boolean;
  /** Milliseconds since the epoch, by the service's clock. */
  createdAt: number;
}

/**
 * Lists a scope's images, the one with the scope's own tag first. That one suffices: to ask for a further page would cost each
 * build a request. Rejects if the service has no list of images.
 */
export async function listIndexImages(name: string, service: ScopeService): Promise<IndexImage[]> {
  const main = scopeTag(name);
  const records = await service.listImages({ tag: main }, ({ tag }) => tag === main);
  requireImageList(service);
  return records
    .flatMap(({ uuid, tag, created_at }) =>
      tag !== null && scopeOfTag(tag) === name
        ? [{ image: uuid, tag, isMain: tag === main, createdAt: Date.parse(created_at) || 0 }]
        : [],
    )
    .sort((one, other) => Number(other.isMain) - Number(one.isMain) || other.createdAt - one.createdAt);
}

/** Throws if the service does not support listing images, so that a list that was just read is empty. */
export function requireImageList(service: Pick<Service, "address" | "capabilities">): void {
  if (!supportOf(service).imageList())
    throw new BoughError(`${service.address} does not support listing images, which cache scopes need`);
}

/** The paths of an index's files in its image. */
const paths: Readonly<Record<keyof IndexFiles, string>> = {
  index: "/bough-cache/index",
  steps: "/bough-cache/steps",
};

/** The size limit of a file. No index is larger: each section is bounded. */
const maxBytes = 32 * 1024 * 1024;

/** Returns `undefined` if the file does not exist, or if the image no longer does. */
export async function readIndexFile(
  image: string,
  file: keyof IndexFiles,
  service: ScopeService,
): Promise<Uint8Array | undefined> {
  try {
    const body = await service.openFile(image, paths[file]);
    if (body === undefined) {
      await requireInspect(image, service);
      return undefined;
    }
    const { bytes, isWhole } = await readAtMost(maxBytes, body);
    if (!isWhole) throw new BoughError(`${paths[file]} of image ${image} is too large for an index`);
    return bytes;
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    await requireInspect(image, service);
    return undefined;
  }
}

/** Rejects if the service can't show an image's contents, without which an index can't be read. */
export async function requireInspect(image: string, service: ScopeService): Promise<void> {
  const root = await service.pathType(image, "/").catch((error: unknown) => {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  });
  if (root !== "unsupported") return;
  throw new BoughError(
    "the service can't read files of an image, which cache scopes need: it does not support GET /v1/inspect/{image_uuid}/download",
  );
}

const timeoutSeconds = 60;

/**
 * Makes an image of the files and returns its UUID. The image has no other files if the service supports that. Otherwise it is
 * made from one of `bases`, by a command that does nothing.
 */
export async function makeIndexImage(
  files: IndexFiles,
  bases: readonly string[],
  service: ScopeService,
  signal: AbortSignal,
): Promise<string> {
  const placed: NonNullable<InstanceRequest["files"]> = {};
  for (const [name, bytes] of [
    ["index", files.index],
    ["steps", files.steps],
  ] as const) {
    const content = new Blob([new Uint8Array(bytes)]);
    const { uuid } = await service.uploadStream(() => content.stream(), { contentLength: content.size });
    placed[paths[name]] = { uuid, uid: 0, gid: 0, mode: "0644" };
  }
  const supports = supportOf(service);
  const needsNoCommand = await supports.layersWithoutCommand();
  const request: Omit<InstanceRequest, "image"> = {
    ...(needsNoCommand ? { command: "", shell: false, entries: {} } : { command: ":", shell: true }),
    cwd: "/",
    files: placed,
    timeout: timeoutSeconds,
    disposable: false,
  };
  const starts =
    needsNoCommand && (await supports.scratch())
      ? [await service.importImage({ url: scratch, timeoutSeconds })]
      : bases;
  let reason = "the build has no image to store it in";
  for (const image of starts) {
    const made = await runToEnd({ ...request, image }, service, signal);
    if ("image" in made) return made.image;
    reason = made.reason;
  }
  throw new BoughError(`cannot make an image for it: ${reason}`);
}

async function runToEnd(
  request: InstanceRequest,
  service: ScopeService,
  signal: AbortSignal,
): Promise<{ image: string } | { reason: string }> {
  // A second run has the same result.
  const operation = await service.spawn(request, { mayRunTwice: true });
  try {
    const { status, exitCode = 0, error, image } = await service.follow(operation);
    if (status === "SUCCESS" && exitCode === 0 && image !== undefined) return { image };
    return { reason: error ?? `a command in image ${request.image} ended with exit code ${exitCode}` };
  } catch (error) {
    if (signal.aborted) await service.cancel(operation);
    throw error;
  }
}
