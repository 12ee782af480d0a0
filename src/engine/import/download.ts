import { existsSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { openDirectoryFiles } from "./directory-files.ts";
import type { ImageParts } from "./image-parts.ts";
import { type ImageSource, isLoopback } from "./image-source.ts";
import { readOciLayout } from "./read-oci.ts";
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
    ...policyArguments(state),
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
  await runTool(state, run, "skopeo", args, signal);
  await rm(join(run.directory, authFileName), { force: true });
  return readOciLayout(
    openDirectoryFiles(join(run.directory, downloadDirectory), true),
    "import",
    source.name,
  );
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

/** skopeo refuses to work without a signature policy; what the machine or the user has set stays in force. */
function policyArguments({ environment: { HOME } }: EngineState): string[] {
  const candidates = [
    "/etc/containers/policy.json",
    ...(HOME ? [join(HOME, ".config/containers/policy.json")] : []),
  ];
  return candidates.some((path) => existsSync(path)) ? [] : ["--insecure-policy"];
}
