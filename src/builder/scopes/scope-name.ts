import { BoughError } from "../../errors.ts";

const maxNameLength = 100;
const parts = "[a-z0-9_-]+(?:[./][a-z0-9_-]+)*";
const namePattern = new RegExp(`^${parts}$`);
/** A tag has the version of the index: another format is kept beside this one. */
const tagPattern = new RegExp(`^bough-cache/(${parts}):v1(?:\\.[0-9a-f]{16})?$`);

/** The prefix of all tags of scopes. */
export const scopeTagPrefix = "bough-cache/";

export function isScopeName(name: string): boolean {
  return name.length <= maxNameLength && namePattern.test(name);
}

/** `option`: the option that gave the name. Throws a BoughError of kind `usage`. */
export function parseScopeName(name: string, option: string): string {
  if (isScopeName(name)) return name;
  throw new BoughError(`${option}: not a scope: ${JSON.stringify(name)}`, {
    kind: "usage",
    hint: "A scope's name consists of a-z, 0-9, _ and -, with . and / between them, 100 characters at most.",
  });
}

/** Returns the tag of a scope's index. */
export function scopeTag(name: string): string {
  return `${scopeTagPrefix}${name}:v1`;
}

/** Returns a unique tag for a single write. */
export function newJournalTag(name: string): string {
  return `${scopeTag(name)}.${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
}

/** Returns the scope of a tag; `undefined` if the tag is not a scope's. */
export function scopeOfTag(tag: string): string | undefined {
  return tagPattern.exec(tag)?.[1];
}
