import type { OperationKind } from "../../service/wire/operation.ts";
import { jsonResponse } from "../http/answers.ts";
import type { Route } from "../http/router.ts";
import { maxTimeout } from "../instances/max-timeout.ts";
import { unfinishedOperations } from "../records/operations.ts";
import { machineArchitecture } from "../system/machine.ts";

/** Names of what this engine can do beyond the public API. */
const extensions: readonly string[] = [
  // `GET /v1/images` shows every image, by its UUID too: one that is not in it is gone.
  "image-list",
  // `copies` and an empty `command` in `POST /v1/instances`, and `POST /v1/inspect/{image}/digest`.
  "copies",
  // `entries` in `POST /v1/instances`: directories and links, put in place before the files.
  "entries",
  // `mounts` in `POST /v1/instances`.
  "mounts",
  // `readonly_network_files` in `POST /v1/instances`.
  "readonly-network-files",
  // `scratch` for the `url` of `POST /v1/images/import`: an image without files.
  "scratch",
  // `mtime` of a request's files.
  "file-times",
  // HOME of a process that is given none is its user's, by the image's `/etc/passwd`.
  "home",
  // `max_memory_bytes`, `max_processes` and `cpus` beside `max_layer_bytes` in `resources_limits`; `limits_hit` in results.
  "resource-limits",
  // `oci_config` in an image's record, where the list is asked for it by `uuid` or by its `tag`: its whole configuration.
  "config",
  // `identity` in such a record: what the image is, whoever has imported it.
  "identity",
  // `GET /v1/images/{image}/layers` lists an image's layers, `.../layers/{id}` is one of them as OCI has it.
  "layers",
  // `.../layers?sizes=1`: how much each that is not imported takes on disk.
  "layer-sizes",
  // `GET /v1/images/{image}/changes` says what each layer adds, changes and deletes, `.../changes/{id}` of which files.
  "changes",
  // `sizes=1` in `GET /v1/images`: how much each takes on disk.
  "image-sizes",
  // `DELETE /v1/images/{uuid}`.
  "image-removal",
  // `POST /v1/images/{uuid}/config`: the image with the same files and another configuration.
  "configure",
  // `author` and `history` in that request, and `oci_author` and `oci_history` beside `oci_config`: as OCI has them. `history` in
  // `POST /v1/instances`: the lines that the result has beyond its image's.
  "history",
  // `terminal` in `POST /v1/instances`, and `GET` and `POST /v1/operations/{uuid}/terminal`.
  "terminals",
];

/** What is for a client in the same process alone. */
const localExtensions = [
  "host-network",
  "ssh-mounts",
  // `host` in `mounts`: directories of this machine.
  "host-mounts",
  // `lent_files` in `POST /v1/instances`: files of this machine that the client has lent to the engine.
  "lent-files",
];

/** The engine has no tokens of its own: a server in front of it asks for one. */
const token = "00000000-0000-4000-8000-000000000000";

/** Whoever can reach the engine may do everything. */
const permissions = {
  import: true,
  spawn: true,
  spawn_disposable: true,
  list: true,
  cancel: true,
  set_image_tag: true,
};

export const whoamiRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/whoami",
    answer({ state }) {
      const running = unfinishedOperations(state.database);
      const count = (kind: OperationKind) => running.filter((operation) => operation.kind === kind).length;
      return jsonResponse({
        token_uuid: token,
        token_expiration: null,
        permissions,
        limits: { instance_max_timeout: maxTimeout },
        operations_stat: { running_instances: count("instance"), running_imports: count("image_import") },
        // Not in the API: what `FROM --platform` and TARGETARCH are measured by.
        platform: `linux/${machineArchitecture()}`,
        // Not in the API either: what a request may ask for here beyond it.
        extensions: state.allowsHostNetwork ? [...extensions, ...localExtensions] : extensions,
      });
    },
  },
];
