import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import type { Platform } from "../../image/platform.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { sandboxSpid } from "../../service/wire/operation.ts";
import { createBudget } from "../import-limits.ts";
import { linkKnownBlobs } from "../records/imported-blobs.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { freedBytes } from "../system/disk.ts";
import { LocalAddressError, resolveRemote, startFetchGuard } from "./fetch-guard.ts";
import { openDirectoryFiles } from "./image-files.ts";
import type { ImageParts } from "./image-parts.ts";
import type { ImageSource } from "./image-source.ts";
import { readOciLayout } from "./read-oci.ts";
import { sourceWords } from "./registry-settings.ts";
import { findPolicy } from "./signature-policy.ts";
import { runSkopeo } from "./tool.ts";

/** The name of the download's directory in the operation's directory. */
export const downloadDirectory = "download";
const authFileName = "auth.json";

/**
 * Lets skopeo copy an image from a registry into an OCI layout in the operation's directory. From an index it picks the image for
 * the platform, by default this machine's. Blobs that the engine has are not fetched again.
 *
 * @param onBlob called with the digest and the path of each downloaded blob while others are downloaded; it may not be a layer
 */
export async function downloadImage(
  state: EngineState,
  source: Extract<ImageSource, { kind: "registry" }>,
  platform: Platform | undefined,
  credentials: RegistryCredentials | undefined,
  run: OperationRun,
  { signal, onBlob }: { signal: AbortSignal; onBlob: (digest: string, path: string) => void },
): Promise<ImageParts> {
  const login =
    credentials === undefined
      ? []
      : ["--src-authfile", writeAuthFile(run.directory, source.registry, credentials)];
  const words = sourceWords(source.name, run.directory, state.environment);
  const args = [
    // The temporary files of large layers belong on the engine's disk. skopeo ignores TMPDIR for them.
    ...["--tmpdir", run.directory],
    // skopeo refuses to work without a signature policy. A policy of the machine or the user stays in force.
    ...(findPolicy(state.environment) === undefined ? ["--insecure-policy"] : []),
    ...words.global,
    ...overrides(platform),
    "copy",
    // The policy has checked signatures by then, and an OCI layout can't hold them.
    "--remove-signatures",
    "--dest-oci-accept-uncompressed-layers",
    ...words.copy,
    ...login,
    source.name,
    `oci:${downloadDirectory}:import`,
  ];
  const layout = join(run.directory, downloadDirectory);
  const blobs = join(layout, "blobs/sha256");
  mkdirSync(blobs, { recursive: true, mode: 0o700 });
  // skopeo does not fetch a blob that is already there, and puts a blob there only after verifying it.
  linkKnownBlobs(state, blobs);
  const seen = new Set(readdirSync(blobs));
  const budget = createBudget(source.name, state.layout.directory, state.importLimits);
  const report = createByteReport(state, run);
  const check = () => {
    const bytes = freedBytes([layout]);
    budget.check({ bytes });
    report(bytes);
    for (const name of readdirSync(blobs)) {
      if (!seen.has(name)) onBlob(`sha256:${name}`, join(blobs, name));
      seen.add(name);
    }
  };
  await using guard = state.allowsLocalFetch ? undefined : await guardFetch(source.registry, state);
  try {
    await downloadWatched(check, { clock: state.clock, signal }, (signal) =>
      runSkopeo(state, run, args, signal, guard),
    );
  } catch (error) {
    throw guard?.reasonOf(messageOf(error)) ?? error;
  }
  await rm(join(run.directory, authFileName), { force: true });
  return readOciLayout(openDirectoryFiles(layout, true), "import", source.name, platform);
}

function overrides(platform: Platform | undefined): string[] {
  if (platform === undefined) return [];
  const { os, architecture, variant } = platform;
  return [
    ...[`--override-os=${os}`, `--override-arch=${architecture}`],
    ...(variant === "" ? [] : [`--override-variant=${variant}`]),
  ];
}

const reportMilliseconds = 1000;

/** Creates a function that reports from time to time how much was downloaded: skopeo prints nothing before a blob is complete. */
function createByteReport({ events, clock }: EngineState, run: OperationRun): (bytes: number) => void {
  let [reported, reportedAt] = [0, clock.now()];
  return (bytes) => {
    if (bytes === reported || clock.now() - reportedAt < reportMilliseconds) return;
    [reported, reportedAt] = [bytes, clock.now()];
    const message = `Downloaded ${(bytes / 1_000_000).toFixed(1)} MB`;
    events.append(run.uuid, sandboxSpid, "progress", { message });
  };
}

/** Starts a guard against redirects to local addresses. Throws for a registry that has such an address itself. */
async function guardFetch(registry: string, { environment, clock }: EngineState) {
  try {
    await resolveRemote(new URL(`https://${registry}`).hostname);
  } catch (error) {
    if (error instanceof LocalAddressError) throw error;
    // skopeo reports a registry that can't be found.
  }
  return startFetchGuard(environment, clock);
}

/** Writes credentials for skopeo to a file that only root can read, since others could see its arguments. */
function writeAuthFile(
  directory: string,
  registry: string,
  { username, password }: RegistryCredentials,
): string {
  const path = join(directory, authFileName);
  const auth = Buffer.from(`${username}:${password.text()}`).toString("base64");
  writeFileSync(path, JSON.stringify({ auths: { [registry]: { auth } } }), { mode: 0o600 });
  return path;
}

const intervalMilliseconds = 100;

/**
 * Calls `check` repeatedly during a download, and aborts the download when it throws: a registry can send data without end, and
 * skopeo would write until the disk is full.
 */
async function downloadWatched(
  check: () => void,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
  download: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const ended = new AbortController();
  const tooLarge = new AbortController();
  const watching = watch(check, clock, ended.signal).catch((error: unknown) => {
    // The end of the download also ends the watch.
    if (!ended.signal.aborted) tooLarge.abort(error);
  });
  try {
    await download(AbortSignal.any([signal, tooLarge.signal]));
  } finally {
    ended.abort();
    await watching;
  }
}

async function watch(check: () => void, clock: Clock, signal: AbortSignal): Promise<never> {
  for (;;) {
    await clock.sleep(intervalMilliseconds, signal);
    check();
  }
}
