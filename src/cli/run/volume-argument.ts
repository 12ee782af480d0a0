/** `--volume DIR:PATH[:ro]`: mounts directories of this machine, instead of copying them. */
import { resolve } from "node:path";
import { usageError } from "../../errors.ts";
import type { ImageService } from "../../service/service.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";

const example = "For example -v ./src:/src, or -v ./src:/src:ro for read-only.";

/** Parses docker's syntax, except that DIR may be relative: there are no named volumes. */
export function parseVolume(text: string, workingDirectory: string): InstanceMount {
  const [, source = "", target = "", option] = /^(.+?):([^:]+)(?::([^:]*))?$/.exec(text) ?? [];
  if (source === "") throw usageError(`--volume takes DIR:PATH[:ro], not ${JSON.stringify(text)}`, example);
  if (!target.startsWith("/"))
    throw usageError(
      `--volume ${text}: ${JSON.stringify(target)} is not an absolute path in the image`,
      example,
    );
  if (option !== undefined && option !== "ro" && option !== "rw")
    throw usageError(
      `--volume ${text}: unknown option ${JSON.stringify(option)}: expected ro or rw`,
      example,
    );
  return { type: "host", source: resolve(workingDirectory, source), target, readonly: option === "ro" };
}

/** Throws if the service is remote: it can't mount directories of this machine. */
export async function requireVolumes(
  service: Pick<ImageService, "address" | "capabilities">,
  volumes: readonly InstanceMount[],
): Promise<void> {
  if (volumes.length === 0 || (await service.capabilities.extensions()).has("host-mounts")) return;
  throw usageError(
    `${service.address} cannot mount directories of this machine`,
    "--file DIR:PATH copies it into the image; bough's own engine (--local) supports --volume.",
  );
}
