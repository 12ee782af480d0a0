import { findRemoteSource } from "../../contexts/context-source.ts";

/** The positional arguments of bake. */
export interface BakeWords {
  /** Where the bake files are; `undefined`: here. */
  address: string | undefined;
  /** What `BAKE_CMD_CONTEXT` means in them. */
  commandContext: string;
  targets: readonly string[];
}

export function readBakeWords(words: readonly string[]): BakeWords {
  const [address, context] = words;
  if (address === undefined || !isRemote(address))
    return { address: undefined, commandContext: here, targets: words };
  if (context === undefined || !isRemote(context))
    return { address, commandContext: here, targets: words.slice(1) };
  return { address, commandContext: context, targets: words.slice(2) };
}

/** The value of `BAKE_CMD_CONTEXT` for this directory. */
const here = "cwd://";

function isRemote(word: string): boolean {
  return findRemoteSource(word) !== undefined;
}
