import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isLoopback, registryHost } from "../../engine/import/image-source.ts";
import { findPolicy } from "../../engine/import/signature-policy.ts";
import { lastWords } from "../../engine/import/tool.ts";
import { endHelper, startHelper } from "../../engine/system/helper.ts";
import { findProgram, helperEnvironment } from "../../engine/system/programs.ts";
import { BoughError } from "../../errors.ts";
import type { Compression } from "../../image/compress.ts";
import { type ImageContent, type WrittenImage, writeOciLayout } from "../../image/image-writer.ts";
import { writeToDirectory } from "../../image/output-files.ts";
import type { FactStore } from "../../store/facts.ts";
import type { Runtime } from "../process/runtime.ts";
import { withKnownLayers } from "./image-source.ts";

export interface PushJob {
  content: ImageContent;
  /** What layers are called, as far as they were written before. */
  facts: Pick<FactStore, "get" | "set">;
  compression: Compression;
  /** A registry without TLS, or with a certificate that nobody vouches for. One on this machine needs none anyway. */
  isInsecure: boolean;
  onProgress: (message: string) => void;
  /** Told at the end how many layers the registry had. */
  onReused: (layers: number) => void;
  runtime: Runtime;
}

/**
 * Has skopeo send an image to a registry, with the credentials that it finds: of `docker login`, `skopeo login` and their
 * like. A layer that the registry has is not even compressed.
 */
export async function pushImage(reference: string, job: PushJob): Promise<WrittenImage> {
  const { environment } = job.runtime;
  findProgram("skopeo", environment);
  const directory = join(environment.TMPDIR || "/var/tmp", `bough-push-${crypto.randomUUID()}`);
  const attempt = async (usesKnown: boolean) => {
    const known = { compression: job.compression, uses: usesKnown };
    const content = withKnownLayers(job.content, job.facts, known);
    mkdirSync(directory, { mode: 0o700 });
    try {
      const image = await writeLayout(join(directory, "layout"), content, job.compression);
      await copyLayout(reference, directory, job);
      // skopeo asks the registry for a layer before it opens a file: these have none.
      job.onReused(content.layers.filter(({ known }) => known !== undefined).length);
      return image;
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  };
  try {
    return await attempt(true);
  } catch (error) {
    const lacksLayer = error instanceof BoughError && error.message.includes(`${directory}/layout/blobs/`);
    if (!lacksLayer) throw error;
    return await attempt(false);
  }
}

async function writeLayout(
  directory: string,
  content: ImageContent,
  compression: Compression,
): Promise<WrittenImage> {
  mkdirSync(directory);
  const files = writeToDirectory(directory);
  try {
    return await writeOciLayout(files, content, { compression, name: "push" });
  } finally {
    files.close();
  }
}

async function copyLayout(
  reference: string,
  directory: string,
  { isInsecure, onProgress, runtime }: PushJob,
): Promise<void> {
  const { environment, signal } = runtime;
  signal.throwIfAborted();
  const command = [
    findProgram("skopeo", environment),
    ...["--tmpdir", directory],
    ...(findPolicy(environment) === undefined ? ["--insecure-policy"] : []),
    ...["copy", "--preserve-digests", "--retry-times", "2"],
    ...(isInsecure || isLoopback(registryHost(reference)) ? ["--dest-tls-verify=false"] : []),
    `oci:${join(directory, "layout")}:push`,
    `docker://${reference}`,
  ];
  const skopeo = startHelper(command, { environment: helperEnvironment(environment) });
  const kill = () => endHelper(skopeo);
  signal.addEventListener("abort", kill, { once: true });
  try {
    const [, said, status] = await Promise.all([
      relay(skopeo.stdout, onProgress),
      new Response(skopeo.stderr).text(),
      skopeo.exited,
    ]);
    signal.throwIfAborted();
    if (status !== 0) throw new BoughError(`skopeo: ${lastWords(said) || `ended with ${status}`}`);
  } finally {
    signal.removeEventListener("abort", kill);
    endHelper(skopeo);
  }
}

async function relay(
  output: ReadableStream<Uint8Array>,
  onProgress: (message: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of output) {
    for (const line of decoder.decode(chunk, { stream: true }).split("\n")) {
      if (line.trim() !== "") onProgress(line.trim());
    }
  }
}
