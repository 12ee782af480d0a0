import { BoughError } from "../../errors.ts";
import type { Values } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { type ArgumentDefinitions, timeoutOption } from "../command-line/definitions.ts";
import { digestFileDefinition, registryOptions } from "../export/registry-options.ts";
import { limitDefinitions } from "../run/limit-options.ts";
import { entitlements, hostsDefinition, networkDefinition } from "../run/network-option.ts";
import { provenanceValue, sbomValue } from "./options/attestation-values.ts";
import { calls, readCall } from "./options/call.ts";
import { progressModes } from "./progress-modes.ts";

const definitions: ArgumentDefinitions = {
  context: {
    type: "positional",
    completes: "directory",
    required: false,
    description:
      "Build context: a directory (default: .), the address of a git repository or archive, or - for an archive or Dockerfile on standard input",
  },
  dockerfile: {
    type: "string",
    synonyms: ["--file"],
    dockerLetter: "f",
    refusesEmpty: true,
    completes: "file",
    valueHint: "PATH",
    description:
      "Dockerfile (default: CONTEXT/Dockerfile), or - for standard input; if CONTEXT is fetched, a path relative to its root",
  },
  tag: {
    type: "string",
    dockerLetter: "t",
    refusesEmpty: true,
    multiple: true,
    completes: "tag",
    valueHint: "NAME[:TAG]",
    description: "Tag the final image",
  },
  docker: {
    type: "boolean",
    description:
      "Build as docker build does: COPY --from, CMD, ENTRYPOINT, only needed stages, no default excludes",
  },
  "no-docker": {
    type: "boolean",
    description:
      "Build without --docker even if BOUGH_DOCKER=1 is set, and let --push and -o take an incomplete image",
  },
  target: {
    type: "string",
    refusesEmpty: true,
    completes: "stage",
    valueHint: "STAGE",
    description: "The stage to build, by name or number (default: the last); implies --docker",
  },
  jobs: {
    type: "string",
    valueHint: "N",
    description:
      "Maximum number of steps that run at the same time, with --docker (default: one per processor on the engine, 4 on a service)",
  },
  platform: {
    type: "string",
    refusesEmpty: true,
    valueHint: "OS/ARCH",
    description: "Platform of the image, such as linux/amd64; an error if the service runs another one",
  },
  label: {
    type: "string",
    valueHint: "KEY[=VALUE]",
    multiple: true,
    description: "Label of the image, with --docker; overrides a LABEL of the same name",
  },
  annotation: {
    type: "string",
    valueHint: "[TYPE:]KEY=VALUE",
    multiple: true,
    description:
      "With -o type=oci or --push: an annotation of the manifest, or of another TYPE: index, manifest-descriptor, index-descriptor",
  },
  "build-arg": {
    type: "string",
    valueHint: "KEY[=VALUE]",
    multiple: true,
    description: "Value of an ARG that the Dockerfile declares; without =, from the environment",
  },
  "build-context": {
    type: "string",
    completes: "named-file",
    valueHint: "NAME=VALUE",
    multiple: true,
    description:
      "What FROM NAME and --from=NAME mean: a directory, docker-image://REFERENCE, oci-layout://PATH:TAG, or the address of a git repository or file; implies --docker",
  },
  secret: {
    type: "string",
    completes: "named-file",
    valueHint: "id=ID[,src=FILE|,env=NAME]",
    multiple: true,
    description:
      "For RUN --mount=type=secret: a file's content or a variable's value (default: the variable or file named ID)",
  },
  ssh: {
    type: "string",
    completes: "named-file",
    valueHint: "default|ID[=SOCKET]",
    multiple: true,
    description:
      "For RUN --mount=type=ssh, and git@ and ssh:// addresses: an agent's socket (default: SSH_AUTH_SOCK)",
  },
  "no-cache": {
    type: "boolean",
    description: "Rebuild everything: ignore existing layer:<hash> branches",
  },
  "no-cache-filter": {
    type: "string",
    completes: "stage",
    valueHint: "STAGE[,STAGE...]",
    multiple: true,
    description: "Rebuild only these stages, by name or number, and what uses them; implies --docker",
  },
  pull: {
    type: "boolean",
    description: "Import the images of FROM and --from again, even if they are stored, and move their tags",
  },
  "cache-from": {
    type: "string",
    multiple: true,
    completes: "scope",
    valueHint: "SCOPE[,SCOPE...]",
    description: "Reuse layers of other machines from these scopes on the service",
  },
  "cache-to": {
    type: "string",
    completes: "scope",
    valueHint: "SCOPE",
    description: "Share the layers of this build with other machines, in a scope on the service",
  },
  cache: {
    type: "string",
    valueHint: "auto",
    completes: ["auto"],
    description:
      "Choose the scopes: in CI those of the branch and the default branch, elsewhere that of the default branch, only to read",
  },
  "cache-verify": {
    type: "string",
    refusesEmpty: true,
    multiple: true,
    completes: "file",
    valueHint: "KEY.pub",
    description: "Use only scopes that are signed with this Ed25519 key",
  },
  "cache-sign": {
    type: "string",
    refusesEmpty: true,
    completes: "file",
    valueHint: "KEY",
    description: "Sign what --cache-to writes with this Ed25519 key",
  },
  "no-default-excludes": {
    type: "boolean",
    description: "Also copy what is excluded by default: .git, node_modules, dist, build and similar files",
  },
  "allow-local-from": {
    type: "boolean",
    description: "Let FROM name oci:, dir:, oci-archive: and docker-archive: below the context",
  },
  explain: {
    type: "boolean",
    description: "For every step that is not cached, say what has changed since the last build",
  },
  check: {
    type: "boolean",
    description:
      "Look for mistakes and build nothing: parse, plan and lint without a service; exit 2 if there are errors",
  },
  call: {
    type: "string",
    refusesEmpty: true,
    synonyms: ["--print"],
    completes: calls,
    valueHint: calls.join("|"),
    description:
      "Build nothing: check as --check does, or list the build arguments, secrets and SSH agents (outline), or the stages (targets)",
  },
  "max-add-size": {
    type: "string",
    valueHint: "SIZE",
    description:
      "Maximum size that ADD, or the build context, may download from one address, such as 500M (default: 16G; 0: no limit)",
  },
  timeout: timeoutOption(
    "Seconds that each RUN may take (default: 600; 0: no limit, where the service allows it)",
  ),
  network: networkDefinition("each RUN without its own --network"),
  "add-host": hostsDefinition("each RUN"),
  allow: {
    type: "string",
    valueHint: "ENTITLEMENT",
    completes: entitlements,
    multiple: true,
    description: "Allow an entitlement to the Dockerfile: network.host is RUN --network=host",
  },
  ...limitDefinitions,
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
  push: { type: "boolean", description: "Send the image to the registries of its tags" },
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
    valueHint: "[true|false]",
    description: "Record with the image written or pushed its dpkg and apk packages, as SPDX JSON",
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
    description: "Write the image's UUID, once the build has succeeded",
  },
};

