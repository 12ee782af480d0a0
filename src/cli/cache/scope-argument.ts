import { parseScopeName, scopeOfTag, scopeTagPrefix } from "../../builder/scopes/scope-name.ts";
import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import { nearest } from "../../suggest.ts";
import type { Values } from "../command-line/arguments.ts";
import type { ArgumentDefinition } from "../command-line/definitions.ts";

export const scopeArgument: ArgumentDefinition = {
  type: "positional",
  completes: "scope",
  required: true,
  description: "The name of a scope, as `bough cache list` shows it",
};

/** Throws a BoughError of kind `usage` if the name is invalid. */
export function readScopeArgument({ positionals: [name = ""] }: Pick<Values, "positionals">): string {
  return parseScopeName(name, "bough cache");
}

export async function noSuchScope(name: string, service: Pick<Service, "listImages">): Promise<BoughError> {
  const guess = nearest(name, await listScopeNames(service));
  return new BoughError(`there is no scope ${name}`, {
    hint:
      guess === undefined
        ? "`bough cache list` lists the scopes; `bough build --cache-to NAME` creates one."
        : `Did you mean ${guess}?`,
  });
}

/** Lists the scopes in alphabetical order. */
export async function listScopeNames(service: Pick<Service, "listImages">): Promise<string[]> {
  const images = await service.listImages({ tag: scopeTagPrefix });
  const names = images.map(({ tag }) => scopeOfTag(tag ?? "")).filter((name) => name !== undefined);
  return [...new Set(names)].sort();
}
