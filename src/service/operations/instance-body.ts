import type { InstanceBody, InstanceRequest } from "../wire/instance.ts";
import type { InstanceMount } from "../wire/mount.ts";

/** Returns the request's body, with bytes as base64. */
export function instanceBody({ host_files, earlier_image: _, ...request }: InstanceRequest): InstanceBody {
  if (host_files !== undefined) throw new Error("files of this machine are for a service in this process");
  const { stdin, mounts, truncate_output_at: limit, ...rest } = request;
  return {
    ...rest,
    ...(mounts && { mounts: mounts.map(mountBody) }),
    ...(limit !== undefined && { truncate_output_at: limit }),
    ...(stdin && { stdin: inputBody(stdin) }),
  };
}

function mountBody(mount: InstanceMount): InstanceMount<string> {
  return mount.type === "secret" ? { ...mount, value: base64Of(mount.value.reveal()) } : mount;
}

function inputBody({
  bytes,
  ...rest
}: NonNullable<InstanceRequest["stdin"]>): NonNullable<InstanceBody["stdin"]> {
  const value = base64Of(bytes);
  return { value, encoding: value === "" ? "ascii" : "base64", ...rest };
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
