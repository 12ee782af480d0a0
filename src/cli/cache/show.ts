import { readScope } from "../../builder/scopes/read-scope.ts";
import type { Entry } from "../../builder/scopes/scope-index.ts";
import { type Cell, durationCell, sizeCell, type Table } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";
import { noSuchScope, readScopeArgument, scopeArgument } from "./scope-argument.ts";

export const show = command({
  name: "show",
  description: "Show the layers of a scope, most recently used first.",
  args: { scope: scopeArgument },
  run: showScope,
  examples: [
    ["cache show main", "its layers: the instruction, the image, when it was made and last used"],
    ["cache show main -f json", "as JSON, with full hashes"],
  ],
  agentNote: "The service may no longer have an image that is listed: the next build checks that.",
});

async function showScope(invocation: Invocation): Promise<void> {
  const { values, log } = invocation;
  const name = readScopeArgument(values);
  await using connection = await connect(invocation);
  const { service } = connection;
  const { index, images } = await readScope(name, { service, known: new Map(), warn: log.warn });
  if (images.length === 0) throw await noSuchScope(name, service);
  const layers = Array.from(index.layers, ([hash, layer]) => ({ hash, ...layer })).sort(
    (one, other) => other.usedAt - one.usedAt || other.madeAt - one.madeAt,
  );
  printResult(invocation, {
    id: layers.map(({ image }) => image),
    json: layers.map(({ hash, image, title, operation, madeAt, usedAt, seconds, bytes, by }) => ({
      ...{ layer: `layer:${hash}`, image, title, operation },
      ...{ madeAt: new Date(madeAt).toISOString(), usedAt: new Date(usedAt).toISOString() },
      ...{ seconds, bytes, by },
    })),
    table: () => tableOf(layers, invocation.globals),
  });
}

type ShownLayer = Entry<"layers">;

/** For people, a column that is empty for all layers is left out: a service may report no sizes or durations. */
function tableOf(layers: readonly ShownLayer[], { format }: Invocation["globals"]): Table {
  const columns: [title: string, cell: (layer: ShownLayer) => Cell][] = [
    ["IMAGE", ({ image }) => ({ id: image })],
    ["MADE", ({ madeAt }) => ({ time: madeAt })],
    ["USED", ({ usedAt }) => ({ time: usedAt })],
    ["TOOK", ({ seconds }) => durationCell(seconds)],
    ["SIZE", ({ bytes }) => sizeCell(bytes)],
    ["STEP", ({ title }) => title],
  ];
  const shown = columns.filter(
    ([, cell]) => format !== "table" || layers.some((layer) => cell(layer) !== null),
  );
  return {
    header: (shown.length === 0 ? columns : shown).map(([title]) => title),
    rows: layers.map((layer) => shown.map(([, cell]) => cell(layer))),
  };
}
