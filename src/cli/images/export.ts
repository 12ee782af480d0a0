import { type ArgsDef, defineCommand } from "citty";
import { renderTable } from "../../terminal/table.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { deliverImage } from "../export/deliver.ts";
import { type Destination, nameDestination, parseDestination } from "../export/destination.ts";
import { exportOptions, readCompression } from "../export/options.ts";
import { readTimes } from "../export/times.ts";
import { connect } from "../service/connection.ts";
import { resolveExportedImage } from "./image-argument.ts";

const definitions: ArgumentDefinitions = {
  image: { type: "positional", completes: "image", required: true, description: "A UUID, tag:NAME or a tag" },
  destination: {
    type: "positional",
    required: true,
    description:
      "oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME:TAG], dir:DIR, docker://REFERENCE, rootfs:DIR, tar:FILE or tar:-",
  },
  ...exportOptions,
};

export const exportCommand: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "export",
      description: "Write an image where other programs take it: with its layers, or its files alone.",
    },
    args: definitions,
    run: ({ data }) => exportOne(data),
  }),
  examples: [
    ["images export app:dev docker-archive:app.tar", "for docker load, under its own tag"],
    ["images export app:dev oci:./layout:dev", "into an OCI image layout, beside others that it has"],
    ["images export app:dev tar:- | tar -t", "its files alone"],
  ],
  agentNote: "The same image exported twice is the same bytes. With SOURCE_DATE_EPOCH no time is later.",
};

async function exportOne(invocation: Invocation): Promise<void> {
  const { values, runtime, globals, log } = invocation;
  const [reference = "", place = ""] = values.positionals;
  const destination = parseDestination(place, runtime.workingDirectory);
  const compression = readCompression(values);
  const times = readTimes(values.flag("rewrite-timestamp"), runtime);
  const connection = await connect(runtime, globals, log);
  try {
    const image = await resolveExportedImage(connection.service, reference);
    const named = nameAfter(destination, image.tag);
    const isInsecure = values.flag("insecure");
    const delivery = { image, destination: named, compression, times, isInsecure };
    const written = await deliverImage(delivery, connection, invocation);
    // The archive itself is what goes to standard output.
    if (named.kind === "tar" && named.path === undefined) return;
    const name = nameDestination(named);
    const digest = written?.digest ?? null;
    printResult(invocation, {
      id: digest ?? name,
      json: { image: image.uuid, destination: name, digest },
      table: (style) => renderTable(["DESTINATION", "DIGEST"], [[name, digest ?? "-"]], style),
    });
  } finally {
    await connection.close();
  }
}

/** What `docker load` is to call it, where nobody has said. */
function nameAfter(destination: Destination, tag: string | undefined): Destination {
  if (destination.kind !== "docker-archive" || destination.name !== undefined) return destination;
  return { ...destination, name: tag };
}
