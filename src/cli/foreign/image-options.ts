/** Options of docker's commands for images that bough's lack. */
import { type ForeignOption, foreignOptions } from "../command-line/foreign-options.ts";

const platform = "Leave it out: a tag means all of its platforms, and `bough images` has an id for each.";
const trust = "images are identified by what they contain";

export const dockerImages: readonly ForeignOption[] = [
  ["--digests", "refused", "`bough push -f json IMAGE` prints the digest of what it pushes."],
  [
    "--filter FILTER",
    "refused",
    "`bough images NAME`, --tag PREFIX, --tagged, --since and --until choose images.",
  ],
  ["--no-trunc", "refused", "--wide shows full ids."],
  ["--tree", "refused", "`bough inspect IMAGE` shows an image's layers."],
];

export const dockerRmi: readonly ForeignOption[] = [
  ["--no-prune", "ignored", "layers that other images need always stay"],
  ["--platform PLATFORM", "refused", platform],
];

export const dockerPush: readonly ForeignOption[] = [
  ["-a, --all-tags", "refused", "Push each tag: `bough images --tag NAME: -f json` lists them."],
  ["--disable-content-trust", "ignored", trust],
  ["--platform PLATFORM", "refused", platform],
];

export const dockerInspect: readonly ForeignOption[] = [
  ["-s, --size", "ignored", "sizes are always shown"],
  [
    "--type TYPE",
    "refused",
    "`bough inspect` shows images, `bough show` operations, `bough session show` sessions.",
  ],
  ["--platform PLATFORM", "refused", platform],
];

/** `docker pull`, `docker load` and `docker import`. */
export const dockerImport: readonly ForeignOption[] = [
  ["-a, --all-tags", "refused", "Import each tag: bough images import NAME:1 NAME:2"],
  [
    "-c, --change INSTRUCTION",
    "refused",
    "Write a Dockerfile: FROM scratch, ADD FILE /, and the instructions.",
  ],
  ["--disable-content-trust", "ignored", trust],
  ["-i, --input FILE", "refused", "Write: bough images import docker-archive:FILE"],
  ["-m, --message TEXT", "refused", "Write a Dockerfile: its instructions are the image's history."],
];

/** `docker save`. */
export const dockerSave: readonly ForeignOption[] = [
  ["-o, --output FILE", "refused", "Write: bough images export IMAGE docker-archive:FILE"],
  ["--platform PLATFORM", "refused", platform],
];

export const foreignImagesOptions = foreignOptions(dockerImages);
export const foreignRmiOptions = foreignOptions(dockerRmi);
export const foreignPushOptions = foreignOptions(dockerPush);
export const foreignInspectOptions = foreignOptions(dockerInspect);
export const foreignImportOptions = foreignOptions(dockerImport);
export const foreignExportOptions = foreignOptions(dockerSave);
