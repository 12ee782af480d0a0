/** `docker buildx imagetools`: indexes of registries, as `bough index` makes and shows them. */
import { usageError } from "../../errors.ts";
import { parseArguments } from "../command-line/arguments.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { readShownIndex } from "../indexes/index-commands.ts";
import type { Runtime } from "../process/runtime.ts";

const common: ArgumentDefinitions = {
  builder: { type: "string", description: "Taken, and makes no difference" },
  debug: { type: "boolean", alias: "D", description: "Enable debug logging" },
  help: { type: "boolean", alias: "h", description: "Print help and exit" },
};

/** Returns the command lines of `bough index create` that do what `create` asks for: one for each tag. */
export function createLines(words: readonly string[], name: string): string[][] {
  const values = parseArguments(
    words,
    {
      ...common,
      source: { type: "positional", required: false, multiple: true },
      tag: { type: "string", alias: "t", multiple: true },
      file: { type: "string", alias: "f", multiple: true },
      annotation: { type: "string", multiple: true },
      append: { type: "boolean" },
      "dry-run": { type: "boolean" },
      // Only `--prefer-index=false` has a value.
      "prefer-index": { type: "string", optional: /^(?!)/ },
      progress: { type: "string" },
    },
    name,
  );
  if (values.list("file").length > 0)
    throw usageError(
      `${name}: --file is not supported`,
      "Name the images: HOST/NAME:TAG or HOST/NAME@DIGEST.",
    );
  const tags = values.list("tag");
  const isDry = values.flag("dry-run");
  const [first] = values.positionals;
  if (first === undefined && !values.flag("append")) throw usageError("no sources specified");
  if (tags.length === 0 && !isDry)
    throw usageError("can't push with no tags specified, please set --tag or --dry-run");
  // Where nothing is written, the place only says the repository of digests.
  const places = tags.length > 0 ? tags : [(first ?? "").replace(/@[^@]*$/, "")];
  const isIndexUnwanted = /^(0|f|false)$/i.test(values.text("prefer-index") ?? "");
  const isAlone =
    values.positionals.length === 1 && !values.flag("append") && values.list("annotation").length === 0;
  return places.map((place) => [
    ...(values.flag("append") ? ["--append"] : []),
    ...(isDry ? ["--dry-run"] : []),
    ...(isIndexUnwanted && isAlone ? ["--copy"] : []),
    ...values.list("annotation").map((annotation) => `--annotation=${annotation}`),
    ...["--", place, ...values.positionals],
  ]);
}

/** Prints an image of a registry in buildx's form. */
export async function inspect(
  words: readonly string[],
  { name, runtime }: { name: string; runtime: Runtime },
): Promise<number> {
  const values = parseArguments(
    words,
    {
      ...common,
      reference: { type: "positional", required: false },
      raw: { type: "boolean" },
      format: { type: "string" },
    },
    name,
  );
  const [reference] = values.positionals;
  if (reference === undefined)
    throw usageError(`docker: '${name}' requires 1 argument`, `\nUsage:  ${name} [OPTIONS] NAME`);
  const { fullName, manifest, entries } = await readShownIndex(reference, runtime);
  if (values.flag("raw")) {
    runtime.stdout.write(manifest.bytes);
    return 0;
  }
  const { mediaType, digest, bytes } = manifest;
  const size = bytes.byteLength;
  const described = { mediaType, digest, size };
  const format = values.text("format");
  if (format !== undefined) {
    const index = { schemaVersion: 2, ...described, ...(entries.length > 0 && { manifests: entries }) };
    runtime.stdout.write(`${render(format, { Name: fullName, Manifest: index }, name)}\n`);
    return 0;
  }
  const lines = [`Name:      ${fullName}`, `MediaType: ${mediaType}`, `Digest:    ${digest}`];
  if (entries.length > 0) lines.push("           ", "Manifests: ");
  for (const [at, entry] of entries.entries()) {
    if (at > 0) lines.push("             ");
    const { os, architecture, variant } = entry.platform ?? {};
    const platform = [os ?? "unknown", architecture ?? "unknown", ...(variant ? [variant] : [])].join("/");
    const repository = fullName.replace(/(@[^@]*|:[^:/]*)$/, "");
    lines.push(`  Name:        ${repository}@${entry.digest}`, `  MediaType:   ${entry.mediaType}`);
    lines.push(`  Platform:    ${platform}`);
    const annotations = Object.entries(entry.annotations ?? {}).sort(([one], [other]) =>
      one < other ? -1 : 1,
    );
    if (annotations.length > 0) lines.push("  Annotations: ");
    const width = Math.max(0, ...annotations.map(([key]) => key.length + 1));
    for (const [key, value] of annotations) lines.push(`    ${`${key}:`.padEnd(width)} ${value}`);
  }
  runtime.stdout.write(`${lines.join("\n")}\n`);
  return 0;
}

/** Renders the templates that scripts use. There are no others. */
function render(format: string, shown: { Name: string; Manifest: object }, name: string): string {
  const [, json, path] = /^\{\{\s*(json\s+)?\.([\w.]*)\s*\}\}$/.exec(format) ?? [];
  const known: Readonly<Record<string, unknown>> = {
    "": { name: shown.Name, manifest: shown.Manifest },
    Name: shown.Name,
    Manifest: shown.Manifest,
    "Manifest.Digest": "digest" in shown.Manifest ? shown.Manifest.digest : "",
    "Manifest.MediaType": "mediaType" in shown.Manifest ? shown.Manifest.mediaType : "",
  };
  const value = path === undefined || !Object.hasOwn(known, path) ? undefined : known[path];
  if (value === undefined || (json === undefined && typeof value !== "string"))
    throw usageError(
      `${name}: --format ${JSON.stringify(format)} is not supported`,
      "{{json .}}, {{json .Manifest}}, {{.Manifest.Digest}}, {{.Manifest.MediaType}} and {{.Name}} are; --raw prints the manifest.",
    );
  return json === undefined ? String(value) : JSON.stringify(value);
}
