import type { AddInstruction } from "../dockerfile/instruction.ts";
import { expandWord } from "../dockerfile/words.ts";
import { BoughError } from "../errors.ts";
import { type FetchedSource, isUrl, stageSources } from "./copy.ts";
import { addFromUrl } from "./download.ts";
import type { BuildJob } from "./job.ts";
import { lookUp, type StageState } from "./state.ts";

/** Docker gives a file from a URL to its owner alone. */
const urlFileMode = 0o600;

/** ADD: local paths as COPY has them; a URL goes from its server straight into the service. */
export async function performAdd(
  instruction: AddInstruction,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  const lookup = lookUp(stage.env, stage.args, stage.inherited);
  const expand = (word: string) => expandWord(word, lookup, build.dockerfile.escape);
  const checksum =
    instruction.checksum === undefined ? undefined : parseChecksum(expand(instruction.checksum));
  for (const source of instruction.sources) {
    if (source.kind === "path") checkSource(expand(source.path), checksum, instruction, build);
  }
  return stageSources(instruction, stage, build, async (url): Promise<FetchedSource> => {
    const { sha256, size } = await addFromUrl(url, checksum, build);
    return {
      name: fileName(url),
      entry: { type: "file", sha256, size, mode: urlFileMode, content: { kind: "url", url } },
    };
  });
}

function checkSource(
  source: string,
  checksum: string | undefined,
  instruction: AddInstruction,
  build: BuildJob,
): void {
  if (isGitRepository(source)) {
    throw new BoughError(`ADD ${source}: git repositories are not fetched`, {
      kind: "usage",
      hint: "Clone it in a RUN, or ADD an archive of it by its URL and unpack that in a RUN.",
    });
  }
  if (isUrl(source)) return;
  if (checksum !== undefined) {
    throw new BoughError(`ADD --checksum goes with a URL, and ${source} is a local path`, { kind: "usage" });
  }
  if (/\.(tar|tar\.(gz|bz2|xz|zst)|tgz|tbz2?|txz)$/i.test(source)) {
    const message = `ADD ${source}: the archive is copied as it is, not unpacked as Docker would; unpack it in a RUN`;
    build.emit({ type: "warning", message, line: instruction.range.start });
  }
}

function isGitRepository(source: string): boolean {
  return /^(git@|git:\/\/|ssh:\/\/)/.test(source) || /^https?:\/\/[^?#]*\.git(#.*)?$/i.test(source);
}

function parseChecksum(text: string): string {
  const match = /^sha256:([0-9a-f]{64})$/i.exec(text);
  if (match?.[1] !== undefined) return match[1].toLowerCase();
  throw new BoughError(`--checksum=${text} is no SHA-256 digest`, {
    kind: "usage",
    hint: "Write --checksum=sha256: and 64 hexadecimal digits, as sha256sum prints them.",
  });
}

/** The last part of the address's path, decoded; empty where it ends in a slash. */
function fileName(url: string): string {
  const encoded = new URL(url).pathname.split("/").at(-1) ?? "";
  try {
    const name = decodeURIComponent(encoded);
    return name.includes("/") || name === "." || name === ".." ? encoded : name;
  } catch {
    return encoded;
  }
}
