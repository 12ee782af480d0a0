import type { ImageSignature } from "../../builder/result.ts";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Compression } from "../../image/compression.ts";
import { digestOf } from "../../image/digest.ts";
import { type ImageToWrite, putManifests, type WrittenImage } from "../../image/image-writer.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import { isManifestType } from "../../image/oci-layout.ts";
import type { BlobStore } from "../../registry/blob-store.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { openBlobStore } from "../../registry/open-blob-store.ts";
import { RegistryError, WrongManifestError } from "../../registry/registry-error.ts";
import { registryHost } from "../../registry/repository.ts";
import { DeadlineError, withDeadline } from "../../service/http/deadline.ts";
import { registryHint } from "../../service/images/registry-hint.ts";
import type { ImageMetadataCache } from "../../store/image-metadata.ts";
import { inOneChunk } from "../../streams.ts";
import { formatPart } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";
import type { SignImage } from "../signing/open-signer.ts";
import { withKnownLayers } from "./image-source.ts";
import { pushLayers } from "./push-layers.ts";

interface PushJob {
  content: ImageToWrite;
  /** The digests of layers that were written before, and where they are. */
  imageMetadata: Pick<ImageMetadataCache, "get" | "set">;
  compression: Compression;
  /** True to accept a registry without TLS or with an unknown certificate. One on this machine is always accepted. */
  isInsecure: boolean;
  /** `--creds`; `undefined` for those that `docker login` and `skopeo login` have stored. */
  credentials: RegistryCredentials | undefined;
  onProgress: (message: string) => void;
  /** Called at the end with the number of layers that the registry had. */
  onReused: (layers: number) => void;
  /** Signs the image, before its tag names it. */
  sign: SignImage | undefined;
  /** Called if the registry does not return what was pushed, with its reason. */
  onUnverified: (reason: string) => void;
  runtime: Runtime;
}

export interface PushedImage extends WrittenImage {
  /** The bytes of the layers that were sent. */
  sentBytes: number;
  signature: ImageSignature | undefined;
}

/**
 * Pushes an image to a registry, as `HOST/NAME:TAG`, or by its digest alone to `HOST/NAME`. A layer that the registry has is not even compressed. The registry has to return the manifest at
 * the end.
 */
export async function pushImage(
  { reference, byDigest = false }: { reference: string; byDigest?: boolean },
  job: PushJob,
): Promise<PushedImage> {
  const { imageMetadata, compression, credentials, runtime } = job;
  const [, name = reference, tag = "latest"] = /^(.*):([^:/]*)$/.exec(reference) ?? [];
  const { fetch, clock, environment, signal } = runtime;
  const secured = job.isInsecure ? { isInsecure: true } : {};
  try {
    const store = openBlobStore(`docker://${name}`, { fetch, clock, environment, credentials, ...secured });
    const onSent = reportSent(clock, job.onProgress);
    const push = async () => {
      const content = withKnownLayers(job.content, imageMetadata, compression);
      const description = createDescription(store, content);
      const pushed = await pushLayers(store, { ...job, content, onSent, onKnown: description.put });
      return { ...pushed, description };
    };
    let pushed = await push();
    if (pushed.isStale) pushed = await push();
    const { reused, description } = pushed;
    let signature: ImageSignature | undefined;
    if (job.sign !== undefined) {
      const unnamed = await description.name(undefined, signal);
      signature = await job.sign(unnamed.descriptor, name, { credentials, ...secured });
    }
    const image = await description.name(byDigest ? undefined : tag, signal);
    job.onReused(reused);
    const reason = await checkPushed(store, { reference, digest: image.descriptor.digest }, runtime);
    if (reason !== undefined) job.onUnverified(reason);
    return { ...image, sentBytes: pushed.sentBytes, signature };
  } catch (error) {
    throw error instanceof RegistryError ? withAdvice(error, reference) : error;
  }
}

