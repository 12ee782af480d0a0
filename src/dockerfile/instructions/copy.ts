import { type FlagKind, type GivenFlags, readFlags } from "../flags.ts";
import type { AddInstruction, CopyInstruction, CopySource, HereDocument } from "../instruction.ts";
import { joinLoneMarkers, parseHeredocMarker } from "../text/heredoc.ts";
import { baseOf, placeOf, type Statement } from "../text/statement.ts";
import type { Word } from "../words/words.ts";

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

/** Parses `COPY [flags] SOURCE... DESTINATION`, or the same as a JSON array. A source may be a here-document. */
export function parseCopy(statement: Statement): CopyInstruction {
  const flags = readFlags(statement, copyFlags);
  const fields = parseCopyFields(statement, flags);
  // An empty `--from` means the build context, as if it were not given.
  return { ...baseOf(statement, "COPY", flags.list), ...fields, from: flags.text("from") || undefined };
}

/** Parses `ADD [flags] SOURCE... DESTINATION`: like COPY, with flags for remote sources and archives. */
export function parseAdd(statement: Statement): AddInstruction {
  const flags = readFlags(statement, addFlags);
  const fields = parseCopyFields(statement, flags);
  return {
    ...baseOf(statement, "ADD", flags.list),
    ...fields,
    checksum: flags.text("checksum"),
    keepGitDir: flags.switch("keep-git-dir"),
    unpack: flags.switch("unpack"),
  };
}

function parseCopyFields(statement: Statement, flags: GivenFlags) {
  const list = statement.list();
  const words = list?.isArray === true ? list.words : joinLoneMarkers(list?.words ?? []);
  const destination = words.at(-1);
  if (list !== undefined) checkWords(statement, words, list.isArray);
  return {
    sources: sourcesOf(words.slice(0, -1), list?.isArray === true ? [] : statement.heredocs),
    destination: destination?.text ?? "",
    chown: flags.text("chown"),
    chmod: flags.text("chmod"),
    exclude: flags.texts("exclude"),
    parents: flags.switch("parents") ?? false,
    link: flags.switch("link"),
  };
}

function sourcesOf(words: readonly Word[], heredocs: readonly HereDocument[]): CopySource[] {
  const sources: CopySource[] = [];
  let next = 0;
  for (const word of words) {
    const document = next < heredocs.length && markerOf(word) !== undefined ? heredocs[next++] : undefined;
    sources.push(document === undefined ? { kind: "path", path: word.text } : { kind: "heredoc", document });
  }
  return sources;
}

function checkWords(statement: Statement, words: readonly Word[], isArray: boolean): void {
  const { name, writtenName, heredocs } = statement;
  const destination = words.at(-1);
  if (destination === undefined || words.length < 2) {
    const given = destination === undefined ? "none was provided" : "only one was provided";
    statement.report({
      message: `${name} requires at least two arguments, but ${given}. Destination could not be determined`,
      expected: `${name} source... destination`,
      at: placeOf(destination ?? writtenName),
    });
  } else if (!isArray && markerOf(destination) !== undefined) {
    const message = `${name} cannot accept a heredoc as a destination`;
    statement.report({ message, expected: "a path as the last argument", at: placeOf(destination) });
  } else if (heredocs.length > 0 && heredocs.length > words.filter(markerOf).length) {
    // COPY and ADD split words at all blanks, even quoted ones. The shell's rules, which find here-documents, don't.
    const message = `${name} cannot accept a heredoc with a blank in its name`;
    statement.report({ message, expected: "a name without blanks", at: placeOf(statement.args) });
  }
}

function markerOf(word: Word) {
  return parseHeredocMarker(word.text);
}
