import type { FoundIndex } from "../../builder/scopes/cache-place.ts";
import { listIndexImages, requireImageList } from "../../builder/scopes/index-images.ts";
import type { ScopeEntry, ScopeIndex } from "../../builder/scopes/scope-index.ts";
import { parseScopeName } from "../../builder/scopes/scope-name.ts";
import { BoughError, usageError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import { nearest } from "../../suggest.ts";
import { type Cell, durationCell, sizeCell, type Table, withoutEmptyColumns } from "../../terminal/table.ts";
import { visible } from "../../visible.ts";
import type { Values } from "../command-line/arguments.ts";
import { command, type Invocation } from "../command-line/command.ts";
import type { ArgumentDefinition } from "../command-line/definitions.ts";
import { printResult } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";
import { registryOptions } from "../service/registry-definitions.ts";
import { listScopeNames, readScope } from "./read-scope.ts";

const scopeArgument: ArgumentDefinition = {
  type: "positional",
  completes: "scope",
  required: true,
  description:
    "A scope, as `bough cache list` shows it, a cache in a registry (HOST/NAME:TAG), or one in a directory (./DIR)",
};

/** Throws a BoughError of kind `usage` if the name is invalid. */
function readScopeArgument({ positionals: [name = ""] }: Pick<Values, "positionals">): string {
  return parseScopeName(name, "bough cache");
}

async function noSuchScope(name: string, service: Pick<Service, "listImages">): Promise<BoughError> {
  const guess = nearest(name, await listScopeNames(service));
  return new BoughError(`there is no scope ${name}`, {
    hint:
      guess === undefined
        ? "`bough cache list` lists the scopes; `bough build --cache-to NAME` creates one."
        : `Did you mean ${guess}?`,
  });
}

const maxConcurrent = 4;

export const list = command({
  name: "list",
  description: "List the scopes in which builds share their layers, or describe one cache elsewhere.",
  args: {
    cache: {
      ...scopeArgument,
      required: false,
      description: "A cache in a registry (HOST/NAME:TAG) or a directory (./DIR)",
    },
    ...registryOptions,
  },
  needs: "service",
  run: listScopes,
  examples: [
    ["cache list", "all of them"],
    ["cache list registry.example/app/cache:main", "a cache in a registry"],
    ["cache list -f json", "as JSON, for other programs"],
  ],
  agentNote: "It reads the index of each scope: one small download each.",
});

async function listScopes(invocation: Invocation): Promise<void> {
  const { runtime, values } = invocation;
  const [given] = values.positionals;
  if (given !== undefined) return printList(invocation, [await describeStore(given, invocation)]);
  await using connection = await connect(invocation);
  const { service } = connection;
  const names = await listScopeNames(service);
  requireImageList(service);
  const scopes = new Map<string, FoundIndex>();
  await forEachConcurrently(names, maxConcurrent, runtime.signal, async (name) => {
    scopes.set(name, (await readScope(name, service, invocation)).found);
  });
  const rows = names.flatMap((name) => {
    const scope = scopes.get(name);
    return scope === undefined ? [] : [describe(name, scope)];
  });
  printList(invocation, rows);
}

function printList(invocation: Invocation, rows: readonly ReturnType<typeof describe>[]): void {
  printResult(invocation, {
    id: rows.map(({ scope }) => scope),
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

async function describeStore(text: string, invocation: Invocation): Promise<ReturnType<typeof describe>> {
  const { readStore, parseStore } = await import("./cache-stores.ts");
  const store = parseStore(text, invocation.runtime);
  if (store === undefined)
    throw usageError(
      `${JSON.stringify(text)} is neither HOST/NAME:TAG nor ./DIR`,
      "Without it, all scopes are listed.",
    );
  return describe(store.label, { ...(await readStore(store, invocation)), parts: [] });
}

function describe(
  name: string,
  { index, isSigned, parts, written }: Pick<FoundIndex, "index" | "isSigned" | "parts" | "written">,
) {
  return {
    scope: name,
    layers: index.layers.size,
    signed: isSigned,
    writtenAt: written === undefined ? null : new Date(written.at).toISOString(),
    by: written?.by ?? null,
    image: parts[0]?.id ?? null,
  };
}

export const show = command({
  name: "show",
  description: "Show the layers of a scope, most recently used first, and the cache mounts that it carries.",
  args: { scope: scopeArgument, ...registryOptions },
  needs: "service",
  run: showScope,
  examples: [
    ["cache show main", "its layers: the instruction, the image, when it was made and last used"],
    ["cache show registry.example/app/cache:main", "those of a cache in a registry"],
    ["cache show main -f json", "as JSON, with full hashes"],
  ],
  agentNote: "The service may no longer have an image that is listed: the next build checks that.",
});

async function showScope(invocation: Invocation): Promise<void> {
  const index = await readShown(invocation);
  const layers = Array.from(index.layers, ([hash, layer]) => ({ hash, ...layer })).sort(
    (one, other) => other.usedAt - one.usedAt || other.madeAt - one.madeAt,
  );
  const mounts = [...index.mounts.values()].sort((one, other) => other.usedAt - one.usedAt);
  printResult(invocation, {
    id: layers.map(({ image }) => image),
    json: [
      ...layers.map(({ hash, image, title, operation, madeAt, usedAt, seconds, bytes, by }) => ({
        ...{ layer: `layer:${hash}`, image, title, operation },
        ...{ madeAt: new Date(madeAt).toISOString(), usedAt: new Date(usedAt).toISOString() },
        ...{ seconds, bytes, by },
      })),
      ...mounts.map(({ id, digest, size, usedAt }) => ({
        ...{ mount: id, digest, bytes: size, usedAt: new Date(usedAt).toISOString() },
      })),
    ],
    table: () => tableOf([...layers, ...mounts.map(shownMount)], invocation.globals),
  });
}

type Shown = Pick<ScopeEntry<"layers">, "usedAt" | "seconds" | "bytes" | "title"> & {
  image: string | null;
  madeAt: number | null;
};

/** Returns the row of a cache mount's contents. */
function shownMount({ id, usedAt, size }: ScopeEntry<"mounts">): Shown {
  const title = `--mount=type=cache,id=${visible(id)}`;
  return { image: null, madeAt: null, usedAt, seconds: null, bytes: size, title };
}

async function readShown(invocation: Invocation): Promise<ScopeIndex> {
  const { values, runtime } = invocation;
  const { readStore, parseStore } = await import("./cache-stores.ts");
  const store = parseStore(values.positionals[0] ?? "", runtime);
  if (store !== undefined) return (await readStore(store, invocation)).index;
  const name = readScopeArgument(values);
  await using connection = await connect(invocation);
  const { service } = connection;
  const { found } = await readScope(name, service, invocation);
  if (found.parts.length === 0) throw await noSuchScope(name, service);
  return found.index;
}

/** Leaves out columns that are empty for all rows, for people: a service may report no sizes or durations. */
function tableOf(layers: readonly Shown[], { format }: Invocation["globals"]): Table {
  const table = {
    header: ["IMAGE", "MADE", "USED", "TOOK", "SIZE", "STEP"],
    rows: layers.map(({ image, madeAt, usedAt, seconds, bytes, title }): Cell[] => [
      image === null ? null : { id: image },
      madeAt === null ? null : { time: madeAt },
      { time: usedAt },
      durationCell(seconds),
      sizeCell(bytes),
      title,
    ]),
  };
  return format === "table" && layers.length > 0 ? withoutEmptyColumns(table, []) : table;
}

export const remove = command({
  name: "remove",
  description: "Remove a scope; the images of its layers stay.",
  args: { scope: scopeArgument, ...registryOptions },
  needs: "service",
  run: removeScope,
  examples: [
    ["cache remove feature/x", "the scope of a deleted branch"],
    ["cache remove main", "the next builds start without it"],
  ],
  agentNote:
    "This command is mutating, for all machines. It does not ask for confirmation. A build that is writing the scope may create it again.",
});

async function removeScope(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  const { parseStore, removeStore } = await import("./cache-stores.ts");
  const store = parseStore(values.positionals[0] ?? "", runtime);
  if (store !== undefined) {
    await removeStore(store, invocation);
    return printRemoved(invocation, store.label);
  }
  const name = readScopeArgument(values);
  await using connection = await connect(invocation);
  const { service } = connection;
  const images = await listIndexImages(name, service);
  if (images.length === 0) throw await noSuchScope(name, service);
  // The scope's own tag comes last, so that the next try can remove what an interruption leaves.
  for (const { image, tag } of images.toReversed()) await service.removeTag(image, tag);
  printRemoved(invocation, name);
}

function printRemoved(invocation: Invocation, name: string): void {
  printResult(invocation, {
    id: name,
    json: { removed: name },
    table: () => ({ header: ["REMOVED"], rows: [[name]] }),
  });
}
