import { basename, join, relative } from "node:path";
import { createLayerCache } from "../../builder/cache/layer-cache.ts";
import { createStepMemory } from "../../builder/cache/step-memory.ts";
import type { BuildJob } from "../../builder/job.ts";
import { pathWithin } from "../../context/file-system/display-path.ts";
import type { Log } from "../../terminal/log.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Connection } from "../service/connection.ts";
import type { BuildInputs } from "./inputs.ts";
import type { ScopeOptions } from "./options/scope-options.ts";

/** The results of earlier builds: those of this machine, and those of other machines in scopes. */
export interface BuildCache extends Pick<BuildJob, "store" | "layers" | "memory"> {
  /** Writes the layers that the build made or used to a scope, if one was chosen for writing. */
  finish(): Promise<void>;
}

/** Reads `--cache-from` and related options. Returns `undefined`, and loads no code for them, if none is given. */
export async function readSharing(
  invocation: Invocation,
  { context, fetched }: BuildInputs,
): Promise<ScopeOptions | undefined> {
  const { values, runtime } = invocation;
  const { BOUGH_CACHE_TO = "", BOUGH_CACHE_FROM = "" } = runtime.environment;
  const options = ["cache", "cache-to", "cache-from", "cache-sign", "cache-verify"];
  const isGiven = options.some((name) => values.text(name) !== undefined);
  if (!isGiven && BOUGH_CACHE_TO === "" && BOUGH_CACHE_FROM === "") return undefined;
  const { readScopeOptions } = await import("./options/scope-options.ts");
  return readScopeOptions(invocation, fetched === undefined ? context.realPath : undefined);
}

export async function openBuildCache(
  { store, serviceFor }: Connection,
  { sharing, session, log }: { sharing: ScopeOptions | undefined; session: string; log: Log },
  { context, place, dockerfile: { absolutePath } }: BuildInputs,
  { values, runtime: { clock, signal } }: Invocation,
): Promise<BuildCache> {
  const own = {
    store,
    layers: createLayerCache(store, session),
    memory: createStepMemory(store.steps, {
      session,
      // `place` is the same each time a context is fetched from one address.
      dockerfile: join(place, relative(context.absolutePath, absolutePath)),
      explains: values.flag("explain"),
    }),
  };
  if (sharing === undefined) return { ...own, finish: async () => undefined };
  const { keys, reason, ...choice } = sharing;
  if (reason !== undefined) log.info(`cache: ${describeChoice(choice)} (${reason})`);
  const { openScopes } = await import("../../builder/scopes/open-scopes.ts");
  return openScopes(
    { ...choice, from: values.flag("no-cache") ? [] : choice.from },
    {
      ...{ ...own, ...keys, session, clock, signal, log },
      // The same on every machine, wherever its checkout is.
      dockerfile: pathWithin(context.absolutePath, absolutePath) ?? basename(absolutePath),
      // A failed stage aborts the build's own requests, but its scope is still written.
      service: serviceFor(signal),
    },
  );
}

function describeChoice({ from, to }: Pick<ScopeOptions, "from" | "to">): string {
  const reads = from.length === 0 ? "reads no scope" : `reads ${from.join(", ")}`;
  return `${reads}, writes ${to ?? "none"}`;
}
