import type { OutsideCaches, OutsideOptions } from "./registry/outside-caches.ts";
import { createServiceScopes, type ScopesOptions, type ServiceScopes } from "./service-scopes.ts";

/** The shared caches of all builds of a command. The builds add to them, and the command writes them. */
export interface SharedCaches extends Disposable {
  /** The scopes of the service whose state `store` is. The first build that uses them makes them. */
  scopes(options: ScopesOptions): ServiceScopes;
  /** Caches outside services. */
  outside(options: OutsideOptions): Promise<OutsideCaches>;
  /** Writes all that was added. Rejects only if interrupted. */
  write(): Promise<void>;
}

/** `log`: of the command, since what is written may be of several builds. */
export function createSharedCaches(log: ScopesOptions["log"]): SharedCaches {
  const scopes = new Map<ScopesOptions["store"], ServiceScopes>();
  let outside: Promise<OutsideCaches> | undefined;
  let opened: OutsideCaches | undefined;

  async function open(options: OutsideOptions): Promise<OutsideCaches> {
    // A build with scopes only does not load it.
    const { createOutsideCaches } = await import("./registry/outside-caches.ts");
    opened = createOutsideCaches({ ...options, log });
    return opened;
  }

  return {
    scopes: (options) =>
      scopes.getOrInsertComputed(options.store, () => createServiceScopes({ ...options, log })),
    outside(options) {
      outside ??= open(options);
      return outside;
    },
    async write() {
      const writers = [...scopes.values(), ...(opened === undefined ? [] : [opened])];
      await Promise.all(writers.map((writer) => writer.write()));
    },
    [Symbol.dispose]: () => opened?.[Symbol.dispose](),
  };
}
