import { octalMode } from "../../image/file-mode.ts";
import type { PlacedEntry } from "../copies/file-spec.ts";
import { hideSecrets } from "../processes/hidden-secrets.ts";
import type { Image } from "../records/images.ts";
import type { InstanceSpec } from "./spec.ts";

/** A command's working directory if neither the request nor the image has one; the service's default. */
const defaultDirectory = "/root";

export function workingDirectoryOf(
  spec: Pick<InstanceSpec, "cwd" | "ignoresConfig">,
  { config }: Image,
): string {
  return spec.cwd ?? (spec.ignoresConfig ? undefined : config.WorkingDir) ?? defaultDirectory;
}

/** Describes the request for the response and the operation's record, without the standard input, which may be long or secret. */
export function describeRequest(spec: InstanceSpec, image: Image): Record<string, unknown> {
  return {
    ...hideSecrets(spec),
    shell: spec.shell,
    image: spec.image,
    cwd: workingDirectoryOf(spec, image),
    uid: spec.uid ?? 0,
    ...(spec.gid === undefined ? {} : { gid: spec.gid }),
    hostname: spec.hostname,
    disposable: spec.disposable,
    preserve_env: spec.preserveEnv,
    networking: { enabled: spec.network !== "none", ...(spec.network === "host" ? { mode: "host" } : {}) },
    ...(spec.extraHosts.length === 0 ? {} : { extra_hosts: spec.extraHosts }),
    ...(spec.hasReadonlyNetworkFiles ? { readonly_network_files: true } : {}),
    resources_limits: spec.limits,
    timeout: spec.timeoutSeconds,
    truncate_output_at: spec.truncateOutputAt,
    ...(spec.terminal === undefined ? {} : { terminal: spec.terminal }),
    files: Object.fromEntries(
      spec.files.map(({ destination, uuid, uid, gid, mode, mtime, attributes, replaces }) => [
        destination,
        {
          uuid,
          uid,
          gid,
          mode: octalMode(mode),
          ...(mtime === undefined ? {} : { mtime }),
          ...(attributes === undefined ? {} : { attributes }),
          ...(replaces === undefined ? {} : { replaces }),
        },
      ]),
    ),
    ...(spec.lentFiles === undefined ? {} : { lent_files: spec.lentFiles }),
    ...(spec.entries.length === 0 ? {} : { entries: Object.fromEntries(spec.entries.map(describeEntry)) }),
    ...(spec.copies.length === 0 ? {} : { copies: spec.copies.map(({ request }) => request) }),
    ...(spec.mounts.length === 0 ? {} : { mounts: spec.mounts.map(({ request }) => request) }),
  };
}

function describeEntry({ path, ...entry }: PlacedEntry): [string, Record<string, unknown>] {
  if (entry.type === "symlink" || entry.mode === undefined) return [path, entry];
  return [path, { ...entry, mode: octalMode(entry.mode) }];
}
