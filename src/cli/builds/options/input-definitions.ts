import { usageError } from "../../../errors.ts";
import { parseGoBoolean } from "../../../go/boolean.ts";
import { type ArgumentDefinitions, timeoutOption } from "../../command-line/definitions.ts";
import { oneOf, splitPair } from "../../command-line/option-values.ts";
import { limitDefinitions } from "../../run/limit-options.ts";
import { entitlements, hostsDefinition, networkDefinition } from "../../run/network-option.ts";

/** A name in a word of its own, which is no CONTEXT: an image with a tag, or an address. */
const lockedNameWithValue = /^[^-./][^/]*:/;

/** The values of `--call`, which is docker buildx's. */
export const calls = ["build", "check", "outline", "targets"] as const;

/** The values of `--check=LEVEL` with which a build is checked before it runs. */
const checkLevels = ["error", "warn"] as const;

/** The options that say what to build, and how. */
export const inputDefinitions = {
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
  "tag-from": {
    type: "string",
    refusesEmpty: true,
    multiple: true,
    completes: ["auto", "branch", "tag", "pr", "semver", "pep440", "sha", "edge"],
    valueHint: "RULE",
    description:
      "Tags for --tag NAME from git and CI, by rules of docker/metadata-action (auto: branch, tag, pull request), and labels with revision, source, created and version",
  },
  "print-key": {
    type: "boolean",
    description:
      "Print the content key, a hash of all that goes into the image, and build nothing; {key} in a tag is that key",
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
    valueHint: "OS/ARCH[,...]",
    description:
      "Platforms of the image, such as linux/amd64,linux/arm64; by default, and on services of one platform, the service's",
  },
  "platform-service": {
    type: "string",
    multiple: true,
    refusesEmpty: true,
    valueHint: "PLATFORM=PROFILE",
    description:
      "Build this one of the platforms on the service of a profile, at the same time as the others",
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
      "With -o type=oci or --push: an annotation of the manifest, of one for a platform (manifest[linux/arm64]), or of another TYPE: index, manifest-descriptor, index-descriptor",
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
    valueHint: "default|ID[=SOCKET|KEY]",
    multiple: true,
    description:
      "For RUN --mount=type=ssh, and git@ and ssh:// addresses: an agent's socket, or files of private keys (default: SSH_AUTH_SOCK)",
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
  lock: {
    type: "string",
    refusesEmpty: true,
    completes: "file",
    valueHint: "FILE",
    description:
      "Use the digests of images, hashes of URLs and commits of repositories that FILE has, and add what it lacks once the build has succeeded",
  },
  "update-lock": {
    type: "string",
    refusesEmpty: true,
    multiple: true,
    optional: lockedNameWithValue,
    valueHint: "[NAME]",
    description:
      "With --lock: take what NAME means now, as in --update-lock=alpine:3.20 (default: all names)",
  },
  locked: {
    type: "boolean",
    description: "With --lock: an error for what FILE lacks, and FILE stays as it is",
  },
  "cache-from": {
    type: "string",
    multiple: true,
    completes: "scope",
    valueHint: "SCOPE|type=registry,ref=REF|type=local,src=DIR",
    description:
      "Reuse layers of other machines: from scopes on the service, a registry, a directory, or GitHub's cache",
  },
  "cache-to": {
    type: "string",
    multiple: true,
    completes: "scope",
    valueHint: "SCOPE|type=registry,ref=REF[,mode=max]|type=local,dest=DIR",
    description:
      "Share the layers of this build with other machines: in a scope, a registry, a directory, or GitHub's cache",
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
    type: "string",
    refusesEmpty: true,
    // The word behind it is the context: a level stands behind =.
    optional: /^$/,
    completes: checkLevels,
    valueHint: "[=error|warn]",
    description:
      "Look for mistakes and build nothing: parse, plan and lint without a service; exit 2 if there are errors; =error builds unless Docker's checks find something, =warn builds and logs what is found",
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
} as const satisfies ArgumentDefinitions;

/** `--call`: what is done in place of a build. */
export interface Call {
  method: (typeof calls)[number];
  /** True for docker buildx's JSON. */
  isJson: boolean;
  /** True if warnings make no exit code. */
  ignoresStatus: boolean;
}

export function parseCall(text: string): Call {
  const [method = "", ...fields] = text.split(",");
  const call = { isJson: false, ignoresStatus: false };
  for (const field of fields) {
    const [name, value = ""] = splitPair(field);
    if (name === "format") call.isJson = value === "json";
    else if (name === "ignorestatus" && parseGoBoolean(value) !== undefined)
      call.ignoresStatus = parseGoBoolean(value) === true;
    else throw usageError(`--call ${text}: invalid field ${JSON.stringify(field)}`, callHint);
  }
  return { ...call, method: oneOf(method.replace(/^lint$/, "check"), calls, "--call") };
}

const callHint = "Write --call METHOD[,format=json][,ignorestatus=true].";

/** What a build is checked for: the level of findings that it fails for, or only warns of. True: it is checked in place of being built. */
type Check = boolean | (typeof checkLevels)[number];

/** Parses `--check`, which is true or false in docker. */
export function parseCheck(text: string): Check {
  if (/^(1|t|true)$/i.test(text)) return true;
  return /^(0|f|false)$/i.test(text)
    ? false
    : oneOf(text, checkLevels, "--check", "Alone, --check builds nothing.");
}

/** Returns what is asked for. `--check` is `--call=check`. */
export function callOf({ call, check }: { call?: Call | undefined; check?: Check | undefined }): Call {
  const asked = call ?? { method: "build", isJson: false, ignoresStatus: false };
  return check === true ? { ...asked, method: "check" } : asked;
}
