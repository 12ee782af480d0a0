import type { ExportedAs } from "../../builder/result.ts";
import type { ImageToWrite } from "../../image/image-writer.ts";
import type { Log } from "../../terminal/log.ts";
import type { Invocation } from "../command-line/command.ts";
import type { BuildOutput } from "../export/build-outputs.ts";
import { deliverImage } from "../export/deliver.ts";
import { nameDestination } from "../export/destination.ts";
import { makeParents } from "../export/output-places.ts";
import { copyDirectory } from "../images/cp.ts";
import { findDescription } from "../references/image-argument.ts";
import type { Connection } from "../service/connection.ts";

/** Exports the built image to all destinations, and returns what was written. Messages go to `log`. */
export async function writeBuildOutputs(
  outputs: readonly BuildOutput[],
  image: string,
  connection: Pick<Connection, "service" | "store">,
  invocation: Invocation,
  log: Log,
  additions: Pick<ImageToWrite, "attest" | "annotations">,
): Promise<ExportedAs[]> {
  const exported: ExportedAs[] = [];
  const described = await findDescription(image, connection);
  for (const { destinations, ignored, tags: _, ...options } of outputs) {
    for (const sentence of ignored) log.warn(sentence);
    for (const destination of destinations) {
      makeParents(destination);
      if (destination.kind === "local") {
        const from = { image, path: "/", meansContents: true };
        const to = { local: destination.path, endsWithSlash: true };
        await copyDirectory(from, to, connection.service, { ...invocation, log });
        log.info(`exported to ${destination.path}`);
        continue;
      }
      const delivery = { ...options, image: { uuid: image, ...described }, destination, ...additions };
      // The build may be drawn below the log, so this prints only lines.
      const globals = { ...invocation.globals, quiet: true };
      const written = await deliverImage(delivery, connection, { runtime: invocation.runtime, globals, log });
      const place = nameDestination(destination);
      if (written !== undefined) {
        const { descriptor, configDigest } = written;
        exported.push({ destination: place, descriptor, configDigest });
      }
      const digest = written === undefined ? "" : `, ${written.descriptor.digest}`;
      log.info(`exported to ${place}${digest}`);
    }
  }
  return exported;
}
