import { BoughError, DiskFullError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import type { OperationOutcome } from "../service.ts";
import { registryFailureIn, registryHint } from "./registry-hint.ts";

/** Returns the error of an import that has ended without an image. */
export function importError(
  url: string,
  { error, stderr, status, isDiskFull }: Pick<OperationOutcome, "error" | "stderr" | "status" | "isDiskFull">,
  isHere: boolean,
): BoughError {
  const reason = error ?? (stderr.text.trim() || `the operation ended as ${status}`);
  const message = `importing ${url} failed: ${reason}`;
  if (isDiskFull === true) return new DiskFullError(message, { hint: freeSpaceHint });
  return new BoughError(message, { hint: hintAfter(url, reason, isHere) });
}

const freeSpaceHint = wording`Free some space: ${{ command: "engine df" }} shows what the embedded engine uses, ${{ command: "engine prune" }} removes what is not needed.`;

/** `isHere`: the service is in this process, so its machine is the user's. */
function hintAfter(url: string, reason: string, isHere: boolean): Message {
  if (!isHere && /no space left/i.test(reason)) return freeSpaceHint;
  if (!url.startsWith("docker://")) return "Check the path and its contents.";
  const [, kind] = /^docker:\/\/docker\.io\/library\/(oci|dir):/.exec(url) ?? [];
  if (kind !== undefined && /manifest unknown|not found|denied/i.test(reason))
    return `No file or directory here has that name, so it was read as an image name; a path begins with / or ./, as in ${kind}:./PATH.`;
  const [registry = ""] = url.slice("docker://".length).split("/");
  const given = `bough images import ${url} --username NAME --password-stdin`;
  if (/no image found in (image index|manifest list)/i.test(reason))
    return wording`${{ command: "index inspect", words: [url.slice("docker://".length)] }} lists the platforms that it is for.`;
  const hint = registryHint(registry, registryFailureIn(reason), {
    login: isHere ? `docker login ${registry}, skopeo login ${registry}, or ${given}` : given,
    certificate: isHere ? "set SSL_CERT_FILE=FILE to trust it" : "the service must trust it",
  });
  return (
    hint ?? `Check the reference, and that ${isHere ? "this machine" : "the service"} can reach its registry.`
  );
}
