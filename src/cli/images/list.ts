import { type ArgsDef, defineCommand } from "citty";
import { BoughError } from "../../errors.ts";
import { renderTable } from "../../terminal/table.ts";
import { type ArgumentDefinitions, positiveInteger } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { parseTime } from "../command-line/time.ts";
import { connect } from "../service/connection.ts";

const definitions: ArgumentDefinitions = {
  tag: {
    type: "string",
    completes: "tag",
    valueHint: "PREFIX",
    description: "Only images with a tag that begins with PREFIX",
  },
  tagged: { type: "boolean", description: "Only images with a tag" },
  since: {
    type: "string",
    valueHint: "WHEN",
    description: "Made since then: a date, or an age such as 24h or 7d",
  },
  until: { type: "string", valueHint: "WHEN", description: "Made until then" },
  limit: { type: "string", alias: "n", valueHint: "N", description: "The first N only (default: all)" },
};

export const list: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "list", description: "List the service's images, newest first." },
    args: definitions,
    run: ({ data }) => listImages(data),
  }),
  examples: [
    ["images", "all of them"],
    ["images --tag app: --since 7d", "the tags of `app` of the last week"],
    ["images --tagged -f json", "as JSON, for other programs"],
  ],
  agentNote: "An image with several tags has a line for each. -q prints UUIDs and nothing else.",
};

async function listImages(invocation: Invocation): Promise<void> {
  const { values, runtime, globals, log } = invocation;
  const tag = values.text("tag");
  const since = parseTime(values.text("since"), "--since", runtime.clock);
  const until = parseTime(values.text("until"), "--until", runtime.clock);
  const limit = positiveInteger(values.text("limit"), "--limit");
  const { service, close } = await connect(runtime, globals, log);
  try {
    const found = await service.listImages({
      tagged: values.flag("tagged"),
      ...(tag === undefined ? {} : { tag }),
      ...(since === undefined ? {} : { since }),
      ...(until === undefined ? {} : { until }),
    });
    if (service.capabilities.lacks("imageList"))
      throw new BoughError(`${service.address} has no list of its images`);
    const images = found.slice(0, limit);
    printResult(invocation, {
      id: [...new Set(images.map(({ uuid }) => uuid))],
      json: images.map(({ uuid, tag, created_at, operation_uuid = null }) => ({
        uuid,
        tag,
        created_at,
        operation_uuid,
      })),
      table: (style) =>
        renderTable(
          ["IMAGE", "TAG", "CREATED"],
          images.map(({ uuid, tag, created_at }) => [uuid, tag ?? "-", created_at]),
          style,
        ),
    });
  } finally {
    await close();
  }
}
