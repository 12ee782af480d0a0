import type { AddInstruction, CopyInstruction, HereDocument } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { createdDirectoryMode, type ModeChange, parseMode } from "../../image/file-mode.ts";
import { wording } from "../../messages/wording.ts";
import {
  isRepositoryAddress,
  parseRepositoryAddress,
  type RepositoryAddress,
} from "../addresses/repository-address.ts";
import { isUrl, redactUrl } from "../addresses/source-url.ts";
import type { Dialect } from "../dialect.ts";
import { type BuildWarning, copiedArchive } from "../state/warnings.ts";

/** The words of a COPY or ADD, with variables replaced. */
export interface CopyWords {
  /** Paths relative to the context; an empty one is its root. */
  paths: readonly string[];
  /** The sources that ADD fetches. */
  remote: readonly FetchedCopySource[];
  documents: readonly HereDocument[];
  /** Empty: the WORKDIR. */
  destination: string;
  exclude: readonly string[];
  /** Empty if not given. */
  chown: string;
  /** `--chmod`, as written. Empty if not given. */
  chmod: string;
  changeMode: ModeChange;
  /** The mode of directories that the copy makes, if it is not the usual one. */
  directoryMode: number | undefined;
  /** The digest of `ADD --checksum`: 64 hex digits. */
  checksum: string | undefined;
  /** Warnings about words that Docker treats differently. */
  warnings: readonly BuildWarning[];
}

/** `position`: the number of paths that come before it. */
export type FetchedCopySource = { position: number } & (
  | { kind: "url"; url: string }
  | { kind: "repository"; address: RepositoryAddress }
);

/** @throws BoughError of kind `usage` for words that are invalid or not supported */
export function expandCopyWords(
  instruction: CopyInstruction | AddInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
  dialect: Dialect,
): CopyWords {
  const expand = (word: string) => expandWord(word, lookup, escape);
  const sources = instruction.sources.flatMap((source) =>
    source.kind === "path" ? [expand(source.path)] : [],
  );
  const documents = instruction.sources.flatMap((source) =>
    source.kind === "heredoc" ? [source.document] : [],
  );
  const isAdd = instruction.name === "ADD";
  const {
    repository: repositories = [],
    url: urls = [],
    path: paths = [],
  } = Object.groupBy(sources, (word) => (isAdd ? kindOf(word) : "path"));
  const given = isAdd ? expand(instruction.checksum ?? "") : "";
  if (isAdd) requireAddable({ repositories, urls, paths }, given, dialect);
  else if (dialect.copiesAsBuildKit && instruction.from === undefined) requireLocal(paths);
  const options = { checksum: given, keepGitDir: isAdd ? instruction.keepGitDir : undefined };
  const destination = expand(instruction.destination);
  const chmod = expand(instruction.chmod ?? "");
  return {
    paths,
    remote: isAdd ? remoteSources(sources, options) : [],
    documents,
    destination,
    exclude: instruction.exclude.map(expand),
    chown: expand(instruction.chown ?? ""),
    chmod,
    changeMode: chmod === "" ? (mode) => mode : parseMode(chmod),
    directoryMode: dialect.copiesAsBuildKit ? createdDirectoryMode(chmod) : undefined,
    checksum: repositories.length > 0 ? undefined : parseChecksum(given),
    warnings: isAdd && instruction.unpack === undefined ? paths.filter(isArchive).map(copiedArchive) : [],
  };
}

function kindOf(word: string): "path" | FetchedCopySource["kind"] {
  if (isRepositoryAddress(word)) return "repository";
  return isUrl(word) ? "url" : "path";
}

function remoteSources(
  words: readonly string[],
  flags: Parameters<typeof toAddress>[1],
): FetchedCopySource[] {
  const found: FetchedCopySource[] = [];
  let position = 0;
  for (const word of words) {
    const kind = kindOf(word);
    if (kind === "path") position += 1;
    else if (kind === "url") found.push({ kind, url: word, position });
    else found.push({ kind, address: toAddress(word, flags), position });
  }
  return found;
}

/** Returns true for a source that Docker's ADD would unpack. */
export function isArchive(source: string): boolean {
  return /\.(tar|tar\.(gz|bz2|xz|zst)|tgz|tbz2?|txz)$/i.test(source);
}

function requireAddable(
  { repositories, urls, paths }: Record<"repositories" | "urls" | "paths", readonly string[]>,
  checksum: string,
  dialect: Dialect,
): void {
  const [repository] = repositories;
  if (repository !== undefined && !dialect.copiesAsBuildKit) {
    throw new BoughError(
      wording`ADD ${redactUrl(repository)}: git repositories are not fetched without ${{ option: "docker" }}`,
      {
        kind: "usage",
        hint: wording`Build with ${{ option: "docker" }}, clone it in a RUN, or ADD an archive of it by its URL and unpack that in a RUN.`,
      },
    );
  }
  const [path] = paths;
  if (checksum !== "" && path !== undefined) {
    throw new BoughError(
      `ADD --checksum is only for a URL or a git repository, but ${path} is a local path`,
      {
        kind: "usage",
      },
    );
  }
  if (checksum !== "" && dialect.copiesAsBuildKit && repositories.length + urls.length > 1)
    throw new BoughError("ADD --checksum requires a single source", { kind: "usage" });
  const bad = urls.find((source) => !URL.canParse(source));
  if (bad !== undefined) throw new BoughError(`ADD ${redactUrl(bad)}: invalid address`, { kind: "usage" });
}

/** Throws for addresses: for a COPY they are paths, which the context does not have. */
function requireLocal(paths: readonly string[]): void {
  const remote = paths.find((path) => isRepositoryAddress(path) || /^https?:\/\//.test(path));
  if (remote === undefined) return;
  const what = isRepositoryAddress(remote) ? "git repository" : "URL";
  throw new BoughError(`COPY ${redactUrl(remote)}: the source can't be a ${what}`, {
    kind: "usage",
    hint: "ADD fetches it.",
  });
}

/** Returns the address; flags count like options in the address. */
function toAddress(
  word: string,
  { checksum, keepGitDir }: { checksum: string; keepGitDir: boolean | undefined },
): RepositoryAddress {
  const address = parseRepositoryAddress(word);
  if (address === undefined) throw new Error("this is not the address of a repository");
  const { keepsGitDirectory = keepGitDir, commit = checksum === "" ? undefined : checksum } = address;
  const refuse = (flag: string) =>
    new BoughError(`ADD ${redactUrl(word)}: --${flag} conflicts with the address`, {
      kind: "usage",
    });
  if (keepGitDir !== undefined && keepsGitDirectory !== keepGitDir) throw refuse("keep-git-dir");
  if (checksum !== "" && commit !== checksum) throw refuse("checksum");
  return { ...address, keepsGitDirectory, commit };
}

/** Parses a digest. An empty text, as of an unset variable, means none. */
function parseChecksum(text: string): string | undefined {
  if (text === "") return undefined;
  const match = /^sha256:([0-9a-f]{64})$/i.exec(text);
  if (match?.[1] !== undefined) return match[1].toLowerCase();
  throw new BoughError(`--checksum=${text} is not a SHA-256 digest`, {
    kind: "usage",
    hint: "Write --checksum=sha256: and 64 hexadecimal digits, as sha256sum prints them.",
  });
}
