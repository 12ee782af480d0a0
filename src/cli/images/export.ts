import { command, type Invocation } from "../command-line/command.ts";
import { findPlace, printResult, unusablePlace, writeAllOrNone } from "../command-line/result.ts";
import { deliverImage } from "../export/deliver.ts";
import {
  type Destination,
  goesToStandardOutput,
  nameDestination,
  parseDestination,
  pushDestination,
  refuseTerminal,
  registryDestination,
} from "../export/destination.ts";
import type { ExportedImage } from "../export/image-source.ts";
import { exportOptions, readCompression } from "../export/output-places.ts";
import { readTimes } from "../export/times.ts";
import { isSameFile } from "../process/same-file.ts";
import {
  findDescription,
  imageDescription,
  imagesOfTag,
  resolveDescribedImage,
} from "../references/image-argument.ts";
import { type Connection, connect } from "../service/connection.ts";
import { readCredentials } from "../service/registry-options.ts";
import { readSigner } from "../signing/read-signer.ts";
import { signDefinition } from "../signing/sign-definition.ts";
import { parseSign } from "../signing/sign-option.ts";

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
  needs: "service",
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

export const push = command({
  name: "push",
  description: "Send an image to a registry. Only what the registry lacks is sent.",
  args: {
    image: { type: "positional", completes: "image", required: true, description: imageDescription },
    reference: {
      type: "positional",
      required: false,
      description: "Destination, HOST/NAME:TAG (default: the image's own tag)",
    },
    ...exportOptions,
    sign: signDefinition,
  },
  needs: "service",
  run: pushOne,
  foreign: async () => (await import("../foreign/image-options.ts")).foreignPushOptions,
  examples: [
    ["push registry.example/team/app:1.0", "the image with this tag, to the registry that the tag names"],
    ["push app:dev localhost:5000/app:dev", "under another name"],
  ],
  agentNote: [
    "This command is mutating: it sets a tag in the registry.",
    "Credentials are those of `docker login` or `skopeo login`.",
  ].join("\n"),
});

async function pushOne(invocation: Invocation): Promise<void> {
  const [reference = "", given] = invocation.values.positionals;
  const place = given === undefined ? undefined : registryDestination(given.replace(/^docker:\/\//, ""));
  await exportNamedImage(invocation, reference, (tag) => place ?? pushDestination(tag, reference));
}

/** Returns the images that the same tag has for other platforms. */
async function otherPlatforms(
  { uuid, tag }: { uuid: string; tag: string | undefined },
  connection: Pick<Connection, "service" | "store">,
): Promise<(ExportedImage & { from: typeof connection })[]> {
  const images = tag === undefined ? [] : [...(await imagesOfTag(tag, uuid, connection))];
  const others = images.filter((image) => image !== uuid);
  return Promise.all(
    others.map(async (other) => ({
      ...{ uuid: other, from: connection },
      ...(await findDescription(other, connection)),
    })),
  );
}

/** Delivers the image that `reference` names to the destination chosen by its tag, and prints what was written. */
async function exportNamedImage(
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
  const times = readTimes(values.flag("rewrite-timestamp"), { context: ".", options: {}, runtime });
  const sign = await readSigner(parseSign(values.text("sign")), true, runtime, invocation.log);
  await using connection = await connect(invocation);
  const image = await resolveDescribedImage(connection, reference);
  const destination = chooseDestination(image.tag);
  const path = "path" in destination ? destination.path : undefined;
  if (digestFile !== undefined && path !== undefined && isSameFile(path, digestFile.path))
    throw unusablePlace(digestFile, "the image is written there");
  const takesSeveral = ["oci", "oci-archive", "registry"].includes(destination.kind);
  const others = takesSeveral ? await otherPlatforms(image, connection) : [];
  const isInsecure = values.flag("insecure");
  const images = [{ ...image, from: connection }, ...others] as const;
  const delivery = { images, destination, compression, times, isInsecure, credentials, sign };
  const written = await deliverImage(delivery, invocation);
  const digest = written?.descriptor.digest ?? null;
  if (digestFile !== undefined) writeAllOrNone([{ ...digestFile, text: digest ?? "" }]);
  // Standard output is taken by the archive itself.
  if (goesToStandardOutput(destination)) return;
  const name = nameDestination(destination);
  printResult(invocation, {
    id: digest ?? name,
    json: {
      ...{ image: image.uuid, destination: name, digest },
      ...(written?.signature && { signature: written.signature }),
    },
    table: () => ({
      header: ["DESTINATION", "DIGEST"],
      rows: [[{ whole: name }, digest === null ? null : { whole: digest }]],
    }),
  });
}
