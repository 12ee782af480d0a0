import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import type { RegistryCredentials } from "../../engine/import/download.ts";
import { authFileText, retryOption } from "../../engine/import/registry-settings.ts";
import { findProgram } from "../../engine/system/programs.ts";
import { BoughError } from "../../errors.ts";
import type { Compression } from "../../image/compress.ts";
import { blobPath, digestOf } from "../../image/digest.ts";
import { type ImageToWrite, type WrittenImage, writeOciLayout } from "../../image/image-writer.ts";
import type { LayerBlob } from "../../image/layer-header.ts";
import { mediaTypes } from "../../image/oci-layout.ts";
import { writeToDirectory } from "../../image/output-files.ts";
import { isLoopback, registryHost, verifiesTls } from "../../registry/hosts.ts";
import { DeadlineError, withDeadline } from "../../service/http/deadline.ts";
import { registryHint } from "../../service/images/registry-hint.ts";
import type { FactStore } from "../../store/facts.ts";
import { formatPart } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";
import { openScratch } from "../process/scratch.ts";
import { withKnownLayers } from "./image-source.ts";
import { copyImage, runSkopeo, type SkopeoJob } from "./skopeo.ts";

interface PushJob {
  content: ImageToWrite;
  /** The digests of layers that were written before. */
  facts: Pick<FactStore, "get" | "set">;
  compression: Compression;
  /** True to accept a registry without TLS or with an unknown certificate. One on this machine is always accepted. */
  isInsecure: boolean;
  /** `--creds`; `undefined` for those that skopeo finds. */
  credentials: RegistryCredentials | undefined;
  onProgress: (message: string) => void;
  /** Called at the end with the number of layers that the registry had. */
  onReused: (layers: number) => void;
  /** Called if the registry does not return what was pushed, with its reason. */
  onUnverified: (reason: string) => void;
  runtime: Runtime;
}

/**
 * Has skopeo push an image to a registry, with the credentials that it finds, such as those of `docker login` or `skopeo login`.
 * A layer that the registry has is not even compressed. The registry has to return the manifest at the end.
 */
export async function pushImage(reference: string, job: PushJob): Promise<WrittenImage> {
  const { environment } = job.runtime;
  const isInsecure = job.isInsecure || !verifiesTls(registryHost(reference), environment);
  findProgram("skopeo", environment);
  using scratch = openScratch("push", environment);
  const directory = scratch.path;
  mkdirSync(directory, { mode: 0o700 });
  const runtime = withCredentials(job, reference, directory);
  let layers: readonly LayerBlob[] = [];
  // The registry is assumed to have the layers that were packed before, up to the first that turns out to be missing.
  let firstMissing = Number.POSITIVE_INFINITY;
  for (let attempt = 1; ; attempt++) {
    const trusts = (blob: LayerBlob, index: number) => index < firstMissing || isPacked(directory, blob);
    const { compression, facts } = job;
    const image = await writeLayout(
      directory,
      withKnownLayers(job.content, facts, { compression, trusts }),
      job,
    );
    layers = image.layers;
    const packed = layers.filter((blob) => isPacked(directory, blob));
    const bytes = packed.reduce((sum, { size }) => sum + size, 0);
    try {
      await copyLayout(reference, directory, bytes, { ...job, runtime, isInsecure });
      // skopeo asks the registry for a layer before it opens its file: layers without a file were there.
      job.onReused(layers.length - packed.length);
      const pushed = { reference, digest: image.descriptor.digest, isInsecure };
      const reason = await checkPushed(pushed, { directory, runtime });
      if (reason !== undefined) job.onUnverified(reason);
      return image;
    } catch (error) {
      const missing = findMissing(error, directory, layers);
      if (missing === undefined || missing >= firstMissing) throw error;
      firstMissing = attempt < maxGuesses ? missing : 0;
    }
  }
}

/** Others could see arguments of skopeo, so it gets the credentials in a file that only this user can read. */
function withCredentials({ runtime, credentials }: PushJob, reference: string, directory: string): Runtime {
  if (credentials === undefined) return runtime;
  const path = join(directory, "auth.json");
  const { username, password } = credentials;
  writeFileSync(path, authFileText(registryHost(reference), username, password), { mode: 0o600 });
  return { ...runtime, environment: { ...runtime.environment, REGISTRY_AUTH_FILE: path } };
}

/** The number of attempts that assume the registry to have some of the layers. The next assumes that it has none. */
const maxGuesses = 4;

/** Returns the index of the layer whose file skopeo did not find; `undefined` if it failed for another reason. */
function findMissing(error: unknown, directory: string, layers: readonly LayerBlob[]): number | undefined {
  if (!(error instanceof BoughError)) return undefined;
  const found = layers.findIndex((blob) => error.message.includes(packedPath(directory, blob)));
  return found === -1 ? undefined : found;
}

function isPacked(directory: string, blob: LayerBlob): boolean {
  return existsSync(packedPath(directory, blob));
}

function packedPath(directory: string, { digest }: LayerBlob): string {
  return join(directory, "layout", blobPath(digest));
}

/** Writes the image to a layout, in which the layers that an earlier attempt has packed stay. */
async function writeLayout(
  directory: string,
  content: ImageToWrite,
  { compression }: PushJob,
): Promise<WrittenImage> {
  const layout = join(directory, "layout");
  mkdirSync(layout, { recursive: true });
  using files = writeToDirectory(layout);
  return await writeOciLayout(files, content, { compression, name: "push" });
}

