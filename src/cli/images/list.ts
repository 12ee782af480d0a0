import { scopeOfTag } from "../../builder/scopes/scope-name.ts";
import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import type { ImageRecord } from "../../service/wire/image.ts";
import type { Store } from "../../store/store.ts";
import { type Cell, sizeCell, type Table, withoutEmptyColumns } from "../../terminal/table.ts";
import { command, type Surroundings } from "../command-line/command.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { listParsers } from "../command-line/option-values.ts";
import { type OptionsOf, readOptions } from "../command-line/options.ts";
import { printed } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";

const listDefinitions = {
  name: {
    type: "positional",
    required: false,
    completes: "tag",
    description: "Only this image: NAME for all of its tags, or NAME:TAG",
  },
  all: {
    type: "boolean",
    alias: "a",
    description:
      "List every image, also those of a build's layers (default: those with a tag, and each session's newest)",
  },
  tag: {
    type: "string",
    completes: "tag",
    valueHint: "PREFIX",
    description: "Only images with a tag that begins with PREFIX",
  },
  tagged: { type: "boolean", description: "Only images with a tag" },
  since: {
    type: "string",
    valueHint: "WHEN",
    description: "Only images made since a date, or an age such as 24h or 7d",
  },
  until: { type: "string", valueHint: "WHEN", description: "Only images made until a date or an age" },
  limit: { type: "string", alias: "n", valueHint: "N", description: "Only the first N (default: all)" },
} as const satisfies ArgumentDefinitions;

export const list = command({
  name: "list",
  description: "List the images that have a tag and the newest of each session, the newest first.",
  args: listDefinitions,
  needs: "service",
  run: printed(({ values, ...surroundings }) => {
    const options = readOptions(values, listDefinitions, listParsers(surroundings.runtime.clock));
    return listImages({ ...options, name: values.positionals[0] }, surroundings);
  }),
  foreign: async () => (await import("../foreign/image-options.ts")).foreignImagesOptions,
  examples: [
    ["images", "the results of builds and sessions"],
    ["images app", "all tags of `app`"],
    ["images --all --wide", "also every layer's image, with full ids and times"],
    ["images --tag app: --since 7d", "the tags of `app` of the last week"],
    ["images --tagged -f json", "as JSON, for other programs"],
  ],
  agentNote: "An image with several tags has a line for each. -q prints UUIDs and nothing else.",
});

/** An image under one of its tags, and the sessions whose image it is. */
type ImageWithSessions = ImageRecord & { sessions: string[] };

type ListRequest = OptionsOf<typeof listDefinitions, ReturnType<typeof listParsers>>;

/** @param options.name NAME for all of its tags, or NAME:TAG */
export async function listImages(
  { name, all = false, tagged = false, since, until, limit, ...options }: ListRequest,
  surroundings: Surroundings,
) {
  const { globals } = surroundings;
  const tag = options.tag ?? (name === undefined ? undefined : tagPrefix(name));
  const isExplicit = all || tag !== undefined;
  await using connection = await connect(surroundings);
  const { service, store } = connection;
  const sessions = sessionsByImage(store);
  const filter = { sizes: !globals.quiet, ...{ tag, since, until } };
  const found =
    isExplicit || tagged
      ? await service.listImages({ ...filter, tagged })
      : await listDefaultImages(service, filter, [...sessions.keys()]);
  if (service.capabilities.lacks("imageList"))
    throw new BoughError(`${service.address} does not support listing images`);
  const images = found
    .map((image): ImageWithSessions => ({ ...image, sessions: sessions.get(image.uuid) ?? [] }))
    .filter((image) => isExplicit || isListedByDefault(image))
    .filter((image) => name === undefined || image.tag === name || image.tag?.startsWith(`${name}:`))
    .sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at))
    .slice(0, limit);
  return {
    id: [...new Set(images.map(({ uuid }) => uuid))],
    json: images.map(
      ({ uuid, created_at, operation_uuid = null, size = null, own_size = null, ...image }) => ({
        ...{ uuid, tag: image.tag, created_at, operation_uuid, size, own_size, sessions: image.sessions },
        ...{ missing_layers: image.missing_layers ?? 0, missing_bytes: image.missing_bytes ?? 0 },
        platform: image.platform ?? null,
      }),
    ),
    table: () => tableOf(images, globals),
  };
}

/** Returns the common prefix of a name's tags. */
function tagPrefix(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1).includes(":") ? name : `${name}:`;
}

/** The maximum number of UUIDs in a request, whose URL must not be too long. */
const maxUuids = 100;

/**
 * Lists the images that have a tag, and those of sessions. Most stored images belong to steps: the engine would compute their sizes for
 * nothing.
 */
async function listDefaultImages(
  service: Service,
  filter: Parameters<Service["listImages"]>[0],
  ofSessions: readonly string[],
): Promise<ImageRecord[]> {
  if (!(await service.capabilities.extensions()).has("image-uuids")) return service.listImages(filter);
  const requests = [service.listImages({ ...filter, tagged: true })];
  for (let at = 0; at < ofSessions.length; at += maxUuids)
    requests.push(service.listImages({ ...filter, uuids: ofSessions.slice(at, at + maxUuids) }));
  const listed = (await Promise.all(requests)).flat();
  return [...new Map(listed.map((image) => [`${image.uuid} ${image.tag}`, image])).values()];
}

/** True for images that are listed by default: not for those with the index of a cache scope, which `bough cache list` shows. */
function isListedByDefault({ tag, sessions }: ImageWithSessions): boolean {
  return tag === null ? sessions.length > 0 : scopeOfTag(tag) === undefined;
}

/**
 * Returns the sessions that use an image, by image. A session uses the head of its active branch, else the newest image of its build.
 */
function sessionsByImage({ sessions, branches }: Store): Map<string, string[]> {
  const keys = new Map<string, string[]>();
  for (const { key, image: newest } of sessions.list("")) {
    const image = branches.head(key)?.image ?? newest;
    if (image !== null) keys.getOrInsert(image, []).push(key);
  }
  return keys;
}

/** Returns the table. Empty columns are left out for people, as a service may not report sizes, and sessions may not use the images. */
function tableOf(images: readonly ImageWithSessions[], { wide, format }: Surroundings["globals"]): Table {
  const isMixed = new Set(images.map(({ platform }) => platform)).size > 1;
  const isForPeople = format === "table";
  const table = {
    header: ["IMAGE", "TAG", "PLATFORM", "SESSION", "SIZE", "OWN", "TO FETCH", "CREATED"],
    rows: images.map((image): Cell[] => [
      { id: image.uuid },
      image.tag === null ? null : { whole: image.tag },
      isMixed || !isForPeople ? (image.platform ?? null) : null,
      image.sessions.join(" ") || null,
      sizeCell(image.size),
      // What no other image with a tag has.
      wide || !isForPeople ? sizeCell(image.own_size) : null,
      sizeCell(image.missing_bytes),
      { time: image.created_at },
    ]),
  };
  return isForPeople ? withoutEmptyColumns(table, ["IMAGE", "TAG", "CREATED"]) : table;
}
