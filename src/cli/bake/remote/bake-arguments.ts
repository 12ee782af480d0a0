import { findRemoteSource } from "../../contexts/context-source.ts";
import { localPrefix } from "../target-names.ts";

/** The positional arguments of bake. */
export interface BakeArguments {
  /** The address of the bake files; `undefined` for files of this machine. */
  address: string | undefined;
  /** The value of `BAKE_CMD_CONTEXT`. */
  commandContext: string;
  targets: readonly string[];
}

export function readBakeArguments(positionals: readonly string[]): BakeArguments {
  const [address, context] = positionals;
  if (address === undefined || !isRemote(address))
    return { address: undefined, commandContext: localPrefix, targets: positionals };
  if (context === undefined || !isRemote(context))
    return { address, commandContext: localPrefix, targets: positionals.slice(1) };
  return { address, commandContext: context, targets: positionals.slice(2) };
}

function isRemote(word: string): boolean {
  return findRemoteSource(word) !== undefined;
}