/** What describes the image. Its blobs are sent as soon as the layers are known, and what names them at the end. */
function createDescription(store: BlobStore, content: ImageToWrite) {
  const manifests: { mediaType: string; digest: string; bytes: Uint8Array }[] = [];
  let image: WrittenImage | undefined;
  return {
    async put(layers: readonly LayerBlob[], isNew: boolean, signal: AbortSignal): Promise<void> {
      const blobs: { digest: string; bytes: Uint8Array }[] = [];
      image = await putManifests(content, layers, (mediaType, text) => {
        const bytes = Buffer.from(text);
        const digest = digestOf(bytes);
        if (isManifestType(mediaType)) manifests.push({ mediaType, digest, bytes });
        else blobs.push({ digest, bytes });
        return { mediaType, digest, size: bytes.byteLength };
      });
      const send = async ({ digest, bytes }: (typeof blobs)[number]) => {
        const blob = { digest, size: bytes.byteLength };
        // With a new layer, the configuration is new, too.
        if (isNew || !(await store.hasBlob(blob, signal)))
          await store.putBlob(blob, () => inOneChunk(bytes), signal);
      };
      await Promise.all(blobs.map(send));
    },
    /** The last manifest, which names the others, gets the tag, if there is one. */
    async name(tag: string | undefined, signal: AbortSignal): Promise<WrittenImage> {
      for (const { mediaType, digest, bytes } of manifests)
        await store.putManifest(
          digest === image?.descriptor.digest ? (tag ?? digest) : digest,
          { mediaType, bytes },
          signal,
        );
      if (image === undefined)
        throw new Error("unreachable: the image is described when its layers are known");
      return image;
    },
  };
}

/** Adds the image's name and a hint. */
function withAdvice(error: RegistryError, reference: string): BoughError {
  const registry = registryHost(reference);
  const failure = error.status === 401 || error.status === 403 ? "login" : error.fault;
  const hint = registryHint(registry, failure, {
    login: `docker login ${registry}, or skopeo login ${registry}`,
    certificate: "set SSL_CERT_FILE=FILE to trust it, or accept it with --tls-verify=false",
  });
  return new BoughError(`pushing docker://${reference} failed: ${error.message}`, {
    hint: hint ?? error.hint,
    cause: error,
  });
}

/** The time between two messages about how much of an image is sent. */
const sentMilliseconds = 1000;

/** Returns a function that reports from time to time how much has been sent. */
function reportSent(
  clock: Clock,
  onProgress: (message: string) => void,
): (bytes: number, total: number) => void {
  let reportedAt = clock.now();
  return (bytes, total) => {
    if (clock.now() - reportedAt < sentMilliseconds) return;
    reportedAt = clock.now();
    onProgress(`sent ${formatPart(bytes, total)}`);
  };
}

/** The image is pushed already: a registry that doesn't respond must not hold up the build for longer. */
const checkMilliseconds = 60_000;

/**
 * Reads a pushed image's manifest back. Throws a BoughError if the registry returns another: a server that responds with status 200
 * to everything has accepted the image, too.
 *
 * @returns the reason if the manifest cannot be read. That proves nothing: a token may allow only pushing, or a mirror may lag behind.
 */
async function checkPushed(
  store: BlobStore,
  { reference, digest }: { reference: string; digest: string },
  { clock, signal: parent }: Runtime,
): Promise<string | undefined> {
  try {
    const found = await withDeadline({ clock, milliseconds: checkMilliseconds, parent }, (signal) =>
      store.getManifest(digest, signal),
    );
    return found === undefined ? `it has no manifest ${digest}` : undefined;
  } catch (error) {
    parent.throwIfAborted();
    if (error instanceof WrongManifestError)
      throw new BoughError(
        `pushing docker://${reference} failed: ${registryHost(reference)} accepted the image, but returns something else for its manifest ${digest}`,
        { hint: error.hint, cause: error },
      );
    if (error instanceof RegistryError || error instanceof DeadlineError) return error.message;
    throw error;
  }
}
