import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";
import type { BuildJob } from "../job.ts";
import {
  type FileFeatures,
  fileFeatures,
  instanceEntries,
  instanceFiles,
} from "../staging/request-fields.ts";
import { uploadStaged } from "../staging/upload.ts";
import type { RunMount, RunMounts } from "./run-mounts.ts";

/** Returns the request's fields for mounts, for a service with the extension `mounts`. Uploads their contents. */
export async function mountFields(
  { mounts, files }: RunMounts,
  env: Readonly<Record<string, string>>,
  build: BuildJob,
): Promise<Pick<InstanceRequest, "mounts" | "env">> {
  const ids = files.size === 0 ? new Map<string, string>() : await uploadStaged(files, build);
  const features = await fileFeatures(files, build);
  const agent = mounts.find(({ spec }) => spec.type === "ssh")?.spec.target;
  return {
    mounts: mounts.flatMap((mount) => instanceMount(mount, { ids, features }, build) ?? []),
    // BuildKit sets it with or without an agent.
    env: agent === undefined ? { ...env } : { SSH_AUTH_SOCK: agent, ...env },
  };
}

/** Returns `undefined` for a secret or agent that was not given. */
function instanceMount(
  { spec, source }: RunMount,
  { ids, features }: { ids: ReadonlyMap<string, string>; features: FileFeatures },
  { secrets }: BuildJob,
): InstanceMount | undefined {
  const { target } = spec;
  switch (spec.type) {
    case "bind": {
      const { readonly } = spec;
      if (source === undefined) throw new Error(`nothing to mount at ${target}`);
      if (source.kind === "image")
        return { type: "bind", target, image: source.image, source: spec.source, readonly };
      const entries = instanceEntries(source.files);
      const files = instanceFiles(source.files, ids, features);
      // The paths of links are always absolute: these begin at the target.
      for (const file of Object.values(files)) file.links &&= file.links.map((path) => `/${path}`);
      return { type: "bind", target, files, ...(Object.keys(entries).length > 0 && { entries }), readonly };
    }
    case "cache": {
      const { from: _, source: path, readonly, ...own } = spec;
      const image = source?.kind === "image" ? { image: source.image } : {};
      const place = path === "/" && source === undefined ? {} : { source: path };
      return { ...own, ...(readonly && { readonly }), ...image, ...place };
    }
    case "tmpfs":
      return { type: "tmpfs", target, ...(spec.size !== undefined && { size: spec.size }) };
    case "secret": {
      const value = secrets.values.get(spec.id);
      if (value === undefined) return undefined;
      const { id: _, required: __, env, isFile, ...own } = spec;
      const base64 = Buffer.from(value).toString("base64");
      return { ...own, value: base64, ...(!isFile && { isFile }), ...(env !== undefined && { env }) };
    }
    case "ssh": {
      const agent = secrets.agents.get(spec.id);
      const { id: _, required: __, ...own } = spec;
      return agent === undefined ? undefined : { ...own, agent };
    }
  }
}
