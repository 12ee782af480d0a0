/** `docker buildx imagetools`: creates and shows indexes of registries, as `bough index` does. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileError } from "../../context/file-system/file-error.ts";
import { BoughError, messageOf, usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { isDigest } from "../../image/digest.ts";
import { type JsonRecord, parseRecord } from "../../service/http/json.ts";
import { mentionedFields } from "../../templates/nodes.ts";
import { createLog } from "../../terminal/log.ts";
import { formatLogLines } from "../../terminal/terminal-text.ts";
import { parseArguments } from "../command-line/arguments.ts";
import { parsePlatforms } from "../command-line/option-values.ts";
import { type ImageName, parseImageName } from "../indexes/image-name.ts";
import { parseSourceName, parseTag, readIndexAnnotation } from "../indexes/index-commands.ts";
import { type IndexSource, makeIndex, writeIndex } from "../indexes/make-index.ts";
import { MissingImageError, readEntries } from "../indexes/platform-index.ts";
import { openDestination, openSource } from "../indexes/registries.ts";
import type { Runtime } from "../process/runtime.ts";
import { imageFunctions, readTemplate, writeTemplate } from "./format.ts";
import { renderImageListing } from "./image-listing.ts";
import { inspectImage } from "./inspected-image.ts";
import { commandOptions, type SubcommandCall } from "./subcommand.ts";

/** Creates an image of others in registries, as buildx does, and writes it under each tag. */
export async function create(words: readonly string[], { name, runtime }: SubcommandCall): Promise<number> {
  const values = parseArguments(
    words,
    {
      ...commandOptions,
      source: { type: "positional", required: false, multiple: true },
      tag: { type: "string", alias: "t", multiple: true },
      file: { type: "string", alias: "f", multiple: true },
      annotation: { type: "string", multiple: true },
      platform: { type: "string", alias: "p", multiple: true },
      append: { type: "boolean" },
      "dry-run": { type: "boolean" },
      // A value is only taken after `=`, as in `--prefer-index=false`.
      "prefer-index": { type: "string", optional: /^(?!)/ },
      progress: { type: "string" },
    },
    name,
  );
  const isDry = values.flag("dry-run");
  const files = values.list("file").map((path) => readSourceFile(path, runtime));
  const given = [...files, ...values.positionals];
  if (given.length === 0) throw usageError("no sources specified");
  const tags = values.list("tag").map(parseTag);
  const [firstTag] = tags;
  if (firstTag === undefined && !isDry)
    throw usageError("can't push with no tags specified, please set --tag or --dry-run");
  const base = values.flag("append") && firstTag !== undefined ? [{ name: firstTag }] : [];
  const { signal } = runtime;
  const destinations = tags.map((tag) => ({ tag, to: openDestination(tag.address, runtime) }));
  const made = await withBuildxErrors(
    makeIndex(
      {
        sources: [...base, ...readSources(given, tags)],
        replaces: "digest",
        annotations: values.list("annotation").flatMap(readIndexAnnotation),
        prefersIndex: parseGoBoolean(values.text("prefer-index") ?? "") !== false,
        platforms: parsePlatforms(values.list("platform")),
      },
      (address) => destinations.find(({ to }) => to.address === address)?.to ?? openSource(address, runtime),
      signal,
    ),
  );
  if (isDry) {
    runtime.stdout.write(`${Buffer.from(made.manifest.bytes)}\n`);
    return 0;
  }
  const { stderr } = runtime;
  const log = createLog("info", (text) => stderr.write(formatLogLines(text, stderr)), runtime.wordsOf);
  for (const { tag, to } of destinations) {
    await writeIndex(made, tag.reference, to, { signal, log });
    log.info(`${tag.full} is ${made.manifest.digest}`);
  }
  return 0;
}

/** Replaces the error about a missing image by that of buildx, which scripts look for. */
async function withBuildxErrors<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof MissingImageError)) throw error;
    throw new BoughError(`${error.address.slice("docker://".length)}: not found`, { cause: error });
  }
}

/** Parses sources, each a digest, a reference or a descriptor in JSON. */
function readSources(given: readonly string[], tags: readonly ImageName[]): IndexSource[] {
  const parsed = given.map((text) => {
    try {
      return parseSource(text);
    } catch (error) {
      throw usageError(
        `failed to parse source ${JSON.stringify(text)}, valid sources are digests, references and descriptors: ${messageOf(error)}`,
      );
    }
  });
  const names = [...tags, ...parsed.flatMap(({ name }) => name ?? [])];
  const [repository, ...others] = new Set(names.map((each) => each.repository));
  if (repository === undefined)
    throw usageError("no repositories specified, please set a reference in tag or source");
  return parsed.map(({ name, digest, descriptor }, at): IndexSource => {
    if (name !== undefined) return { name };
    if (others.length > 0)
      throw usageError(
        `multiple repositories specified, cannot infer repository for ${JSON.stringify(given[at])}`,
      );
    return { name: parseSourceName(digest, repository), ...(descriptor && { descriptor }) };
  });
}

type ParsedSource =
  | { name: ImageName; digest?: undefined; descriptor?: undefined }
  | { name?: undefined; digest: string; descriptor?: JsonRecord };

function parseSource(text: string): ParsedSource {
  if (text.startsWith("sha256")) {
    if (isDigest(text)) return { digest: text };
    throw usageError("invalid digest");
  }
  if (!text.startsWith("{")) return { name: parseImageName(text) };
  const descriptor = parseRecord(Buffer.from(text));
  const digest = descriptor?.digest;
  if (descriptor === undefined || !isDigest(digest)) throw usageError("a descriptor needs a digest");
  return { digest, descriptor };
}

function readSourceFile(path: string, { workingDirectory }: Runtime): string {
  try {
    return readFileSync(resolve(workingDirectory, path), "utf8").trim();
  } catch (error) {
    throw new BoughError(fileError("read", path, error).message, { kind: "usage", cause: error });
  }
}

/** Prints an image of a registry in buildx's form. */
export async function inspect(words: readonly string[], { name, runtime }: SubcommandCall): Promise<number> {
  const values = parseArguments(
    words,
    {
      ...commandOptions,
      reference: { type: "positional", required: false },
      raw: { type: "boolean" },
      format: { type: "string" },
    },
    name,
  );
  const [reference] = values.positionals;
  if (reference === undefined)
    throw usageError(`docker: '${name}' requires 1 argument`, `\nUsage:  ${name} [OPTIONS] NAME`);
  const format = values.text("format") || undefined;
  if (values.flag("raw") && format !== undefined) throw usageError("format and raw cannot be used together");
  const { stdout, signal } = runtime;
  const { address, reference: wanted, full } = parseImageName(reference);
  const read = await withBuildxErrors(readEntries(openSource(address, runtime), wanted, signal));
  if (values.flag("raw")) stdout.write(read.manifest.bytes);
  // As in buildx, this alone prints the listing. Before 0.33, so did each format that begins with it, such as {{.Manifest.Digest}}.
  else if (format === undefined || /^\s*\{\{\s*\.Manifest\s*\}\}\s*$/.test(format))
    stdout.write(renderImageListing(full, read));
  else {
    const template = readTemplate(format, imageFunctions);
    const data = await inspectImage(reference, read, mentionedFields(template), signal);
    writeTemplate(template, data, imageFunctions, (text) => stdout.write(text));
  }
  return 0;
}
