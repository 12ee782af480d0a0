import { requireImageList } from "../../builder/scopes/index-images.ts";
import { type ReadScope, readScope } from "../../builder/scopes/read-scope.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { Cell } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";
import { listScopeNames } from "./scope-argument.ts";

const maxConcurrent = 4;

export const list = command({
  name: "list",
  description: "List the scopes in which builds share their layers.",
  run: listScopes,
  examples: [
    ["cache list", "all of them"],
    ["cache list -f json", "as JSON, for other programs"],
  ],
  agentNote: "It reads the index of each scope: one small download each.",
});

async function listScopes(invocation: Invocation): Promise<void> {
  const { runtime, log } = invocation;
  await using connection = await connect(invocation);
  const { service } = connection;
  const names = await listScopeNames(service);
  requireImageList(service);
  const scopes = new Map<string, ReadScope>();
  await forEachConcurrently(names, maxConcurrent, runtime.signal, async (name) => {
    scopes.set(name, await readScope(name, { service, known: new Map(), warn: log.warn }));
  });
  const rows = names.flatMap((name) => {
    const scope = scopes.get(name);
    return scope === undefined ? [] : [describe(name, scope)];
  });
  printResult(invocation, {
    id: names,
    json: rows,
    table: () => ({
      header: ["SCOPE", "LAYERS", "SIGNED", "WRITTEN", "BY"],
      rows: rows.map(({ scope, layers, signed, writtenAt, by }): Cell[] => [
        scope,
        String(layers),
        signed ? "yes" : "no",
        writtenAt === null ? null : { time: writtenAt },
        by ?? null,
      ]),
    }),
  });
}

function describe(name: string, { index, isSigned, images, written }: ReadScope) {
  return {
    scope: name,
    layers: index.layers.size,
    signed: isSigned,
    writtenAt: written === undefined ? null : new Date(written.at).toISOString(),
    by: written?.by ?? null,
    image: images[0]?.image ?? null,
  };
}
