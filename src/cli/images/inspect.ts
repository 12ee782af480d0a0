import { BoughError, usageError } from "../../errors.ts";
import { formatMode, octalMode } from "../../image/file-mode.ts";
import type { LayerChange } from "../../service/wire/image.ts";
import { type Cell, sizeCell } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import {
  imageDescription,
  recordsOf,
  requireSessionImage,
  resolveDescribedImage,
} from "../references/image-argument.ts";
import { sessionKey } from "../references/session-argument.ts";
import { type Connection, connectQuietly } from "../service/connection.ts";
import { findLayers, type InspectedLayer, renderInspection, sizeOf } from "./render-inspection.ts";

export const inspect = command({
  name: "inspect",
  description:
    "Show an image's configuration and its layers: what made each, how large it is, and what it adds, changes and deletes.",
  args: {
    image: {
      type: "positional",
      completes: "image",
      required: false,
      description: `${imageDescription} (default: the session's image)`,
    },
    layer: {
      type: "string",
      valueHint: "N",
      description: "List what layer N adds, changes and deletes, the largest first",
    },
    limit: { type: "string", alias: "n", valueHint: "N", description: "With --layer: only the first N" },
  },
  needs: "service",
  run: inspectImage,
  foreign: async () => (await import("../foreign/image-options.ts")).foreignInspectOptions,
  examples: [
    ["inspect app:dev", "why it is so large"],
    ["inspect app:dev --layer 3 -n 20", "the 20 largest files of its third layer"],
    ["inspect app:dev -f json", "everything as JSON, with its history"],
  ],
  agentNote: "No command is started. Only bough's own engine reports the sizes and files of layers.",
});

async function inspectImage(invocation: Invocation): Promise<void> {
  const { values, log } = invocation;
  const number = positiveInteger(
    values.text("layer"),
    "--layer",
    "`bough inspect IMAGE` numbers the layers.",
  );
  const limit = positiveInteger(values.text("limit"), "--limit");
  if (limit !== undefined && number === undefined)
    throw usageError("--limit needs --layer", "Name the layer with --layer N.");
  await using connection = await connectQuietly(invocation);
  const reference = values.positionals[0] ?? requireSessionImage(connection.store, sessionKey(invocation));
  const { uuid: image, config, origin } = await resolveDescribedImage(connection, reference);
  const { layers, history } = await findLayers(image, origin.history ?? [], connection);
  if (number !== undefined) {
    await listFiles({ image, layers, number, limit }, invocation, connection);
    return;
  }
  const records = await recordsOf(image, connection);
  const tags = records.flatMap(({ tag }) => tag ?? []);
  const createdAt = records.find(({ created_at }) => created_at !== "")?.created_at ?? null;
  const said = records.find((record) => record.platform !== undefined)?.platform;
  const platform = said ?? (await connection.service.capabilities.platform()) ?? null;
  const isMeasured = layers.some(({ changes }) => changes !== null);
  printResult(invocation, {
    id: image,
    json: {
      ...{ image, tags, createdAt, platform, author: origin.author ?? null, config },
      size: isMeasured ? sum(layers.map(sizeOf)) : null,
      hiddenSize: isMeasured ? sum(layers.map(({ changes }) => changes?.hidden.bytes ?? 0)) : null,
      layers: layers.map(toJson),
      history,
    },
    table: (style) => renderInspection({ image, tags, createdAt, platform, config, origin, layers }, style),
  });
  if (!isMeasured && layers.length === 0 && history.length === 0)
    log.warn(
      `${connection.service.address} does not report the image's layers, and no session on this machine made it`,
    );
  else if (!isMeasured)
    log.info(
      `${connection.service.address} does not report sizes and files of layers: these are the steps that were made on this machine`,
    );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function toJson(layer: InspectedLayer, index: number) {
  const { id = null, instruction, others, createdAt, isBase, changes } = layer;
  const { added = null, changed = null, deleted = null, hidden = null } = changes ?? {};
  const size = changes === null ? null : sizeOf(layer);
  return {
    layer: index + 1,
    id,
    instruction,
    others,
    createdAt,
    isBase,
    size,
    added,
    changed,
    deleted,
    hidden,
  };
}

interface Listing {
  image: string;
  layers: readonly InspectedLayer[];
  number: number;
  limit: number | undefined;
}

async function listFiles(
  { image, layers, number, limit }: Listing,
  invocation: Invocation,
  { service }: Pick<Connection, "service">,
): Promise<void> {
  const layer = layers[number - 1];
  if (!(await service.capabilities.extensions()).has("changes")) {
    throw new BoughError(`${service.address} does not report the files of a layer`, {
      hint: "`bough ls IMAGE:/` lists the files of an image.",
    });
  }
  if (layer?.id === undefined) {
    throw usageError(
      `image ${image} has no layer ${number}`,
      layers.length === 0 ? "It has no files." : `Its layers are 1 to ${layers.length}.`,
    );
  }
  const { changes, total } = await service.listChanges(image, layer.id, limit);
  printResult(invocation, {
    id: changes.map(({ path }) => path),
    json: changes.map(({ kind: change, path, type, mode, size, hidden }) => ({
      ...{ change, path, type, mode: octalMode(mode), size, hidden },
    })),
    table: () => ({ header: ["CHANGE", "MODE", "BEFORE", "SIZE", "PATH"], rows: changes.map(rowOf) }),
  });
  if (limit === undefined && total > changes.length)
    invocation.log.warn(`these are the ${changes.length} largest of ${total}`);
}

function rowOf({ kind, path, type, mode, size, hidden }: LayerChange): Cell[] {
  return [
    kind,
    formatMode(mode, type),
    hidden.files === 0 ? null : sizeCell(hidden.bytes),
    kind === "deleted" || type === "directory" ? null : sizeCell(size),
    type === "directory" ? `${path}/` : path,
  ];
}
