import { command, type Invocation } from "../command-line/command.ts";
import { pushDestination, registryDestination } from "../export/destination.ts";
import { exportOptions } from "../export/options.ts";
import { exportNamedImage } from "./exported-image.ts";
import { imageDescription } from "./image-argument.ts";

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
  },
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
