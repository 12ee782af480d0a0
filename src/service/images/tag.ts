import { BoughError } from "../../errors.ts";
import { isTag, maxTagLength } from "../wire/image.ts";

/** Appends `:latest` to a name without a tag. A colon before a slash belongs to a registry's port. */
export function withLatest(name: string): string {
  return hasTag(name) ? name : `${name}:latest`;
}

function hasTag(name: string): boolean {
  return name.slice(name.lastIndexOf("/") + 1).includes(":");
}

/** Checks the value of `--tag`, and appends `:latest` if it has no tag. Throws a BoughError of kind `usage`. */
export function parseTag(text: string): string {
  const tag = withLatest(text);
  if (isTag(tag)) return tag;
  throw new BoughError(`not a tag: ${JSON.stringify(text)}: ${tagFault(text, tag)}`, {
    kind: "usage",
    hint: "A tag is NAME[:TAG] of a-z, 0-9, _ and -, with : / . between them, 256 characters at most.",
  });
}

function tagFault(text: string, tag: string): string {
  if (text === "") return "it is empty";
  if (tag.length > maxTagLength) return `it has ${tag.length} characters`;
  if (/[A-Z]/.test(text) && isTag(tag.toLowerCase()))
    return `capital letters are not allowed; did you mean ${tag.toLowerCase()}?`;
  const strange = /[^a-z0-9_:/.-]/u.exec(text)?.[0];
  if (strange !== undefined) return `${JSON.stringify(strange)} is not allowed`;
  return "a separator (: / .) must be between two parts";
}
