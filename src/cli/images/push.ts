import { type ArgsDef, defineCommand } from "citty";
import { renderTable } from "../../terminal/table.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { deliverImage } from "../export/deliver.ts";
import { nameDestination, pushDestination, registryDestination } from "../export/destination.ts";
import { exportOptions, readCompression } from "../export/options.ts";
import { readTimes } from "../export/times.ts";
import { connect } from "../service/connection.ts";
import { resolveExportedImage } from "./image-argument.ts";

const definitions: ArgumentDefinitions = {
  image: { type: "positional", completes: "image", required: true, description: "A UUID, tag:NAME or a tag" },
  reference: {
    type: "positional",
    required: false,
    description: "Where to, HOST/NAME:TAG (default: the image's own tag)",
  },
  ...exportOptions,
};

export const push: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "push",
      description: "Send an image to a registry. Only what the registry lacks is sent.",
    },
    args: definitions,
    run: ({ data }) => pushOne(data),
  }),
  examples: [
    ["push registry.example/team/app:1.0", "the image of this tag, to the place that the tag names"],
    ["push app:dev localhost:5000/app:dev", "somewhere else"],
  ],
  agentNote: [
    "This command is mutating: it sets a tag in the registry.",
    "Credentials are those of `docker login` or `skopeo login`.",
  ].join("\n"),
};

async function pushOne(invocation: Invocation): Promise<void> {
  const { values, runtime, globals, log } = invocation;
  const [reference = "", given] = values.positionals;
  const place = given === undefined ? undefined : registryDestination(given.replace(/^docker:\/\//, ""));
  const compression = readCompression(values);
  const times = readTimes(values.flag("rewrite-timestamp"), runtime);
  const connection = await connect(runtime, globals, log);
  try {
    const image = await resolveExportedImage(connection.service, reference);
    const destination = place ?? pushDestination(image.tag, reference);
    const isInsecure = values.flag("insecure");
    const delivery = { image, destination, compression, times, isInsecure };
    const written = await deliverImage(delivery, connection, invocation);
    const name = nameDestination(destination);
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
