import { requirePlatforms } from "../../builder/bases/base.ts";
import { rememberImage, rememberTag } from "../../builder/cache/image-records.ts";
import { supportOf } from "../../builder/service-support.ts";
import { BoughError, messageOf, usageError } from "../../errors.ts";
import { parsePlatform } from "../../image/platform.ts";
import type { Service } from "../../service/client.ts";
import { takesTag } from "../../service/images/reference.ts";
import type { ImageImport } from "../../service/service.ts";
import { formatCount } from "../../terminal/quantity.ts";
import { askSecret, canAsk, readSecretLine } from "../auth/secret.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { timeoutOption } from "../command-line/definitions.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { readPlatform } from "../references/image-argument.ts";
import { isEmbedded } from "../service/choice.ts";
import { connect } from "../service/connection.ts";
import { credentialsDefinition, mirrorDefinition, registryOptions } from "../service/registry-definitions.ts";
import { readCredentials } from "../service/registry-options.ts";
import {
  asStandardInput,
  expandArchive,
  type ImportReference,
  importWithProgress,
  readReferences,
} from "./import-references.ts";
import { isStandardInputArchive, readInputArchive } from "./input-archive.ts";

export const importCommand = command({
  name: "import",
  description: "Import images, so that FROM finds them. Local transports work on the embedded engine.",
  args: {
    reference: {
      type: "positional",
      completes: "named-file",
      required: true,
      multiple: true,
      description: "What to import: alpine:3.20, docker://host/app:1, oci:/path:tag, ...",
    },
    tag: {
      type: "string",
      completes: "tag",
      refusesEmpty: true,
      valueHint: "NAME[:TAG]",
      description: "Tag of the new image, for a single REFERENCE (default: the reference's own)",
    },
    username: {
      type: "string",
      refusesEmpty: true,
      valueHint: "NAME",
      description: "User name for the registry; the password is asked for",
    },
    creds: credentialsDefinition,
    ...registryOptions,
    "registry-mirror": mirrorDefinition,
    platform: {
      type: "string",
      refusesEmpty: true,
      valueHint: "PLATFORM",
      description: "Platform to import, such as linux/arm64 (default: the service's own)",
    },
    "password-stdin": { type: "boolean", description: "Read the password from standard input" },
    timeout: timeoutOption("Seconds that each import may take (default: 1800)"),
  },
  needs: "service",
  run: importImages,
  foreign: async () => (await import("../foreign/image-options.ts")).foreignImportOptions,
  examples: [
    ["images import alpine:3.20 debian:12", "from the public registry"],
    [
      "images import registry.example/team/app:1 --username me --password-stdin < password",
      "with credentials",
    ],
    [
      "images import oci:./layout:latest --tag base:1",
      "from a local OCI image layout, on the embedded engine",
    ],
    ["images import docker-archive:- < app.tar", "from standard input, as `docker load` does"],
  ],
  agentNote:
    "This command is mutating: it stores images and sets tags. A name moves if another image has it, as with docker load and docker pull; a tag that is made of a path does not.",
});

interface ImportedImage {
  image: string;
  tag: string | null;
}

async function importImages(invocation: Invocation): Promise<void> {
  const { values, runtime, log } = invocation;
  const { positionals } = values;
  const read = (words: readonly string[]) =>
    readReferences({ positionals: words, tagOption: values.text("tag") }, runtime.workingDirectory);
  const named = read(positionals);
  checkCredentials(invocation);
  requireEngine(invocation);
  const platform = readPlatform(values.text("platform"));
  const timeoutSeconds = positiveInteger(values.text("timeout"), "--timeout") ?? 1800;
  using files = new DisposableStack();
  const given = await Promise.all(
    named.map(async (reference, at) => {
      const text = positionals[at] ?? "";
      if (!isStandardInputArchive(text)) return reference;
      const [found] = read([await readInputArchive(text, runtime, files)]);
      return found === undefined ? reference : asStandardInput(found, text);
    }),
  );
  await using connection = await connect(invocation);
  const { service, store } = connection;
  if (platform !== undefined) await requirePlatforms([parsePlatform(platform)], supportOf(service));
  const references = (await Promise.all(given.map((each) => expandArchive(each, invocation)))).flat();
  const credentials = await askCredentials(invocation);
  /** Imports an image, sets its tags, and logs which tags another image had before. */
  const importTagged = async (reference: ImportReference): Promise<ImportedImage[]> => {
    const { url, shown } = reference;
    const chosen = await chooseTags(reference, service, platform);
    const [first, ...others] = chosen.filter(({ staysWithHolder: stays }) => !stays);
    const tag = first?.tag;
    const image = await importWithProgress(
      { url, shown, tag, platform, timeoutSeconds, credentials },
      service,
      invocation,
    );
    if (url.startsWith("docker://")) rememberImage(url, image, store, platform);
    if (tag !== undefined) rememberTag(tag, image, store);
    for (const other of others) await service.tagImage(image, other.tag);
    for (const { tag, holder, staysWithHolder: stays } of chosen) {
      if (holder === undefined || holder === image) continue;
      if (stays) log.warn(`${tag} stays with ${holder}; \`bough tag ${image} ${tag}\` moves it`);
      else log.info(`${tag} was image ${holder}: \`bough tag ${holder} ${tag}\` moves it back`);
    }
    const set = chosen.filter(({ staysWithHolder: stays, holder }) => !stays || holder === image);
    return set.length === 0 ? [{ image, tag: null }] : set.map(({ tag }) => ({ image, tag }));
  };
  const imported: ImportedImage[] = [];
  const failures: string[] = [];
  for (const reference of references) {
    runtime.signal.throwIfAborted();
    try {
      imported.push(...(await importTagged(reference)));
    } catch (error) {
      if (references.length === 1 || runtime.signal.aborted) throw error;
      log.error(messageOf(error));
      failures.push(reference.url);
    }
  }
  for (const { image } of imported) await connection.requireKept(image);
  printResult(invocation, {
    id: imported.map(({ image }) => image),
    json: imported.length === 1 && given.length === 1 ? imported[0] : imported,
    table: () => ({
      header: ["IMAGE", "TAG"],
      rows: imported.map(({ image, tag }) => [{ whole: image }, tag === null ? null : { whole: tag }]),
    }),
  });
  if (failures.length === 0) return;
  throw new BoughError(
    `${formatCount(failures.length, "import")} of ${references.length} failed: ${failures.join(", ")}`,
  );
}

