import { type ArgsDef, defineCommand } from "citty";
import { BoughError } from "../errors.ts";
import { renderTable } from "../output/table.ts";
import { parseReference } from "../service/reference.ts";
import { parseTag } from "../service/tag.ts";
import { type ArgumentDefinitions, positiveInteger } from "./arguments.ts";
import type { Command, Invocation } from "./command.ts";
import { connect } from "./connection.ts";
import { printResult } from "./result.ts";

export const list: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "list", description: "List the service's images, newest first." },
    args: {},
    run: ({ data }) => listImages(data),
  }),
  examples: [
    ["images", "all of them"],
    ["images -f json", "as JSON, for other programs"],
  ],
};

const importArguments: ArgumentDefinitions = {
  reference: {
    type: "positional",
    required: true,
    description: "What to import: alpine:3.20, docker://host/app:1, oci:/path:tag, ...",
  },
  tag: {
    type: "string",
    valueHint: "NAME[:TAG]",
    description: "Tag of the new image (default: the reference's own)",
  },
  timeout: {
    type: "string",
    alias: "t",
    valueHint: "SEC",
    description: "Seconds that the import may take (default: 1800)",
  },
};

export const importCommand: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "import",
      description: "Import an image, so that FROM finds it. Local transports work on the embedded engine.",
    },
    args: importArguments,
    run: ({ data }) => importImage(data),
  }),
  examples: [
    ["images import alpine:3.20", "from the public registry"],
    [
      "images import oci:./layout:latest --tag base:1",
      "from a local OCI image layout, on the embedded engine",
    ],
  ],
  agentNote: "This command is mutating: it stores an image and moves its tag.",
};

async function listImages(invocation: Invocation): Promise<void> {
  const { runtime, globals, log } = invocation;
  const { service, close } = await connect(runtime, globals, log);
  try {
    const images = await service.listImages();
    if (images === "unknowable") throw new BoughError(`${service.address} has no list of its images`);
    printResult(invocation, {
      id: images.map(({ uuid }) => uuid).join("\n"),
      json: images,
      table: () =>
        renderTable(
          ["IMAGE", "TAG", "CREATED"],
          images.map(({ uuid, tag, created_at }) => [uuid, tag ?? "-", created_at]),
        ),
    });
  } finally {
    await close();
  }
}

async function importImage(invocation: Invocation): Promise<void> {
  const { values, runtime, globals, log } = invocation;
  const [given = ""] = values.positionals;
  const reference = parseReference(given);
  if (reference.kind !== "registry") {
    throw new BoughError(`${given} names an image that the service has already: there is nothing to import`, {
      kind: "usage",
    });
  }
  const tagOption = values.text("tag");
  const tag = tagOption === undefined ? reference.tag : parseTag(tagOption);
  const timeoutSeconds = positiveInteger(values.text("timeout"), "--timeout") ?? 1800;
  const { service, close } = await connect(runtime, globals, log);
  try {
    log.info(`importing ${reference.url}`);
    const image = await service.importImage({ url: reference.url, tag, timeoutSeconds });
    printResult(invocation, {
      id: image,
      json: { image, tag: tag ?? null },
      table: () => renderTable(["IMAGE", "TAG"], [[image, tag ?? "-"]]),
    });
  } finally {
    await close();
  }
}
