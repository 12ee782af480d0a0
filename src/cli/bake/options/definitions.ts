/** The options of `bough bake`. */
import { inputDefinitions } from "../../builds/options/input-definitions.ts";
import { resultDefinitions } from "../../builds/options/result-definitions.ts";
import type { ArgumentDefinitions } from "../../command-line/definitions.ts";
import { provenanceValue, sbomValue } from "../../export/attestation-options.ts";
import { registryOptions } from "../../service/registry-definitions.ts";
import { signDefinition } from "../../signing/sign-definition.ts";

export const bakeDefinitions = {
  target: {
    type: "positional",
    multiple: true,
    required: false,
    description:
      "Targets, groups or patterns (default: the group or target default; of compose files, all services); first the address of a git repository or bake file that is elsewhere",
  },
  file: {
    type: "string",
    alias: "f",
    refusesEmpty: true,
    multiple: true,
    completes: "file",
    valueHint: "PATH",
    description:
      "Bake file, compose file, or targets as JSON lines; - for standard input (default: compose.yaml, docker-bake.hcl and the other usual names)",
  },
  set: {
    type: "string",
    refusesEmpty: true,
    multiple: true,
    valueHint: "TARGET.FIELD=VALUE",
    description: "Override a field of targets, as in app.args.VERSION=1.2 or *.tags+=app:dev",
  },
  var: {
    type: "string",
    refusesEmpty: true,
    multiple: true,
    valueHint: "NAME=VALUE",
    description: "Set a variable of the files",
  },
  "var-file": {
    type: "string",
    refusesEmpty: true,
    multiple: true,
    completes: "file",
    valueHint: "NAME=FILE",
    description:
      "Set a variable of bake files to what a JSON, JSON lines or CSV file has: a list of objects for a matrix",
  },
  "tag-from": inputDefinitions["tag-from"],
  push: {
    type: "boolean",
    description: "Send the images to the registries of their tags, except those with other outputs",
  },
  "skip-existing": {
    type: "boolean",
    description:
      "With --push: neither build nor pull a target whose tags have an image with its content key (--print-keys) already",
  },
  "drop-pushed": {
    type: "boolean",
    description:
      "Remove what is pushed, and the layers that no other target needs, as soon as a target is pushed: the disk stays flat",
  },
  load: { type: "boolean", description: "Add the output type=docker where an image has none for files" },
  "no-cache": { type: "boolean", description: "Build all layers again" },
  pull: {
    type: "boolean",
    description: "Import the images of FROM and --from again, even if they are stored",
  },
  provenance: {
    type: "string",
    refusesEmpty: true,
    optional: provenanceValue,
    valueHint: "[mode=min|max]",
    description: "Record with each image written or pushed what it was made from; false: don't",
  },
  sbom: {
    type: "string",
    refusesEmpty: true,
    optional: sbomValue,
    valueHint: "[true|false]",
    description: "Record with each image written or pushed its packages",
  },
  sign: { ...signDefinition, description: "Sign each image that is pushed, as build --sign does" },
  check: { type: "boolean", description: "The same as --call=check" },
  call: {
    type: "string",
    completes: ["check", "outline", "targets", "build"],
    valueHint: "check|outline|targets",
    description:
      "Check the Dockerfiles, or list their arguments or stages, instead of building; ,format=json behind it prints JSON",
  },
  allow: {
    type: "string",
    refusesEmpty: true,
    multiple: true,
    valueHint: "network.host|ssh|fs.read=PATH|fs.write=PATH|fs=PATH",
    description:
      "Let the files use the machine's network or its SSH agent, or name paths outside of this directory; * is every path",
  },
  jobs: {
    type: "string",
    valueHint: "N",
    description:
      "Maximum number of steps that run at the same time, of all targets (default: one per processor on the engine, 4 on a service)",
  },
  "platform-service": {
    type: "string",
    multiple: true,
    refusesEmpty: true,
    valueHint: "PLATFORM=PROFILE",
    description: "Build this one of the targets' platforms on the service of a profile",
  },
  timeout: {
    type: "string",
    valueHint: "SEC",
    description: "Seconds that each RUN may take (default: 600; 0: no limit, where the service allows it)",
  },
  ...registryOptions,
  progress: resultDefinitions.progress,
  "keep-going": {
    type: "boolean",
    alias: "k",
    description: "After a failure, build all targets that don't need the failed one; exit code 1",
  },
  results: {
    type: "string",
    completes: "file",
    valueHint: "FILE|-",
    description:
      "Write a line of JSON about each target as soon as it has ended, built or failed; - for standard output",
  },
  shard: {
    type: "string",
    valueHint: "N/COUNT",
    description: "Build the targets of one of COUNT machines, chosen by their names; and what they need",
  },
  "metadata-file": {
    type: "string",
    completes: "file",
    valueHint: "PATH",
    description: "Write image, tags, digests and steps of each target as JSON, once all are built",
  },
  print: { type: "boolean", description: "Print the targets as JSON, complete, and build nothing" },
  "print-keys": {
    type: "boolean",
    description:
      "Print the content key of each target, a hash of all that goes into its image, and build nothing",
  },
  list: {
    type: "string",
    refusesEmpty: true,
    completes: ["targets", "variables"],
    valueHint: "targets|variables",
    description: "List what the files define, and build nothing",
  },
} as const satisfies ArgumentDefinitions;
