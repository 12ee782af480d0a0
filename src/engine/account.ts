import { constants, rmSync } from "node:fs";
import { join } from "node:path";
import { machinePlatform } from "../image/platform.ts";
import { maxTimeout } from "../programs/helper.ts";
import type { EngineState } from "./state.ts";
import { deviceNumber, makeNode } from "./system/xattrs.ts";

/** Describes what clients of the engine may do, and what the engine can do. */
export function accountOf(state: EngineState) {
  return {
    permissions,
    maxTimeoutSeconds: maxTimeout,
    /** Not in the API: the platform that `FROM --platform` and TARGETARCH refer to. */
    platform: machinePlatform(),
    /** Not in the API: names of what the engine can do beyond it. */
    extensions: [
      ...extensions,
      ...(canMakeDevices(state) ? ["devices"] : []),
      ...(state.isServer ? [] : localExtensions),
    ],
  };
}

/** Everything is allowed to a client that can reach the engine. */
const permissions = {
  import: true,
  spawn: true,
  spawn_disposable: true,
  list: true,
  cancel: true,
  set_image_tag: true,
};

/** Names of the engine's extensions of the public API. */
const extensions: readonly string[] = [
  // `GET /v1/images` lists every image, also by UUID: an image that is not listed does not exist.
  "image-list",
  // `copies` and an empty `command` in `POST /v1/instances`, and `POST /v1/inspect/{image}/digest`.
  "copies",
  // `entries` in `POST /v1/instances`: directories and links that are made before the files are copied.
  "entries",
  // `mounts` in `POST /v1/instances`.
  "mounts",
  // `generation` and `realm` in mounts of type `cache`.
  "cache-generations",
  // `readonly_network_files` in `POST /v1/instances`.
  "readonly-network-files",
  // `extra_hosts` in `POST /v1/instances`: further lines of `/etc/hosts`.
  "extra-hosts",
  // `scratch` for the `url` of `POST /v1/images/import`: an image without files.
  "scratch",
  // `mtime` of a request's files.
  "file-times",
  // `links` of a request's files: further hard links to each.
  "hard-links",
  // `mtime` of a request's entries, `attributes` and `replaces` of its entries and files, and entries of the type `special`.
  "entry-attributes",
  // A process without HOME gets its user's, from the image's `/etc/passwd`.
  "home",
  // `max_memory_bytes`, `max_processes` and `cpus` beside `max_layer_bytes` in `resources_limits`; `limits_hit` in results.
  "resource-limits",
  // `shm_bytes` in `resources_limits`: the size of `/dev/shm`.
  "shm-size",
  // `ulimits` in `resources_limits`: limits of setrlimit(2).
  "ulimits",
  // `oci_config` in an image's record, if the list is filtered by its `uuid` or `tag`: its whole configuration.
  "config",
  // `identity` in such a record: the same for every import of the same image.
  "identity",
  // `GET /v1/images/{image}/layers` lists an image's layers, `.../layers/{id}` is one of them in OCI's format.
  "layers",
  // `.../layers?sizes=1`: the size of each layer that is not imported.
  "layer-sizes",
  // `GET /v1/images/{image}/changes` sums up what each layer adds, changes and deletes, `.../changes/{id}` lists the files.
  "changes",
  // `sizes=1` in `GET /v1/images`: the sizes of each image.
  "image-sizes",
  // Several UUIDs, separated by commas, for `uuid` in `GET /v1/images`.
  "image-uuids",
  // `DELETE /v1/images/{uuid}`.
  "image-removal",
  // `POST /v1/images/{uuid}/config`: the image with the same files and another configuration.
  "configure",
  // `author` and `history` in that request, and `oci_author` and `oci_history` beside `oci_config`, in OCI's format. `history` in
  // `POST /v1/instances`: the lines that the result adds to its image's.
  "history",
  // `terminal` in `POST /v1/instances`, and `GET` and `POST /v1/operations/{uuid}/terminal`.
  "terminals",
  // `POST /v1/images/remote`: images whose layers are fetched when they are needed. `is_remote` and `source` of a layer.
  // `POST /v1/images/{uuid}/probe` asks whether these can be fetched.
  "remote-layers",
  // Tags of Docker's grammar: with capital letters after the colon.
  "docker-tags",
  // `platform` in `POST /v1/images/import` and in each image's record: images for other platforms, and commands in them.
  "platforms",
];

/** Extensions only for a client in the same process. */
const localExtensions = [
  "host-network",
  "ssh-mounts",
  // `host` in `mounts`: directories of this machine.
  "host-mounts",
  // `contents` of a cache in `mounts`, and `GET /v1/caches/{key}`: caches that come from elsewhere and are kept elsewhere.
  "cache-archives",
];

/** Returns true if entries of the type `special` may be devices. */
function canMakeDevices({ layout, inUserNamespace }: EngineState): boolean {
  if (inUserNamespace) return false;
  const path = join(layout.scratch, `device-${crypto.randomUUID()}`);
  const isMade = makeNode(path, constants.S_IFCHR, deviceNumber(1, 3) ?? 0);
  rmSync(path, { force: true });
  return isMade;
}
