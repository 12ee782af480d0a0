import { resolve } from "node:path";
import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { colonAfterPath } from "../../paths/local-path.ts";
import type { ImageService } from "../../service/service.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";

/** A parsed `--file` option. */
export interface FileArgument {
  /** The path as given. */
  host: string;
  /** The path in the instance: absolute, or relative to the command's working directory. */
  path: string | undefined;
  uid: number;
  gid: number;
  /** `undefined` if each file keeps its own mode. */
  mode: number | undefined;
}

/** Parses `host[:path][:uN][:gN][:mMODE]`. The host's path ends at the first colon. */
export function parseFileArgument(text: string): FileArgument {
  let rest = text;
  const found = new Map<string, string>();
  for (;;) {
    const option = /:(?:([ug])(\d{1,10})|(m)([0-7]{3,4}))$/.exec(rest);
    if (option === null) break;
    found.set(option[1] ?? option[3] ?? "", option[2] ?? option[4] ?? "");
    rest = rest.slice(0, option.index);
  }
  const colon = colonAfterPath(rest);
  const host = colon < 0 ? rest : rest.slice(0, colon);
  const path = colon < 0 ? undefined : rest.slice(colon + 1);
  // An invalid mode such as 999 is not taken as part of the path.
  if (host === "" || path === "" || /:[ugm]\d+$/.test(rest)) {
    throw usageError(
      wording`${{ option: "file" }} takes HOST[:PATH][:uN][:gN][:mMODE], not ${JSON.stringify(text)}`,
      wording`For example ${{ option: "file" }} ./app.conf:/etc/app.conf:u1000:m0644, or ${{ option: "file" }} ./src for a whole directory.`,
    );
  }
  const mode = found.get("m");
  return {
    host,
    path,
    uid: Number(found.get("u") ?? 0),
    gid: Number(found.get("g") ?? 0),
    mode: mode === undefined ? undefined : Number.parseInt(mode, 8),
  };
}

/** `--volume DIR:PATH[:ro]`: mounts directories of this machine, instead of copying them. */

const example = "For example -v ./src:/src, or -v ./src:/src:ro for read-only.";

/** Parses docker's syntax, except that DIR may be relative: there are no named volumes. */
export function parseVolume(text: string, workingDirectory: string): InstanceMount {
  const colon = colonAfterPath(text);
  const source = text.slice(0, Math.max(colon, 0));
  const [, target = "", option] = /^([^:]+)(?::([^:]*))?$/.exec(text.slice(colon + 1)) ?? [];
  if (source === "" || target === "")
    throw usageError(
      wording`${{ option: "volume" }} takes DIR:PATH[:ro], not ${JSON.stringify(text)}`,
      example,
    );
  if (!target.startsWith("/"))
    throw usageError(
      wording`${{ option: "volume" }} ${text}: ${JSON.stringify(target)} is not an absolute path in the image`,
      example,
    );
  if (option !== undefined && option !== "ro" && option !== "rw")
    throw usageError(
      wording`${{ option: "volume" }} ${text}: unknown option ${JSON.stringify(option)}: expected ro or rw`,
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
    wording`${{ option: "file" }} DIR:PATH copies it into the image; bough's own engine (--local) supports ${{ option: "volume" }}.`,
  );
}
