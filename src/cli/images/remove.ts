import { BoughError, messageOf } from "../../errors.ts";
import { isDigest } from "../../image/digest.ts";
import { sizeCell } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { formats } from "../command-line/globals.ts";
import { printResult } from "../command-line/result.ts";
import {
  imageDescription,
  imagesOfTag,
  isIdPrefix,
  resolveRemovedImage,
  tagsOf,
} from "../references/image-argument.ts";
import { workingBranchesOf } from "../references/working-branch.ts";
import { type Connection, connect } from "../service/connection.ts";

export const remove = command({
  name: "remove",
  description: "Remove images with their tags; layers that other images need stay.",
  args: {
    image: {
      type: "positional",
      completes: "image",
      required: true,
      multiple: true,
      description: `${imageDescription}. Of an image with several tags, a tag removes only itself`,
    },
    force: {
      type: "boolean",
      alias: "f",
      yields: { to: "format", before: formats },
      description: "Also remove an image that a session uses, and by its UUID an image with several tags",
    },
  },
  needs: "service",
  run: removeImages,
  foreign: async () => (await import("../foreign/image-options.ts")).foreignRmiOptions,
  examples: [
    ["images remove app:dev", "the tag, and the image if that was its last tag"],
    ["rmi 0d0f6a54 3c1be2aa", "by the first digits of their UUIDs"],
  ],
  agentNote:
    "This command is mutating. Other layers of the same build stay cached: `bough engine prune` removes what is not needed.",
});

interface Removal {
  image: string;
  untagged: string[];
  removed: boolean;
  freedBytes: number;
  /** The size of layers that are kept as a cache for builds. */
  cachedBytes: number;
}

async function removeImages(invocation: Invocation): Promise<void> {
  const { values, runtime, log } = invocation;
  await using connection = await connect(invocation);
  const removals: Removal[] = [];
  const problems: string[] = [];
  for (const reference of values.positionals) {
    try {
      removals.push(...(await removeNamed(reference, values.flag("force"), connection)));
    } catch (error) {
      if (values.positionals.length === 1 || runtime.signal.aborted) throw error;
      problems.push(messageOf(error));
    }
  }
  printResult(invocation, {
    id: removals.map(({ image }) => image),
    json: removals,
    table: () => ({
      header: ["IMAGE", "UNTAGGED", "FREED", "CACHED"],
      rows: removals.map(({ image, untagged, removed, freedBytes, cachedBytes }) => [
        { id: image },
        untagged.join(" ") || null,
        removed ? sizeCell(freedBytes) : { shown: "the image stays: it has other tags", value: null },
        cachedBytes === 0 ? { shown: "-", value: 0 } : sizeCell(cachedBytes),
      ]),
    }),
  });
  if (removals.some(({ cachedBytes }) => cachedBytes > 0))
    log.info(
      "cached layers stay for later builds: `bough engine prune` removes what no build needs any more",
    );
  if (problems.length > 0) throw new BoughError(problems.join("\n"));
}

/** Removes the images of a reference: a tag may name an image for each platform. */
async function removeNamed(reference: string, isForced: boolean, connection: Connection): Promise<Removal[]> {
  const { service } = connection;
  if (!(await service.capabilities.extensions()).has("image-removal")) {
    // A service without a list of images has only the calls that a build needs, which don't include the removal of tags.
    await service.findImage(reference);
    const canUntag = !service.capabilities.lacks("imageList");
    throw new BoughError(`${service.address} does not support removing images`, {
      hint: canUntag ? "`bough untag TAG` removes a tag." : undefined,
    });
  }
  const image = await resolveRemovedImage(connection, reference);
  const tags = await tagsOf(image, connection);
  const name = reference.replace(/^tag:/, "");
  const named = tags.find((tag) => tag === name || tag === `${name}:latest`);
  const images = named === undefined ? [image] : await imagesOfTag(named, image, connection);
  const removals: Removal[] = [];
  for (const each of images)
    removals.push(await removeOne({ image: each, reference, named }, isForced, connection));
  return removals;
}

/** Removes a tag, as `docker rmi` does, and the image with its last tag. */
async function removeOne(
  { image, reference, named }: { image: string; reference: string; named: string | undefined },
  isForced: boolean,
  connection: Connection,
): Promise<Removal> {
  const { service, store } = connection;
  const tags = await tagsOf(image, connection);
  if (named !== undefined && tags.length > 1) {
    await service.removeTag(image, named);
    return { image, untagged: [named], removed: false, freedBytes: 0, cachedBytes: 0 };
  }
  if (!isForced && tags.length > 1 && (isDigest(reference) || isIdPrefix(image, reference))) {
    throw new BoughError(`image ${reference} has several tags: ${tags.join(", ")}`, {
      hint: "Remove them one by one, or all of them with the image: --force.",
    });
  }
  const user = isForced ? undefined : workingBranchesOf(image, store)[0];
  if (user !== undefined) {
    throw new BoughError(
      `image ${reference} is used by session ${user.session} on its branch ${user.branch}`,
      {
        hint: `\`bough session delete ${user.session}\` deletes the session; --force removes the image anyway.`,
      },
    );
  }
  const amounts = await service.removeImage(image);
  store.sessions.forgetImages([image]);
  store.forgetImages([image]);
  return { image, untagged: tags, removed: true, ...amounts };
}
