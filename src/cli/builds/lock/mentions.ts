import {
  isRepositoryAddress,
  lockedName,
  parseRepositoryAddress,
} from "../../../builder/addresses/repository-address.ts";
import { isUrl, redactUrl } from "../../../builder/addresses/source-url.ts";
import type { Dockerfile, Instruction } from "../../../dockerfile/instruction.ts";
import { expandWord } from "../../../dockerfile/words/words.ts";
import { BoughError } from "../../../errors.ts";
import type { Kind, LockEntry } from "./lock-file.ts";

/** Says whether a Dockerfile has a line that means a reference: for certain, or only with some value of a variable. */
type Mention = "certain" | "possible" | undefined;

/** Looks at all lines, whatever a build performs. Returns a function that says which references they may mean. */
export function mentionsIn({
  instructions,
  escape,
}: Pick<Dockerfile, "instructions" | "escape">): (entry: Pick<LockEntry, "kind" | "name">) => Mention {
  const patterns = instructions
    .flatMap(wordsOf)
    .flatMap(({ word, isFetched }) => patternsOf(word, isFetched, escape));
  return ({ kind, name }) => {
    const found = patterns.filter((pattern) => pattern.kind === kind && pattern.matches.test(name));
    if (found.length === 0) return undefined;
    return found.some(({ isCertain }) => isCertain) ? "certain" : "possible";
  };
}

/** A word of an instruction, as written: one that ADD may fetch, or the name of an image or stage. */
interface Word {
  word: string;
  isFetched: boolean;
}

function wordsOf(instruction: Instruction): Word[] {
  const images = (...names: (string | undefined)[]) =>
    names.flatMap((word) => (word === undefined ? [] : [{ word, isFetched: false }]));
  switch (instruction.name) {
    case "FROM":
      return images(instruction.image);
    case "COPY":
      return images(instruction.from);
    case "RUN":
      return images(...instruction.mounts.map(({ from }) => from));
    case "ADD":
      return instruction.sources.flatMap((source) =>
        source.kind === "path" ? [{ word: source.path, isFetched: true }] : [],
      );
    case "ONBUILD":
      return instruction.trigger === undefined ? [] : wordsOf(instruction.trigger);
    default:
      return [];
  }
}

interface Pattern {
  kind: Kind;
  matches: RegExp;
  isCertain: boolean;
}

/** Stands for the value of a variable. */
const anything = "boughanything";

function patternsOf(word: string, isFetched: boolean, escape: string): Pattern[] {
  const kinds: readonly Kind[] = isFetched ? ["url", "git"] : ["image"];
  const open = () => kinds.map((kind): Pattern => ({ kind, matches: /^/, isCertain: false }));
  // What these operators make of a value can't be foreseen.
  if (/\$\{\w+(?!\w|\}|:?-)/.test(word)) return open();
  try {
    const text = expandWord(word, () => anything, escape);
    if (!isFetched) return [patternOf("image", text)];
    const address = isRepositoryAddress(text) ? parseRepositoryAddress(text) : undefined;
    if (address !== undefined) return [patternOf("git", lockedName(address))];
    if (isUrl(text)) return URL.canParse(text) ? [patternOf("url", redactUrl(text))] : open();
    return text.startsWith(anything) ? open() : [];
  } catch (error) {
    // The build reports an invalid word.
    if (error instanceof BoughError) return open();
    throw error;
  }
}

function patternOf(kind: Kind, text: string): Pattern {
  const parts = text.split(anything).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return { kind, matches: new RegExp(`^${parts.join(".*")}$`, "s"), isCertain: parts.length === 1 };
}
