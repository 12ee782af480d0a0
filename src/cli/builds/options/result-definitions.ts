import type { ArgumentDefinitions } from "../../command-line/definitions.ts";
import { formats, globalDefinitions, reportFormats } from "../../command-line/globals.ts";
import { oneOf } from "../../command-line/option-values.ts";
import { provenanceValue, sbomValue } from "../../export/attestation-options.ts";
import {
  digestFileDefinition,
  mirrorDefinition,
  registryOptions,
} from "../../service/registry-definitions.ts";
import { signDefinition } from "../../signing/sign-definition.ts";

/** The values of `--progress`. They are apart from the code that implements them, so that help need not load it. */
const progressModes = ["auto", "tty", "compact", "plain", "json", "rawjson", "quiet", "none"] as const;

/** The options for the result, the view, and files for other programs. */
export const resultDefinitions = {
  "on-error": {
    type: "string",
    valueHint: "shell",
    completes: ["shell"],
    description: "Open a shell in place of a failed step, with its files, ENV, WORKDIR and USER",
  },
  progress: {
    type: "string",
    completes: progressModes,
    valueHint: progressModes.join("|"),
    description:
      "How to show the build: rows on a terminal (compact: output only of failed steps; tty: of all), log lines (plain), or events as JSON (default: auto, which is compact on a terminal)",
  },
  format: {
    ...globalDefinitions.format,
    completes: [...formats, ...reportFormats],
    description:
      "How the result is printed: table, json, csv or tsv (default: table); that of --check also as sarif, or gitlab, its code quality report",
  },
  output: {
    type: "string",
    alias: "o",
    multiple: true,
    completes: "named-file",
    valueHint: "type=TYPE,dest=PATH",
    description:
      "Write the image: type=oci, docker or tar to a file, local to a directory, registry as --push; DIR is type=local",
  },
  ...registryOptions,
  "registry-mirror": mirrorDefinition,
  push: { type: "boolean", description: "Send the image to the registries of its tags" },
  sign: signDefinition,
  "skip-existing": {
    type: "boolean",
    description:
      "With --push: build and send nothing if the tags have an image with this content key (--print-key) already",
  },
  load: {
    type: "boolean",
    description: "Give the image to docker's daemon, if there is one; the same as -o type=docker",
  },
  provenance: {
    type: "string",
    refusesEmpty: true,
    optional: provenanceValue,
    valueHint: "[mode=min|max]",
    description:
      "Record with the image written or pushed what it was made from, as an in-toto statement (SLSA v1); min: without values of build arguments (default: max)",
  },
  sbom: {
    type: "string",
    refusesEmpty: true,
    optional: sbomValue,
    valueHint: "[generator=IMAGE]",
    description:
      "Record with the image written or pushed its packages of dpkg, apk and npm, as SPDX JSON, or what a scanner image lists",
  },
  attest: {
    type: "string",
    refusesEmpty: true,
    multiple: true,
    completes: ["type=provenance", "type=sbom"],
    valueHint: "type=provenance|sbom",
    description: "The same as --provenance or --sbom",
  },
  trace: {
    type: "string",
    completes: "file",
    valueHint: "FILE",
    description:
      "Write when each step, request and operation ran, for Perfetto and Chrome; also after a failure",
  },
  timings: {
    type: "boolean",
    description: "Print the critical path and the slowest steps once the build is over",
  },
  report: {
    type: "string",
    completes: "file",
    valueHint: "FILE",
    description:
      "Write a page about the build, in one file of HTML: what took long, what was not cached and why, what is large; also after a failure",
  },
  "metadata-file": {
    type: "string",
    completes: "file",
    valueHint: "PATH",
    description: "Write the image, tag, session and every step as JSON, once the build has succeeded",
  },
  "digest-file": digestFileDefinition,
  iidfile: {
    type: "string",
    completes: "file",
    valueHint: "PATH",
    description:
      "Write the image's UUID, or its digest if it is written or pushed, once the build has succeeded; of several platforms, the first one's UUID or the index's digest",
  },
} as const satisfies ArgumentDefinitions;

export type ProgressMode = Exclude<(typeof progressModes)[number], "quiet" | "none">;

/** Throws a BoughError of kind `usage` if the text is not a mode. */
export function parseProgressMode(text: string): ProgressMode {
  const mode = oneOf(text, progressModes, "--progress");
  // docker buildx's names. The global options quiet and log-level are read accordingly.
  return mode === "quiet" || mode === "none" ? "plain" : mode;
}
