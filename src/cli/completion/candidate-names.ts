import { posix } from "node:path";
import { scopeOfTag } from "../../builder/scopes/scope-name.ts";
import { withDeadline } from "../../service/http/deadline.ts";
import { activeStatuses, type OperationStatus } from "../../service/wire/operation.ts";
import type { Log } from "../../terminal/log.ts";
import { loadProfiles } from "../auth/profiles.ts";
import { listScopeNames } from "../cache/read-scope.ts";
import type { Invocation } from "../command-line/command.ts";
import type { CompletedKind } from "../command-line/definitions.ts";
import { enterUserNamespace } from "../process/user-namespace.ts";
import { resolveImagePath } from "../references/image-path.ts";
import { sessionKey } from "../references/session-argument.ts";
import { isEmbedded } from "../service/choice.ts";
import { type Connection, connect, openLocalStore } from "../service/connection.ts";

/** The maximum time for a service, since the user waits for the completion. */
const maxRequestMilliseconds = 2000;
const maxOperations = 50;

/** `values`: the options and arguments that are typed already. */
type Context = Pick<Invocation, "runtime" | "globals" | "values">;
type NamedKind = Exclude<CompletedKind, "file" | "named-file" | "directory">;

/** Returns all names of one kind. */
export async function findNames(kind: NamedKind, current: string, context: Context): Promise<string[]> {
  switch (kind) {
    case "profile":
      return [...loadProfiles(context.runtime).profiles.byName.keys()];
    case "session":
      return queryStore(context, (store) => store.sessions.list("").map(({ key }) => key));
    case "branch":
      return queryStore(context, (store) => store.branches.list(sessionKey(context)).map(({ name }) => name));
    case "tag":
      return queryService(context, (connection) => listTags(connection, ""));
    case "image":
      return queryService(context, (connection) =>
        listTags(connection, current.startsWith("tag:") ? "tag:" : ""),
      );
    case "scope":
      return queryService(context, ({ service }) => listScopeNames(service));
    case "stage":
      return (await import("./stage-names.ts")).findStageNames(current, context);
    case "operation":
      return queryService(context, (connection) => listOperationIds(connection, [undefined]));
    case "running-operation":
      return queryService(context, (connection) => listOperationIds(connection, activeStatuses));
    case "image-path":
      return queryService(context, (connection) => listPaths(connection, current, sessionKey(context)));
  }
}

/** Lists tags, except those of cache scopes, as `bough images` does. */
async function listTags({ service }: Connection, prefix: string): Promise<string[]> {
  const images = await service.listImages({ tagged: true });
  return images.flatMap(({ tag }) =>
    tag === null || scopeOfTag(tag) !== undefined ? [] : `${prefix}${tag}`,
  );
}

/** Lists operations. An `undefined` status means any. */
async function listOperationIds(
  { service }: Connection,
  statuses: readonly (OperationStatus | undefined)[],
): Promise<string[]> {
  const lists = await Promise.all(
    statuses.map((status) => service.listOperations({ limit: maxOperations, status })),
  );
  return lists.flat().map(({ uuid }) => uuid);
}

/** Completes `IMAGE:/dir/na`, or `/dir/na` in the session's image. Returns images as long as there is no slash. */
async function listPaths(connection: Connection, current: string, key: string): Promise<string[]> {
  if (!current.includes("/")) return (await listTags(connection, "")).map((tag) => `${tag}:/`);
  const typed = current.slice(0, current.lastIndexOf("/") + 1);
  const { image, path } = await resolveImagePath(typed, key, connection);
  const files = await connection.service.listFiles(image, posix.normalize(path));
  return files.map(({ name, type }) => `${typed}${name}${type === "directory" ? "/" : ""}`);
}

function queryStore({ runtime, globals }: Context, read: (store: Connection["store"]) => string[]): string[] {
  using store = openLocalStore(runtime, globals);
  return read(store);
}

async function queryService(
  { runtime, globals }: Context,
  query: (connection: Connection) => Promise<string[]>,
): Promise<string[]> {
  const { clock, signal } = runtime;
  return await withDeadline(
    { clock, milliseconds: maxRequestMilliseconds, parent: signal },
    async (limited) => {
      const engineProblem = isEmbedded(runtime, globals) ? await enterUserNamespace(runtime) : undefined;
      await using connection = await connect({
        runtime: { ...runtime, signal: limited, engineProblem },
        globals,
        log: silentLog,
      });
      return await query(connection);
    },
  );
}

const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
