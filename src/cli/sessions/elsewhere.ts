import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { openStore, type Store } from "../../store/store.ts";
import type { Runtime } from "../process/runtime.ts";

/** The maximum number of other services that are looked at. */
const maxServices = 20;

/** Returns the hosts of other services for which this machine has sessions, with their number. */
export function sessionsElsewhere(
  { path }: Pick<Store, "path">,
  filter: string,
  { clock }: Pick<Runtime, "clock">,
): string[] {
  const directory = dirname(path);
  if (!existsSync(directory)) return [];
  const others = readdirSync(directory).filter((name) => name.endsWith(".db") && name !== basename(path));
  return others.slice(0, maxServices).flatMap((name) => {
    using store = openStore(join(directory, name), clock);
    const count = store.sessions.list(filter).length;
    const host = name === "embedded.db" ? "the embedded engine" : name.replace(/-[0-9a-f]{12}\.db$/, "");
    return count === 0 ? [] : `${host} (${count})`;
  });
}