/**
 * A tag for the new image. It moves from its `holder`, as with `docker load` and `docker pull`, unless it is made of a path: then it
 * stays with the holder.
 */
interface ChosenTag {
  tag: string;
  holder: string | undefined;
  staysWithHolder: boolean;
}

/** Chooses the tags of an image: those that the service accepts, or the one of `--tag`. */
async function chooseTags(
  { tags, tagsFrom }: Pick<ImportReference, "tags" | "tagsFrom">,
  service: Service,
  platform: string | undefined,
): Promise<ChosenTag[]> {
  const chosen: ChosenTag[] = [];
  for (const tag of tags) {
    if (tagsFrom !== "option" && !(await takesTag(tag, service.capabilities))) continue;
    const holder = await findHolder(tag, service, platform);
    chosen.push({ tag, holder, staysWithHolder: tagsFrom === "path" && holder !== undefined });
  }
  return chosen;
}

/** Returns the image that would lose the tag. A tag may name an image for each platform. */
async function findHolder(
  tag: string,
  service: Service,
  platform: string | undefined,
): Promise<string | undefined> {
  const own = (await supportOf(service).platforms()) ? await service.capabilities.platform() : undefined;
  const wanted = platform ?? own;
  const found = await service.findImage(tag, wanted);
  if (found === undefined || found === "unsupported") return undefined;
  const isOther = wanted !== undefined && found.platform !== undefined && found.platform !== wanted;
  return isOther ? undefined : found.uuid;
}

/** Throws for options that only the engine supports: a service fetches images and checks certificates by itself. */
function requireEngine({ values, runtime, globals }: Invocation): void {
  if (isEmbedded(runtime, globals)) return;
  const archive = values.positionals.find(isStandardInputArchive);
  if (archive !== undefined)
    throw usageError(
      `${archive}: only bough's own engine on this machine reads an archive from standard input`,
      "Give a service the name that the image has in a registry.",
    );
  const option = ["authfile", "tls-verify", "retry", "registry-mirror"].find(
    (name) => values.text(name) !== undefined,
  );
  if (option === undefined) return;
  throw usageError(
    `--${option}: only bough's own engine on this machine imports with it`,
    "--username NAME gives a service credentials.",
  );
}

/** Checks that the password can be read: it is never an argument, which every process of the machine could read. */
function checkCredentials({ values, runtime }: Invocation): void {
  const username = values.text("username");
  const isPiped = values.flag("password-stdin");
  if (username === undefined && isPiped) {
    throw usageError("--password-stdin needs --username");
  }
  if (username === undefined || isPiped || canAsk(runtime)) return;
  throw usageError(
    `there is no terminal to ask for the password of ${username}`,
    "Pipe it in: bough images import ... --username NAME --password-stdin < file",
  );
}

async function askCredentials({ values, runtime }: Invocation): Promise<ImageImport["credentials"]> {
  const given = readCredentials(values);
  if (given !== undefined) return given;
  const username = values.text("username");
  if (username === undefined) return undefined;
  const password = values.flag("password-stdin")
    ? await readSecretLine(runtime, "--password-stdin")
    : await askSecret(runtime, `Password of ${username}`);
  if (password === undefined) throw usageError("no password was given");
  return { username, password };
}
