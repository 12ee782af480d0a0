import { BoughError, usageError } from "../../errors.ts";
import { formatCount } from "../../terminal/quantity.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { imageDescription } from "../references/image-argument.ts";
import { readImageList } from "../run/image-list.ts";
import { connectQuietly } from "../service/connection.ts";
import { compareImages } from "./compare.ts";
import { adviceFor, renderComparison } from "./report.ts";

/** The number of findings that a table has without `--limit`. */
const defaultFindings = 20;

export const layers = command({
  name: "layers",
  description:
    "Find files that a set of images has in several layers (the same path, size and content), what that costs, and which instruction to move so that the images share them.",
  args: {
    image: {
      type: "positional",
      completes: "image",
      required: false,
      multiple: true,
      description: imageDescription,
    },
    list: {
      type: "string",
      valueHint: "LIST",
      description: "Images of a file (- is stdin): a name a line, or the results of a bake",
    },
    limit: {
      type: "string",
      alias: "n",
      valueHint: "N",
      description: `Only the first N, the largest first (default: ${defaultFindings}; all for -f json)`,
    },
  },
  needs: "service",
  run: compareLayers,
  examples: [
    ["layers app:1 app:2 worker:1", "what these three could share"],
    ["layers --list built.jsonl -f json", "of all images of `bough bake --results built.jsonl`"],
  ],
  agentNote:
    "No command is started. Each layer is read once, so large sets take time. The exit code is 0, whatever is found.",
});

async function compareLayers(invocation: Invocation): Promise<void> {
  const { values, log, runtime } = invocation;
  const limit = positiveInteger(values.text("limit"), "--limit");
  const list = values.text("list");
  const listed = list === undefined ? [] : await readImageList(list, runtime, "list");
  const named = [
    ...values.positionals.map((image) => ({ name: image, image })),
    ...listed.flatMap(({ image, target }) => (image === undefined ? [] : { name: target ?? image, image })),
  ];
  if (named.length === 0)
    throw usageError(
      list === undefined ? "no image is given" : "the list has no image",
      "Name the images, as in bough layers app:1 app:2, or a file with --list FILE.",
    );
  const without = listed.filter(({ image }) => image === undefined).length;
  if (without > 0) log.warn(`${formatCount(without, "target")} of the list without an image: left out`);
  await using connection = await connectQuietly(invocation);
  const { service } = connection;
  if (!(await service.capabilities.extensions()).has("layers"))
    throw new BoughError(`${service.address} does not report the layers of images`, {
      hint: "The embedded engine and `bough serve` do.",
    });
  const found = await compareImages(named, connection, runtime.signal);
  const { findings, unread } = found;
  const jsonFindings = findings
    .slice(0, limit)
    .map((each) => ({ ...each, advice: adviceFor(each).join(" ") }));
  printResult(invocation, {
    id: jsonFindings.map(({ advice }) => advice),
    json: { ...found, findings: jsonFindings },
    table: (style) => renderComparison(found, limit ?? defaultFindings, style),
  });
  if (unread > 0)
    log.warn(
      `${formatCount(unread, "layer")} not compared: still in a registry, and fetched when a command needs their files`,
    );
}
