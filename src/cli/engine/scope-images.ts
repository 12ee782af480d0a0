import { readScope, readSteps } from "../../builder/scopes/read-scope.ts";
import type { SessionUse } from "../../engine/prune/selection.ts";
import { BoughError } from "../../errors.ts";
import { listScopeNames } from "../cache/scope-argument.ts";
import type { Invocation } from "../command-line/command.ts";
import { connect } from "../service/connection.ts";

/** The prefix of a scope's name as an owner of layers. No session has such a key, since keys have no spaces. */
export const scopeOwner = "scope ";

/**
 * Adds the images of scopes to those of sessions: other machines, of which no session here knows, build on them. The layers that
 * the latest builds found are current.
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
          holdsWork: known?.holdsWork === true,
        });
      }
    }
  } catch (error) {
    runtime.signal.throwIfAborted();
    if (!(error instanceof BoughError)) throw error;
    log.warn(`cannot read the scopes: ${error.message}`);
  }
}
