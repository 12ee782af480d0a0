import { BoughError } from "../../errors.ts";
import type { ImageConfig } from "../../image/config.ts";
import type { Service } from "../../service/client.ts";
import { isUuid } from "../../service/images/reference.ts";
import { withLatest } from "../../service/images/tag.ts";
import type { Store } from "../../store/store.ts";
import { nearest } from "../../suggest.ts";

/** The image that a user names: a UUID, `tag:NAME`, or a bare tag. Returns what the service's calls take. */
export async function resolveImageArgument(service: Service, reference: string): Promise<string> {
  const found = await service.findImage(reference);
  if (found === "unsupported") return `tag:${withLatest(reference.replace(/^tag:/, ""))}`;
  if (found !== undefined) return found.uuid;
  throw new BoughError(`${service.address} has no image ${reference}`, {
    hint: await hintFor(service, reference),
  });
}

/** An image that is to leave the service: with its configuration, and the tag that it was named by. */
export async function resolveExportedImage(
  service: Service,
  reference: string,
): Promise<{ uuid: string; config: ImageConfig; tag: string | undefined }> {
  const found = await service.findImage(reference);
  const name = reference.replace(/^tag:/, "");
  const tag = isUuid(reference) ? undefined : withLatest(name);
  if (found !== undefined && found !== "unsupported")
    return { uuid: found.uuid, config: found.config ?? {}, tag };
  return { uuid: await resolveImageArgument(service, reference), config: {}, tag };
}

/** The session's own image. */
export function requireSessionImage(store: Store, key: string): string {
  const head = store.branches.head(key);
  if (head !== undefined) return head.image;
  const branch = store.branches.active(key);
  const hasOthers = store.branches.list(key).length > 0;
  throw new BoughError(`session ${key} has no image${hasOthers ? ` on its branch ${branch}` : ""}`, {
    hint: hasOthers
      ? `\`bough -S ${key} session checkout BRANCH\` goes to another branch; \`bough -S ${key} use IMAGE\` starts this one.`
      : `\`bough -S ${key} use IMAGE\` gives it one; \`bough images\` lists those there are.`,
  });
}

async function hintFor(service: Service, reference: string): Promise<string> {
  const images = await service.listImages({ tagged: true });
  const tags = images.flatMap(({ tag }) => tag ?? []);
  const name = reference.replace(/^tag:/, "");
  const guess = tags.find((tag) => tag.startsWith(`${name}:`)) ?? nearest(name, tags);
  return guess === undefined
    ? "`bough images` lists those it has; `bough images import REFERENCE` brings one from a registry."
    : `Did you mean ${guess}?`;
}
