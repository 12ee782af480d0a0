import { registryHost } from "../../engine/import/image-source.ts";
import { BoughError } from "../../errors.ts";
import { digestOf } from "../../image/digest.ts";
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
 * Reads a pushed image's manifest back, which takes skopeo two requests. Throws a BoughError if the registry returns another:
 * skopeo believes a server that responds with status 200 to everything.
 *
 * @returns the reason if the manifest cannot be read. That proves nothing: a token may allow only pushing, or a mirror may lag behind.
 */
export async function checkPushed(
  { reference, digest, isInsecure }: PushedManifest,
  job: SkopeoJob,
): Promise<string | undefined> {
  const name = `docker://${reference.replace(/:[^:/]*$/, "")}@${digest}`;
  const options = ["inspect", "--raw", ...(isInsecure ? ["--tls-verify=false"] : [])];
  let manifest: Uint8Array;
  try {
    const { clock, signal: parent } = job.runtime;
    manifest = await withDeadline({ clock, milliseconds: checkMilliseconds, parent }, (signal) =>
      runSkopeo([...options, name], { ...job, runtime: { ...job.runtime, signal } }, (output) =>
        new Response(output).bytes(),
      ),
    );
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
