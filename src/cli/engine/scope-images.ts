import { readScope, readSteps } from "../../builder/scopes/read-scope.ts";
import type { SessionUse } from "../../engine/prune/selection.ts";
import { BoughError } from "../../errors.ts";
import { listScopeNames } from "../cache/scope-argument.ts";
import type { Invocation } from "../command-line/command.ts";
import { connect } from "../service/connection.ts";

/** Stands before the name of a scope that owns layers: no key of a session has a space. */
export const scopeOwner = "scope ";

/**
 * Adds to what sessions use what scopes name: other machines build on it, whom no session here knows. Current is what the latest
 * builds found.
 */
export async function addScopeUses(
  uses: Map<string, SessionUse>,
  { runtime, globals, log }: Pick<Invocation, "runtime" | "globals" | "log">,
): Promise<void> {
  try {
    const silent = { ...log, info() {} };
    await using connection = await connect({ runtime, globals: { ...globals, local: true }, log: silent });
    const { service } = connection;
    for (const name of await listScopeNames(service)) {
      const options = { service, known: new Map(), warn: log.warn };
      const scope = await readScope(name, options);
      const { steps } = await readSteps(scope, options);
      const latest = new Set(Array.from(steps.values(), ({ hash }) => hash));
      for (const [hash, { image, usedAt }] of scope.index.layers) {
        const known = uses.get(image);
        uses.set(image, {
          session: known?.session ?? `${scopeOwner}${name}`,
          usedAt: Math.max(known?.usedAt ?? 0, usedAt),
          isCurrent: known?.isCurrent === true || latest.has(hash),
        });
      }
    }
  } catch (error) {
    runtime.signal.throwIfAborted();
    if (!(error instanceof BoughError)) throw error;
    log.warn(`what scopes name is not known: ${error.message}`);
  }
}