async function copyLayout(
  reference: string,
  directory: string,
  packedBytes: number,
  { isInsecure, onProgress, runtime }: PushJob,
): Promise<void> {
  const ended = new AbortController();
  const options = [
    ...["copy", "--all", "--preserve-digests", ...retryOption(runtime.environment)],
    ...(isInsecure ? ["--dest-tls-verify=false"] : []),
  ];
  const watched = { clock: runtime.clock, signal: ended.signal, onProgress };
  try {
    await copyImage(options, [`oci:${join(directory, "layout")}:push`, `docker://${reference}`], {
      directory,
      onLine: onProgress,
      onStart: (pid) => reportSent(pid, packedBytes, watched),
      runtime,
    });
  } catch (error) {
    throw error instanceof BoughError && error.kind === "failed" ? withAdvice(error, reference) : error;
  } finally {
    ended.abort();
  }
}

/** Adds a hint, and removes the beginning of skopeo's message, which names the blob it worked on. The cause comes last. */
function withAdvice(error: BoughError, reference: string): BoughError {
  const registry = registryHost(reference);
  const reason = error.message.replace(/^skopeo: trying to reuse blob \S+ at destination: /, "skopeo: ");
  const hint =
    error.hint ??
    registryHint(registry, reason, {
      login: `docker login ${registry}, or skopeo login ${registry}`,
      certificate: "set SSL_CERT_FILE=FILE to trust it, or accept it with --tls-verify=false",
    });
  return new BoughError(`pushing docker://${reference} failed: ${reason}`, {
    hint,
    cause: error,
  });
}

/** The time between two messages about how much of an image is sent. */
const sentMilliseconds = 1000;

/** Reports how much skopeo has sent. skopeo prints only which layer it sends, but the kernel counts the bytes it writes. */
function reportSent(
  skopeo: number,
  bytes: number,
  { clock, signal, onProgress }: { clock: Clock; signal: AbortSignal; onProgress: (message: string) => void },
): void {
  const next = async (): Promise<void> => {
    await clock.sleep(sentMilliseconds, signal);
    const sent = writtenBytes(skopeo);
    if (sent === undefined) return;
    // Layers that the registry has are not sent, and requests add a few bytes.
    onProgress(`sent ${formatPart(sent, bytes)}`);
    return next();
  };
  next().catch(() => undefined);
}

/** Returns `undefined` if the system does not count them. */
function writtenBytes(pid: number): number | undefined {
  try {
    const written = /^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1];
    return written === undefined ? undefined : Number(written);
  } catch {
    return undefined;
  }
}

interface PushedManifest {
  reference: string;
  digest: string;
  /** True for a registry without TLS or with an unknown certificate. */
  isInsecure: boolean;
}

/** The image is pushed already: a registry that doesn't respond must not hold up the build for longer. */
const checkMilliseconds = 60_000;

/**
 * Reads a pushed image's manifest back. Throws a BoughError if the registry returns another: skopeo believes a server that responds
 * with status 200 to everything.
 *
 * @returns the reason if the manifest cannot be read. That proves nothing: a token may allow only pushing, or a mirror may lag behind.
 */
async function checkPushed(pushed: PushedManifest, job: SkopeoJob): Promise<string | undefined> {
  const { reference, digest } = pushed;
  const { clock, signal: parent } = job.runtime;
  let manifest: Uint8Array;
  try {
    manifest = await withDeadline({ clock, milliseconds: checkMilliseconds, parent }, async (signal) => {
      const read = await readDirectly(pushed, job, signal);
      if (read !== undefined && digestOf(read) === digest) return read;
      return readWithSkopeo(pushed, { ...job, runtime: { ...job.runtime, signal } });
    });
  } catch (error) {
    if (error instanceof DeadlineError) return error.message;
    if (!(error instanceof BoughError) || error.kind !== "failed") throw error;
    return error.message;
  }
  if (digestOf(manifest) === digest) return undefined;
  const registry = registryHost(reference);
  throw new BoughError(
    `pushing docker://${reference} failed: ${registry} accepted the image, but returns something else for its manifest ${digest}`,
    { hint: `Is ${registry} a registry? A proxy or another web server may respond in its place.` },
  );
}

/**
 * Asks a registry of this machine without skopeo, whose start takes a quarter of a small push. Returns `undefined` if it needs TLS or
 * a login, which are skopeo's business.
 */
async function readDirectly(
  { reference, digest }: PushedManifest,
  { runtime }: SkopeoJob,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const registry = registryHost(reference);
  if (!isLoopback(registry)) return undefined;
  const name = repositoryOf(reference).slice(registry.length + 1);
  const url = `http://${registry}/v2/${name}/manifests/${digest}`;
  const headers = { accept: `${mediaTypes.manifest}, ${mediaTypes.index}` };
  try {
    const response = await runtime.fetch(url, { headers, signal });
    return response.ok ? await response.bytes() : undefined;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

function readWithSkopeo(
  { reference, digest, isInsecure }: PushedManifest,
  job: SkopeoJob,
): Promise<Uint8Array> {
  const options = ["inspect", "--raw", ...(isInsecure ? ["--tls-verify=false"] : [])];
  const name = `docker://${repositoryOf(reference)}@${digest}`;
  return runSkopeo([...options, name], job, (output) => new Response(output).bytes());
}

function repositoryOf(reference: string): string {
  return reference.replace(/:[^:/]*$/, "");
}
