import type { Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { findPlace } from "../command-line/result-place.ts";
import { writeAllOrNone } from "../command-line/result-writing.ts";
import { deliverImage } from "../export/deliver.ts";
import { type Destination, goesToStandardOutput, nameDestination } from "../export/destination.ts";
import { readCompression } from "../export/options.ts";
import { readCredentials } from "../export/registry-options.ts";
import { readTimes } from "../export/times.ts";
import { connect } from "../service/connection.ts";
import { resolveDescribedImage } from "./image-argument.ts";

/** Delivers the image that `reference` names to the destination chosen by its tag, and prints what was written. */
export async function exportNamedImage(
  invocation: Invocation,
  reference: string,
  chooseDestination: (tag: string | undefined) => Destination,
): Promise<void> {
  const { values, runtime } = invocation;
  const given = values.text("digest-file");
  const digestFile =
    given === undefined ? undefined : findPlace("--digest-file", given, runtime.workingDirectory);
  const compression = readCompression(values);
  const credentials = readCredentials(values);
  const times = readTimes(values.flag("rewrite-timestamp"), invocation);
  await using connection = await connect(invocation);
  const image = await resolveDescribedImage(connection, reference);
  const destination = chooseDestination(image.tag);
  const isInsecure = values.flag("insecure");
  const delivery = { image, destination, compression, times, isInsecure, credentials };
  const written = await deliverImage(delivery, connection, invocation);
  const digest = written?.descriptor.digest ?? null;
  if (digestFile !== undefined) writeAllOrNone([{ ...digestFile, text: digest ?? "" }]);
  // Standard output is taken by the archive itself.
  if (goesToStandardOutput(destination)) return;
  const name = nameDestination(destination);
  printResult(invocation, {
    id: digest ?? name,
    json: { image: image.uuid, destination: name, digest },
    table: () => ({
      header: ["DESTINATION", "DIGEST"],
      rows: [[{ whole: name }, digest === null ? null : { whole: digest }]],
    }),
  });
}
