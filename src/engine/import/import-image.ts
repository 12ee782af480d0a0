import { existsSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { addImage, findImportedImage, setTag } from "../records/images.ts";
import { addLayer, findLayerByContent } from "../records/layers.ts";
import type { Outcome } from "../records/operations.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { syncToDisk } from "../system/disk.ts";
import { machineArchitecture } from "../system/machine.ts";
import { type ImageSource, isLoopback } from "./image-source.ts";
import { type LayoutImage, readLayoutImage } from "./oci-layout.ts";
import { runTool } from "./tool.ts";

export interface ImportSpec {
  source: ImageSource;
  credentials: { username: string; password: string } | undefined;
  tag: string | undefined;
  timeoutSeconds: number;
}

/**
 * Copies an image from where it is into an OCI layout, and unpacks that into one layer. The same image again is the same
 * UUID, the same content under another configuration the same layer.
 */
export async function performImport(
  state: EngineState,
  spec: ImportSpec,
  run: OperationRun,
): Promise<() => Outcome> {
  const { database, clock } = state;
  const ended = new AbortController();
  const signal = AbortSignal.any([run.signal, ended.signal]);
  let timedOut = false;
  clock.sleep(spec.timeoutSeconds * 1000, ended.signal).then(
    () => {
      timedOut = true;
      ended.abort();
    },
    () => {},
  );
  try {
    const image = await copyImage(state, spec, run, signal);
    const content = join(run.directory, "content");
    if (findLayerByContent(database, image.contentDigest) === undefined) {
      await unpackImage(state, run, content, signal);
      await syncToDisk(state, content, signal);
    }
    // Whoever learns that this has ended finds its room on the disk free again.
    await rm(join(run.directory, "image"), { recursive: true, force: true });
    return () => {
      const createdAt = clock.now();
      const uuid =
        findImportedImage(database, image.configDigest) ?? addImported(state, image, content, run, createdAt);
      if (spec.tag !== undefined) setTag(database, spec.tag, uuid);
      return { status: "SUCCESS", error: null, image: uuid, tag: spec.tag };
    };
  } catch (error) {
    if (timedOut) throw new BoughError(`the import did not end within ${spec.timeoutSeconds} seconds`);
    throw error;
  } finally {
    ended.abort();
  }
}

function addImported(
  state: EngineState,
  image: LayoutImage,
  content: string,
  run: OperationRun,
  createdAt: number,
): string {
  const { database, layout } = state;
  const existing = findLayerByContent(database, image.contentDigest);
  if (existing === undefined && !existsSync(content)) {
    throw new BoughError("the image's layer was removed while it was being imported: import it again");
  }
  const layer =
    existing ??
    addLayer(database, layout, {
      directory: content,
      parent: undefined,
      content: image.contentDigest,
      createdAt,
    });
  const { config, configDigest } = image;
  return addImage(database, { layer: layer.id, config, configDigest, operation: run.uuid, createdAt });
}

async function copyImage(
  state: EngineState,
  spec: ImportSpec,
  run: OperationRun,
  signal: AbortSignal,
): Promise<LayoutImage> {
  const { source } = spec;
  // A policy has checked signatures by then, and a layout has no place for them.
  const args = ["copy", "--remove-signatures"];
  if (source.saysCompression) args.push("--dest-oci-accept-uncompressed-layers");
  if (source.registry !== undefined) {
    args.push("--retry-times", "2");
    if (spec.credentials !== undefined) {
      args.push("--src-authfile", writeAuthFile(run.directory, source.registry, spec.credentials));
    }
    if (isLoopback(source.registry)) args.push("--src-tls-verify=false");
  }
  await runTool(
    state,
    run,
    "skopeo",
    [...policyArguments(state), ...args, source.name, "oci:image:import"],
    signal,
  );
  await rm(join(run.directory, authFileName), { force: true });
  const image = readLayoutImage(join(run.directory, "image"));
  checkPlatform(image, source);
  return image;
}

async function unpackImage(
  state: EngineState,
  run: OperationRun,
  content: string,
  signal: AbortSignal,
): Promise<void> {
  const args = ["raw", "unpack", "--image", "image:import", content];
  await runTool(state, run, "umoci", args, signal);
  await rm(join(run.directory, "image"), { recursive: true, force: true });
}

const authFileName = "auth.json";

/** Credentials are for skopeo's eyes only: neither in its arguments nor in a file that others can read. */
function writeAuthFile(
  directory: string,
  registry: string,
  credentials: { username: string; password: string },
): string {
  const path = join(directory, authFileName);
  const auth = Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64");
  writeFileSync(path, JSON.stringify({ auths: { [registry]: { auth } } }), { mode: 0o600 });
  return path;
}

/** skopeo refuses to work without a signature policy; what the machine or the user has set stays in force. */
function policyArguments(state: EngineState): string[] {
  const { HOME } = state.environment;
  const candidates = [
    "/etc/containers/policy.json",
    ...(HOME ? [join(HOME, ".config/containers/policy.json")] : []),
  ];
  return candidates.some((path) => existsSync(path)) ? [] : ["--insecure-policy"];
}

/** From an index skopeo has picked this machine's platform; an image of a single platform it takes as it is. */
function checkPlatform(image: LayoutImage, source: ImageSource): void {
  const machine = machineArchitecture();
  const { os = "linux", architecture = machine } = image.platform;
  if (os === "linux" && architecture === machine) return;
  throw new BoughError(
    `${source.name} is an image for ${os}/${architecture}, and this machine is linux/${machine}`,
  );
}
