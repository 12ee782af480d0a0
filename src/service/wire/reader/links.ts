/** Addresses in answers, at which an operation's record may be. */
import { asText } from "../../http/json.ts";
import { images, outputs, sources } from "./vocabulary.ts";
import { leavesOf } from "./walk.ts";
import { hasAny, wordsOf } from "./words.ts";

/** Returns the addresses in a response, those of a status first. */
export function operationLinksIn(body: unknown): string[] {
  const links = leavesOf(body, { isWhole: true }).flatMap(({ key, around, value }) => {
    const text = asText(value);
    if (text === undefined || text.length > maxCharacters) return [];
    if ([key, ...around].some((words) => hasAny(words, otherLinks))) return [];
    if (/^(https?:\/\/|\/)\S+$/.test(text))
      return [{ text, isLikely: [key, ...around].some((words) => hasAny(words, likely)) }];
    // A name such as `operations/ID` is relative to the version.
    const isName = /^[a-z]+\/[\w.-]+$/i.test(text) && hasAny(key, nameKeys);
    return isName ? [{ text: `/v1/${text}`, isLikely: true }] : [];
  });
  return links
    .toSorted((one, other) => Number(other.isLikely) - Number(one.isLikely))
    .map(({ text }) => text);
}

const maxCharacters = 2000;
const likely: ReadonlySet<string> = new Set([
  "href",
  "self",
  "status",
  "poll",
  "operation",
  "location",
  "url",
  "monitor",
]);
const nameKeys: ReadonlySet<string> = new Set([
  "name",
  "id",
  "path",
  "ref",
  "reference",
  "resource",
  "operation",
]);
const otherLinks: ReadonlySet<string> = new Set([
  ...[images, outputs, sources].flatMap((set) => [...set]),
  ...[
    "cancel",
    "events",
    "stream",
    "docs",
    "documentation",
    "help",
    "html",
    "cwd",
    "workdir",
    "command",
    "args",
    "files",
  ],
]);

/** Returns the addresses in a response's headers: `Location`, and others that are named so. */
export function linksInHeaders(headers: Headers): string[] {
  const found: [name: string, link: string][] = [];
  for (const [name, value] of headers) {
    const words = wordsOf(name);
    if (words.includes("location") || words.includes("asyncoperation")) found.push([name, value]);
    if (name === "link") found.push([name, /<([^>]+)>/.exec(value)?.[1] ?? ""]);
  }
  const rank = (name: string) => (name === "location" ? 0 : name === "content-location" ? 2 : 1);
  return found
    .filter(([, link]) => link !== "")
    .toSorted(([one], [other]) => rank(one) - rank(other))
    .map(([, link]) => link);
}
