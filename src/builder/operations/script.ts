import type { ImageService } from "../../service/service.ts";
import type { InstanceRequest, NetworkMode } from "../../service/wire/instance.ts";
import { ownOperationNetwork } from "../commands/network.ts";

/** Linux takes arguments of up to 128 KiB. */
const maxArgumentBytes = 100 * 1024;

interface ScriptOptions {
  /** A path that the image lacks, for a script that is too long for an argument. */
  place: string;
  service: Pick<ImageService, "uploadStream">;
  network: NetworkMode;
  timeoutSeconds: number;
}

/**
 * Returns the fields that run a script of bough's own as root. It uses only fields that the specification names: a service that
 * ignored standard input would run nothing, and say that it had succeeded.
 */
export async function scriptFields(
  script: string,
  placed: Pick<InstanceRequest, "files" | "entries" | "copies">,
  { place, service, network, timeoutSeconds }: ScriptOptions,
): Promise<Omit<InstanceRequest, "image">> {
  const fields = {
    command: "sh",
    shell: false,
    cwd: "/",
    ...placed,
    timeout: timeoutSeconds,
    disposable: false,
    ...ownOperationNetwork(network),
  };
  if (Buffer.byteLength(script) <= maxArgumentBytes) return { ...fields, args: ["-c", script] };
  const file = new Blob([`rm -f ${place}\n${script}`]);
  const { uuid } = await service.uploadStream(() => file.stream(), { contentLength: file.size });
  const files = { ...placed.files, [place]: { uuid, uid: 0, gid: 0, mode: "0600" } };
  return { ...fields, args: ["-c", `. ${place}`], files };
}
