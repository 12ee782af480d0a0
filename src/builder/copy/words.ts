import type { AddInstruction, CopyInstruction, HereDocument } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { type ModeChange, parseMode } from "../../image/mode-change.ts";
import { type BuildWarning, copiedArchive } from "../interpreter/warnings.ts";
import { isUrl, redactUrl } from "../remote-files/source-url.ts";

/** The words of a COPY or ADD once their variables are replaced. */
export interface CopyWords {
  /** Paths relative to the context; an empty one is its root. */
  paths: readonly string[];
  urls: readonly string[];
  documents: readonly HereDocument[];
  /** Empty: the WORKDIR. */
  destination: string;
  exclude: readonly string[];
  /** Empty where there is none. */
  chown: string;
  /** `--chmod`, as written. Empty where there is none. */
  chmod: string;
  changeMode: ModeChange;
  /** The digest of `ADD --checksum`: 64 hex digits. */
  checksum: string | undefined;
  /** Warnings of what Docker would do with these words. */
  warnings: readonly BuildWarning[];
}

/** @throws BoughError of kind `usage` for words that make no COPY or ADD, or none that bough knows */
export function expandCopyWords(
  instruction: CopyInstruction | AddInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
): CopyWords {
  const expand = (word: string) => expandWord(word, lookup, escape);
  const sources = instruction.sources.flatMap((source) =>
    source.kind === "path" ? [expand(source.path)] : [],
  );
  const documents = instruction.sources.flatMap((source) =>
    source.kind === "heredoc" ? [source.document] : [],
  );
  const isAdd = instruction.name === "ADD";
  const checksum =
    isAdd && instruction.checksum !== undefined ? parseChecksum(expand(instruction.checksum)) : undefined;
  const urls = isAdd ? sources.filter(isUrl) : [];
  const paths = isAdd ? sources.filter((source) => !isUrl(source)) : sources;
  const destination = expand(instruction.destination);
  const chmod = expand(instruction.chmod ?? "");
  if (isAdd) requireAddable(sources, checksum);
  return {
    paths,
    urls,
    documents,
    destination,
    exclude: instruction.exclude.map(expand),
    chown: expand(instruction.chown ?? ""),
    chmod,
    changeMode: chmod === "" ? (mode) => mode : parseMode(chmod),
    checksum,
    warnings: isAdd && instruction.unpack === undefined ? paths.filter(isArchive).map(copiedArchive) : [],
  };
}

/** A source that Docker's ADD would unpack. */
export function isArchive(source: string): boolean {
  return /\.(tar|tar\.(gz|bz2|xz|zst)|tgz|tbz2?|txz)$/i.test(source);
}

function isGitRepository(source: string): boolean {
  return /^(git@|git:\/\/|ssh:\/\/)/.test(source) || /^https?:\/\/[^?#]*\.git(#.*)?$/i.test(source);
}

function requireAddable(sources: readonly string[], checksum: string | undefined): void {
  const repository = sources.find(isGitRepository);
  if (repository !== undefined) {
    const shown = redactUrl(repository);
    throw new BoughError(`ADD ${shown}: git repositories are not fetched`, {
      kind: "usage",
      hint: "Clone it in a RUN, or ADD an archive of it by its URL and unpack that in a RUN.",
    });
  }
  const path = sources.find((source) => !isUrl(source));
  if (checksum !== undefined && path !== undefined) {
    throw new BoughError(`ADD --checksum goes with a URL, and ${path} is a local path`, { kind: "usage" });
  }
  const bad = sources.find((source) => isUrl(source) && !URL.canParse(source));
  if (bad !== undefined)
    throw new BoughError(`ADD ${redactUrl(bad)}: this is no valid address`, { kind: "usage" });
}

/** Empty, as where its variable is not set: none. */
function parseChecksum(text: string): string | undefined {
  if (text === "") return undefined;
  const match = /^sha256:([0-9a-f]{64})$/i.exec(text);
  if (match?.[1] !== undefined) return match[1].toLowerCase();
  throw new BoughError(`--checksum=${text} is no SHA-256 digest`, {
    kind: "usage",
    hint: "Write --checksum=sha256: and 64 hexadecimal digits, as sha256sum prints them.",
  });
}
