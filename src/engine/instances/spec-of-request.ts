import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { EngineState } from "../state.ts";
import { type InstanceSpec, readInstanceSpec } from "./spec.ts";

/** Checks the request of a client in this process. */
export async function specOf(
  { host_files: hostFiles, earlier_image: earlier, mounts = [], ...request }: InstanceRequest,
  { database, layout }: Pick<EngineState, "database" | "layout">,
): Promise<InstanceSpec> {
  const listed = mounts.map((mount) => {
    if (!("host_files" in mount)) return mount;
    const { host_files: _, ...rest } = mount;
    return { ...rest, files: {} };
  });
  const spec = await readInstanceSpec({ ...request, mounts: listed }, database, layout);
  return {
    ...spec,
    ...(hostFiles && { hostFiles, earlier }),
    mounts: spec.mounts.map((mount, index) => {
      const given = mounts[index];
      return mount.type === "files" && given !== undefined && "host_files" in given
        ? { ...mount, hostFiles: given.host_files }
        : mount;
    }),
  };
}
