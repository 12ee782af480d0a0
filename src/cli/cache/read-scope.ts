import type { FoundIndex } from "../../builder/scopes/cache-place.ts";
import { createIndexReader, type IndexReader } from "../../builder/scopes/read-index.ts";
import { scopeOfTag, scopeTagPrefix } from "../../builder/scopes/scope-name.ts";
import { createScopePlace } from "../../builder/scopes/service-place.ts";
import type { Service } from "../../service/client.ts";
import type { Surroundings } from "../command-line/command.ts";

/** Lists the scopes in alphabetical order. */
export async function listScopeNames(service: Pick<Service, "listImages">): Promise<string[]> {
  const images = await service.listImages({ tag: scopeTagPrefix });
  const names = images.map(({ tag }) => scopeOfTag(tag ?? "")).filter((name) => name !== undefined);
  return [...new Set(names)].sort();
}

/** Reads a scope, and warns of what can't be used of it. */
export async function readScope(
  name: string,
  service: Service,
  { runtime: { signal }, log: { warn } }: Pick<Surroundings, "runtime" | "log">,
): Promise<{ found: FoundIndex; reader: IndexReader }> {
  const reader = createIndexReader(createScopePlace(name, { service, signal, warn }), { warn });
  const found = await reader.read();
  reader.report(found);
  return { found, reader };
}
