import { messageOf } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { parsePlatform } from "../../image/platform.ts";
import type { Secret } from "../../secret.ts";
import { requireTag } from "../http/fields.ts";
import { RequestError, withRequestErrors } from "../http/responses.ts";
import { type ImageSource, parseImageSource } from "../import/image-source.ts";
import { startOperation } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { findProgram, requireRuntime } from "../system/programs.ts";

interface ImportRequest {
  url: string;
  tag: string | undefined;
  platform: string | undefined;
  credentials: { username: string; password: Secret } | undefined;
  timeoutSeconds: number;
}

/** Starts the import of an image. Returns the operation's UUID. */
export function startImport(state: EngineState, request: ImportRequest): string {
  const { url, tag, credentials, timeoutSeconds } = request;
  if (tag !== undefined) requireTag(tag);
  const source = withRequestErrors(() => parseImageSource(url, state));
  if (source.kind !== "scratch") requirePrograms(source.kind, state.environment);
  const spec = { source, platform: readPlatform(request), credentials, tag, timeoutSeconds };
  return startOperation(state, {
    kind: "image_import",
    metadata: { registry: { url }, tag: tag ?? null, timeout: timeoutSeconds },
    // Loaded with the first import: most builds find their base image in the engine.
    perform: async (run) => (await import("./import-image.ts")).performImport(state, spec, run),
  });
}

function requirePrograms(kind: ImageSource["kind"], environment: Environment): void {
  if (kind === "registry") findProgram("skopeo", environment);
  // Without a runtime an image is of little use: the error comes before the user waits for the import.
  requireRuntime(environment);
}

function readPlatform({ platform }: ImportRequest) {
  try {
    return platform === undefined ? undefined : parsePlatform(platform);
  } catch (error) {
    throw new RequestError(400, `platform ${messageOf(error)}`);
  }
}
