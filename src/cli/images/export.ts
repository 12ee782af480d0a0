import { command, type Invocation } from "../command-line/command.ts";
import { type Destination, parseDestination, refuseTerminal } from "../export/destination.ts";
import { exportOptions } from "../export/options.ts";
import { exportNamedImage } from "./exported-image.ts";
import { imageDescription } from "./image-argument.ts";

export const exportCommand = command({
  name: "export",
  description: "Export an image for other programs: with its layers, or only its files.",
  args: {
    image: { type: "positional", completes: "image", required: true, description: imageDescription },
    destination: {
      type: "positional",
      completes: "named-file",
      required: true,
      missingHint:
        "As docker save: bough images export IMAGE docker-archive:- > FILE; as docker export: bough images export IMAGE tar:- > FILE",
      description:
        "oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME:TAG], dir:DIR, docker://REFERENCE, rootfs:DIR or tar:FILE; - for FILE is standard output",
    },
    ...exportOptions,
  },
  run: exportOne,
  foreign: async () => (await import("../foreign/image-options.ts")).foreignExportOptions,
  examples: [
    ["images export app:dev docker-archive:app.tar", "for docker load, under its own tag"],
    ["images export app:dev oci:./layout:dev", "into an OCI image layout, next to its other images"],
    ["images export app:dev docker-archive:- | docker load", "without an intermediate file"],
    ["images export app:dev tar:- | tar -t", "only its files"],
  ],
  agentNote: "Exporting the same image twice gives the same bytes. SOURCE_DATE_EPOCH limits the times in it.",
});

async function exportOne(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  const [reference = "", place = ""] = values.positionals;
  const destination = parseDestination(place, runtime.workingDirectory);
  refuseTerminal(destination, runtime.stdout);
  await exportNamedImage(invocation, reference, (tag) => nameAfter(destination, tag));
}

/** Adds the name that `docker load` gives the image, unless the user chose one. */
function nameAfter(destination: Destination, tag: string | undefined): Destination {
  if (destination.kind !== "docker-archive" || destination.name !== undefined) return destination;
  return { ...destination, name: tag };
}
