import { BoughError } from "../../errors.ts";
import { machineArchitecture } from "../system/machine.ts";
import type { ImportedConfig } from "./image-config.ts";

/** Refuses an image for another platform. `name`: the image's, for the message. */
export function requirePlatform(platform: ImportedConfig["platform"], name: string): void {
  const machine = machineArchitecture();
  const { os = "linux", architecture = machine } = platform;
  if (os === "linux" && architecture === machine) return;
  throw new BoughError(`${name} is an image for ${os}/${architecture}, and this machine is linux/${machine}`);
}
