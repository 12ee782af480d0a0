import { type FlagKind, type GivenFlags, readFlags } from "../flags.ts";
import { parseHeredocMarker } from "../heredoc.ts";
import type { AddInstruction, CopyInstruction, CopySource } from "../instruction.ts";
import { baseOf, placeOf, type Statement } from "../statement.ts";
import type { Word } from "../word-list.ts";
import { parseList } from "./list.ts";

const sharedFlags: Readonly<Record<string, FlagKind>> = {
  chown: "text",
  chmod: "text",
  exclude: "texts",
  link: "switch",
};

const copyFlags: typeof sharedFlags = { from: "text", ...sharedFlags, parents: "switch" };

const addFlags: typeof sharedFlags = {
  ...sharedFlags,
  checksum: "text",
  "keep-git-dir": "switch",
  unpack: "switch",
};

/** `COPY [flags] SOURCE... DESTINATION`, or the same as a JSON array; a source may be a here-document. */
export function parseCopy(statement: Statement): CopyInstruction {
  const flags = readFlags(statement, copyFlags);
  const { words, fields } = parseCopyFields(statement, flags);
  return { ...baseOf(statement, "COPY", words, flags.list), ...fields, from: flags.text("from") };
}

/** `ADD [flags] SOURCE... DESTINATION`: as COPY, with flags for sources that come from elsewhere. */
export function parseAdd(statement: Statement): AddInstruction {
  const flags = readFlags(statement, addFlags);
  const { words, fields } = parseCopyFields(statement, flags);
  return {
    ...baseOf(statement, "ADD", words, flags.list),
    ...fields,
    checksum: flags.text("checksum"),
    keepGitDir: flags.switch("keep-git-dir") ?? false,
    unpack: flags.switch("unpack"),
  };
}

function parseCopyFields(statement: Statement, flags: GivenFlags) {
  const { words, isArray } = parseList(statement);
  const destination = words.at(-1);
  if (words.length < 2) {
    const given = words.length === 0 ? "none was provided" : "only one was provided";
    statement.report({
      message: `${statement.name} requires at least two arguments, but ${given}. Destination could not be determined`,
      expected: `${statement.name} source... destination`,
      at: placeOf(destination ?? statement.writtenName),
    });
  }
  const fields = {
    sources: isArray ? words.slice(0, -1).map(pathSource) : parseSources(statement, words.slice(0, -1)),
    destination: destination?.text ?? "",
    chown: flags.text("chown"),
    chmod: flags.text("chmod"),
    exclude: flags.texts("exclude"),
    parents: flags.switch("parents") ?? false,
  };
  if (!isArray && destination !== undefined && isHeredoc(destination)) {
    const message = `${statement.name} cannot accept a heredoc as a destination`;
    statement.report({ message, expected: "a path as the last argument", at: placeOf(destination) });
  }
  return { words: words.map((word) => word.text), fields };
}

/** The here-documents of the line belong to its `<<` words, in order. */
function parseSources(statement: Statement, words: readonly Word[]): CopySource[] {
  const documents = statement.heredocs.values();
  return words.map((word) => {
    if (!isHeredoc(word)) return pathSource(word);
    const { value: document } = documents.next();
    return document === undefined ? pathSource(word) : { kind: "heredoc", document };
  });
}

function pathSource(word: Word): CopySource {
  return { kind: "path", path: word.text };
}

function isHeredoc(word: Word): boolean {
  try {
    return parseHeredocMarker(word.text) !== undefined;
  } catch {
    return false;
  }
}
