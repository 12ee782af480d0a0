import type { Service } from "../../service/client.ts";
import type { ImageImport } from "../../service/service.ts";
import { startImportProgress } from "../../terminal/import-progress.ts";
import type { Invocation } from "../command-line/command.ts";
import { watchedTerminal } from "../process/watched-terminal.ts";

/** Imports an image and shows how far it is. */
export async function importOne(
  request: ImageImport,
  service: Service,
  { runtime, globals, log }: Invocation,
): Promise<string> {
  const progress = startImportProgress({
    url: request.url,
    clock: runtime.clock,
    log,
    terminal: watchedTerminal(runtime, globals),
  });
  try {
    const image = await service.importImage({ ...request, onProgress: progress.message });
    progress.end("imported");
    return image;
  } catch (error) {
    progress.end("failed");
    throw error;
  }
}
