import { BoughError } from "../../errors.ts";
import { type DirectoryContext, findContext, type NamedContexts } from "../contexts/named-context.ts";
import type { MountSpec } from "./mount-spec.ts";

/**
 * Returns the directory of a named context that a bind mounts; `undefined` if the mount's files come from elsewhere. Throws for a
 * cache: only an image can fill one.
 */
export function mountedDirectory(spec: MountSpec, contexts: NamedContexts): DirectoryContext | undefined {
  if ((spec.type !== "bind" && spec.type !== "cache") || spec.from === undefined) return undefined;
  const { from } = spec;
  const found = findContext(from, contexts);
  if (found?.kind !== "directory") return undefined;
  if (spec.type === "bind") return found;
  throw new BoughError(
    `not supported: --mount=type=cache,from=${from}: --build-context ${found.name} is a directory, and only a stage or an image can fill a cache`,
    {
      kind: "usage",
      hint: `Make a stage of it (FROM scratch AS files, COPY --from=${from} . /) and write from=files.`,
    },
  );
}
