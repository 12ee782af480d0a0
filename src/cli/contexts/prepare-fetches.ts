import type { DirectoryContext } from "../../builder/contexts/named-context.ts";
import type { LazySource } from "./context-source.ts";
import type { fetchNamedContext, NamedFetching } from "./fetch-named-context.ts";
import { reportOrigin } from "./fetched-context.ts";

/** Returns the function that opens the context of an address. */
export type PrepareFetch = (name: string, source: LazySource) => DirectoryContext["open"];

/**
 * Returns a function that prepares a context of a build. The context is fetched once, for the first instruction that needs its files,
 * and the code for that is loaded then.
 */
export function prepareFetches(fetching: NamedFetching): PrepareFetch {
  return (name, source) => {
    let begun: ReturnType<typeof fetchNamedContext> | undefined;
    const fetch = async (signal: AbortSignal) => {
      const { fetchNamedContext } = await import("./fetch-named-context.ts");
      return fetchNamedContext({ name, source, signal }, fetching);
    };
    return async ({ signal, inputs }) => {
      begun ??= fetch(signal);
      const { files, fetched } = await begun;
      reportOrigin(fetched, inputs);
      return files;
    };
  };
}
