import { isLoopback, registryHost } from "../../engine/import/image-source.ts";
import { BoughError } from "../../errors.ts";
import { digestOf } from "../../image/digest.ts";
import { mediaTypes } from "../../image/oci-layout.ts";
import { DeadlineError, withDeadline } from "../../service/http/deadline.ts";
import { runSkopeo, type SkopeoJob } from "./skopeo.ts";

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
export async function checkPushed(pushed: PushedManifest, job: SkopeoJob): Promise<string | undefined> {
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
