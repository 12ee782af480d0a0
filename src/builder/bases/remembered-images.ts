/** Images that this machine has imported or tagged, by their names: for references that a service cannot be asked for. */
import { parseReference } from "../../service/images/reference.ts";
import { withLatest } from "../../service/images/tag.ts";
import { isTag } from "../../service/wire/image.ts";
import type { Store } from "../../store/store.ts";
import type { ServiceSupport } from "../service-support.ts";

type Memory = Pick<Store, "imports">;

export function rememberImage(reference: string, image: string, { imports }: Memory): void {
  imports.set(nameOf(reference), image);
}

export function recallImage(reference: string, { imports }: Memory): string | undefined {
  // Earlier versions of bough noted references as they were written.
  return imports.get(nameOf(reference)) ?? imports.get(reference);
}

/** Remembers the image of a tag that was just set, on a service without a list of images. Any other one finds it by the tag. */
export function rememberTag(
  tag: string,
  image: string,
  { supports, store }: { supports: Pick<ServiceSupport, "imageList">; store: Memory },
): void {
  if (!supports.imageList()) rememberImage(tag, image, store);
}

/** Returns the same name for all spellings of a reference. A `docker://` address means the registry's image, whatever has its tag. */
function nameOf(reference: string): string {
  if (isTag(reference)) return withLatest(reference.replace(/^tag:/, ""));
  const parsed = parseReference(reference);
  return parsed.kind === "registry" ? parsed.url : reference;
}
