import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { openDirectoryFiles } from "./directory-files.ts";
import { downloadWithin } from "./download-limit.ts";
import type { ImageParts } from "./image-parts.ts";
import { type ImageSource, isLoopback } from "./image-source.ts";
import { createBudget } from "./limits.ts";
import { readOciLayout } from "./read-oci.ts";
import { findPolicy } from "./signature-policy.ts";
import { runTool } from "./tool.ts";

export interface RegistryCredentials {
  username: string;
  password: string;
}

/** In the operation's directory. */
export const downloadDirectory = "download";
const authFileName = "auth.json";

/** Has skopeo copy an image from a registry into a layout in the operation's directory. Of an index it picks this machine's. */
export async function downloadImage(
  state: EngineState,
  source: Extract<ImageSource, { kind: "registry" }>,
  credentials: RegistryCredentials | undefined,
  run: OperationRun,
  signal: AbortSignal,
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
  const budget = createBudget(source.name, state.layout.directory, state.importLimits);
  const check = (bytes: number) => budget.check({ bytes });
  await downloadWithin(layout, check, { clock: state.clock, signal }, (signal) =>
    runTool(state, run, "skopeo", args, signal),
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
