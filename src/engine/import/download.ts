import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { linkKnownBlobs } from "../records/imported-blobs.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { freedBytes } from "../system/disk-usage.ts";
import { openDirectoryFiles } from "./directory-files.ts";
import { downloadWatched } from "./download-watch.ts";
import type { ImageParts } from "./image-parts.ts";
import { type ImageSource, isLoopback } from "./image-source.ts";
import { createBudget } from "./limits.ts";
import { readOciLayout } from "./read-oci.ts";
import { findPolicy } from "./signature-policy.ts";
import { runSkopeo } from "./tool.ts";

export interface RegistryCredentials {
  username: string;
  password: string;
}

/** A directory below the operation's. */
export const downloadDirectory = "download";
const authFileName = "auth.json";

/**
 * Has skopeo copy an image from a registry into a layout in the operation's directory. Of an index it picks this machine's. What the
 * engine has already is not fetched again.
 *
 * @param onBlob called with the digest and the path of what has come, while the rest is on its way; it may be no layer
 */
export async function downloadImage(
  state: EngineState,
  source: Extract<ImageSource, { kind: "registry" }>,
  credentials: RegistryCredentials | undefined,
  run: OperationRun,
  { signal, onBlob }: { signal: AbortSignal; onBlob: (digest: string, path: string) => void },
): Promise<ImageParts> {
  const login =
    credentials === undefined
      ? []
      : ["--src-authfile", writeAuthFile(run.directory, source.registry, credentials)];
  const args = [
    // Large layers may go through temporary files: on the engine's disk, and gone with the operation. TMPDIR is not asked.
    ...["--tmpdir", run.directory],
    // skopeo refuses to work without a signature policy; what the machine or the user has set stays in force.
    ...(findPolicy(state.environment) === undefined ? ["--insecure-policy"] : []),
    "copy",
    // A policy has checked signatures by then, and a layout has no place for them.
    "--remove-signatures",
    "--dest-oci-accept-uncompressed-layers",
    ...["--retry-times", "2"],
    ...login,
    ...(isLoopback(source.registry) ? ["--src-tls-verify=false"] : []),
    source.name,
    `oci:${downloadDirectory}:import`,
  ];
  const layout = join(run.directory, downloadDirectory);
  const blobs = join(layout, "blobs/sha256");
  mkdirSync(blobs, { recursive: true, mode: 0o700 });
  // skopeo fetches no blob that is there, and puts one there when it has verified it.
  linkKnownBlobs(state.layout, blobs);
  const seen = new Set(readdirSync(blobs));
  const budget = createBudget(source.name, state.layout.directory, state.importLimits);
  const look = () => {
    budget.check({ bytes: freedBytes([layout]) });
    for (const name of readdirSync(blobs)) {
      if (!seen.has(name)) onBlob(`sha256:${name}`, join(blobs, name));
      seen.add(name);
    }
  };
  await downloadWatched(look, { clock: state.clock, signal }, (signal) =>
    runSkopeo(state, run, args, signal),
  );
  await rm(join(run.directory, authFileName), { force: true });
  return readOciLayout(openDirectoryFiles(layout, true), "import", source.name);
}

/** Credentials are for skopeo's eyes only: neither in its arguments nor in a file that others can read. */
function writeAuthFile(
  directory: string,
  registry: string,
  { username, password }: RegistryCredentials,
): string {
  const path = join(directory, authFileName);
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  writeFileSync(path, JSON.stringify({ auths: { [registry]: { auth } } }), { mode: 0o600 });
  return path;
}