export const build: Command = {
  definition: {
    meta: {
      name: "build",
      description: "Build an image from a Dockerfile: each RUN becomes a layer that later builds reuse.",
    },
    args: definitions,
    run: ({ data }) => buildOrCheck(data),
  },
  usual: [
    { title: "What to build", options: ["docker", "dockerfile", "target", "build-arg"] },
    { title: "Its result", options: ["tag", "push", "output"] },
    { title: "If something is wrong", options: ["no-cache", "check", "on-error"] },
  ],
  examples: [
    ["build --docker . --tag app:dev", "what docker build builds, tagged"],
    ["build --docker . --on-error shell", "look around where it fails"],
    ["build --docker . --tag HOST/app --push", "and send it to a registry"],
    [
      "build --docker app --dockerfile app/ci.Dockerfile --build-arg VERSION=1.2",
      "another Dockerfile, an ARG's value",
    ],
    ["build --docker --check", "look for mistakes and build nothing; -f json says what would be done"],
  ],
  agentNote: [
    "This command is mutating: it may start operations, store images and move tags.",
    "The layer cache is per context directory or repository; --no-cache bypasses cached layers, --cache-from uses those of other machines.",
    "The build has a session of its own: -S KEY is harmless and does not move that key's image.",
    "See `bough agent` for the manual.",
  ].join("\n"),
  foreign: async () => (await import("../foreign/build-options.ts")).foreignBuildOptions,
};

/** Refuses `--check` with `--trace` or `--timings`: without a build there is nothing to measure. */
function refuseTogether(values: Values): void {
  const measure = values.text("trace") === undefined ? "timings" : "trace";
  if (readCall(values) === "build" || !(measure === "trace" || values.flag("timings"))) return;
  throw new BoughError(`--check and --${measure} cannot be used together`, {
    kind: "usage",
    hint: "--check builds nothing.",
  });
}

/** Builds, or runs the checks. Loads the code for it only now, so that `--help` is fast. */
async function buildOrCheck(invocation: Invocation): Promise<number> {
  refuseTogether(invocation.values);
  const call = readCall(invocation.values);
  if (call === "check") return (await import("./check.ts")).runCheckCommand(invocation);
  if (call !== "build")
    return (await import("./describe-dockerfile.ts")).describeDockerfile(call, invocation);
  return (await import("./run-build.ts")).runBuildCommand(invocation);
}
