import { BoughError } from "../../errors.ts";
import { type ArgumentDefinitions, timeoutOption, type Values } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { limitDefinitions } from "../run/limit-options.ts";
import { entitlements, networkDefinition } from "../run/network-option.ts";
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
    completes: "file",
    valueHint: "PATH",
    description:
      "Dockerfile (default: CONTEXT/Dockerfile), or - for standard input; of a context that is fetched, relative to its root",
  },
  tag: {
    type: "string",
    multiple: true,
    completes: "tag",
    valueHint: "NAME[:TAG]",
    description: "Tag the final image",
  },
  docker: {
    type: "boolean",
    description:
      "Build as docker build does: only the stages that are needed, COPY --from, SHELL, no default excludes",
  },
  "no-docker": { type: "boolean", description: "Build every stage, whatever BOUGH_DOCKER says" },
  target: {
    type: "string",
    valueHint: "STAGE",
    description: "The stage to build, by name or number (default: the last); implies --docker",
  },
  jobs: {
    type: "string",
    valueHint: "N",
    description:
      "Steps at work at once, with --docker (default: one a processor on the engine, 4 on a service)",
  },
  platform: {
    type: "string",
    valueHint: "OS/ARCH",
    description: "What the image is to run on, as in linux/amd64: refused unless it is what the service runs",
  },
  label: {
    type: "string",
    valueHint: "KEY[=VALUE]",
    multiple: true,
    description: "A label of the image, with --docker: it wins over a LABEL of that name",
  },
  "build-arg": {
    type: "string",
    valueHint: "KEY[=VALUE]",
    multiple: true,
    description: "Value for an ARG that the Dockerfile declares; without =, from the environment",
  },
  secret: {
    type: "string",
    valueHint: "id=ID[,src=FILE|,env=NAME]",
    multiple: true,
    description:
      "For RUN --mount=type=secret: a file's content or a variable's value (default: of the name ID)",
  },
  ssh: {
    type: "string",
    valueHint: "default|ID[=SOCKET]",
    multiple: true,
    description:
      "For RUN --mount=type=ssh, and git@ and ssh:// addresses: an agent's socket (default: SSH_AUTH_SOCK)",
  },
  "no-cache": {
    type: "boolean",
    description: "Ignore existing layer:<hash> branches and rebuild everything",
  },
  pull: {
    type: "boolean",
    description: "Import the images of FROM and --from again, whatever is stored, and move their tags",
  },
  "cache-from": {
    type: "string",
    multiple: true,
    completes: "scope",
    valueHint: "SCOPE[,SCOPE...]",
    description: "Take layers that this machine does not have from these scopes on the service",
  },
  "cache-to": {
    type: "string",
    completes: "scope",
    valueHint: "SCOPE",
    description: "Leave the layers of this build in a scope on the service, for other machines",
  },
  cache: {
    type: "string",
    valueHint: "auto",
    completes: ["auto"],
    description:
      "Choose the scopes: in CI the branch's own and the default branch's, elsewhere the latter to read",
  },
  "cache-verify": {
    type: "string",
    multiple: true,
    completes: "file",
    valueHint: "KEY.pub",
    description: "Take from scopes only what this Ed25519 key has signed",
  },
  "cache-sign": {
    type: "string",
    completes: "file",
    valueHint: "KEY",
    description: "Sign what is left in the scope with this Ed25519 key",
  },
  "no-default-excludes": {
    type: "boolean",
    description: "Copy what is always left out otherwise: .git, node_modules, dist, build and their kind",
  },
  "allow-local-from": {
    type: "boolean",
    description: "Let FROM name oci:, dir:, oci-archive: and docker-archive: below the context",
  },
  explain: {
    type: "boolean",
    description: "Say of every step that is not cached what has changed since the last build",
  },
  check: {
    type: "boolean",
    description: "Parse, plan and lint without a service; exit 2 if there are errors, and build nothing",
  },
  "max-add-size": {
    type: "string",
    valueHint: "SIZE",
    description:
      "The most that ADD, or the build context, may fetch from one address, as in 500M (default: 16G; 0: no limit)",
  },
  timeout: timeoutOption("Seconds that each RUN may take (default: 600)"),
  network: networkDefinition("each RUN that names none itself"),
  allow: {
    type: "string",
    valueHint: "ENTITLEMENT",
    completes: entitlements,
    multiple: true,
    description: "What the Dockerfile may ask for: network.host is RUN --network=host",
  },
  ...limitDefinitions,
  "on-error": {
    type: "string",
    valueHint: "shell",
    completes: ["shell"],
    description: "Open a shell in the place of a step that fails, with its files, ENV, WORKDIR and USER",
  },
  progress: {
    type: "string",
    completes: progressModes,
    valueHint: progressModes.join("|"),
    description:
      "How to show the build: live on a terminal (compact: of a finished step one line), log lines, or events as JSON (default: auto)",
  },
  output: {
    type: "string",
    alias: "o",
    multiple: true,
    valueHint: "type=TYPE,dest=PATH",
    description:
      "Write the image: type=oci, docker or tar to a file, local to a directory, registry as --push; DIR is type=local",
  },
  push: { type: "boolean", description: "Send the image to the registries that its tags name" },
  provenance: {
    type: "boolean",
    description: "Beside the image written or sent: what it was made from, as in-toto has it (SLSA v1)",
  },
  sbom: {
    type: "boolean",
    description: "Beside the image written or sent: the packages of dpkg and apk in it, as SPDX JSON",
  },
  trace: {
    type: "string",
    completes: "file",
    valueHint: "FILE",
    description:
      "Write when each step, request and operation ran, for Perfetto and Chrome; after a failure, too",
  },
  timings: {
    type: "boolean",
    description: "Print the critical path and the slowest steps once the build is over",
  },
  "metadata-file": {
    type: "string",
    valueHint: "PATH",
    description: "Write the image, tag, session and every step as JSON, once the build has succeeded",
  },
  iidfile: { type: "string", valueHint: "PATH", description: "Write the image's UUID, likewise" },
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
  examples: [
    ["build . --tag app:dev", "build ./Dockerfile with . as its context, and tag the result"],
    [
      "build app --dockerfile app/ci.Dockerfile --build-arg VERSION=1.2",
      "another Dockerfile, an ARG's value",
    ],
    ["build https://host/app.git#v1.2:docker", "a tag's directory of a git repository"],
    ["build -q .", "print nothing but the image's UUID"],
    ["build --check", "look for mistakes and build nothing; -f json says what would be done"],
  ],
  agentNote: [
    "This command is mutating: it may start operations, store images and move tags.",
    "The layer cache is per context directory or repository; --no-cache bypasses cached layers, --cache-from takes those of other machines.",
    "The build has a session of its own: -S KEY is harmless and does not move that key's image.",
    "See `bough agent` for the whole manual.",
  ].join("\n"),
  foreignOptions: {
    "--file": "A Dockerfile is named with --dockerfile PATH.",
    "--rm": "Leave it out: bough keeps no containers.",
    "--force-rm": "Leave it out: bough keeps no containers.",
    "--squash": "Leave it out: each RUN is a layer. `bough inspect` shows what makes layers large.",
    "--layers": "Leave it out: layers are always reused, unless --no-cache is given.",
    "--no-cache-filter": "--no-cache builds all steps again.",
    "--call": "--check looks for mistakes.",
    "--builder": "--url or --profile names another service, --local the embedded engine.",
    "--annotation": "--label KEY=VALUE keeps labels in the image's configuration.",
    "--env": "ENV in the Dockerfile sets a variable, --build-arg the value of an ARG.",
    "--volume": "RUN --mount in the Dockerfile mounts files of the context, caches and secrets.",
    "--add-host": "Not supported: a RUN resolves names by the machine's name servers.",
    "--shm-size": "The limits of a RUN are --memory, --cpus and --pids.",
    "--ulimit": "The limits of a RUN are --memory, --cpus and --pids.",
    "--load": "`-o type=docker,dest=FILE` writes what `docker load -i FILE` takes.",
    "--attest": "`--provenance` keeps beside an image what it was made from, `--sbom` its packages.",
    "--build-context": "FROM takes images of the service and the stages above.",
  },
};

/** Refuses `--check` with `--trace` or `--timings`: without a build there is nothing to measure. */
function refuseTogether(values: Values): void {
  const measure = values.text("trace") === undefined ? "timings" : "trace";
  if (!values.flag("check") || !(measure === "trace" || values.flag("timings"))) return;
  throw new BoughError(`--check and --${measure} exclude each other`, {
    kind: "usage",
    hint: "--check builds nothing.",
  });
}

/** Builds, or runs the checks. Loads the code for it only now, so that `--help` is fast. */
async function buildOrCheck(invocation: Invocation): Promise<number> {
  refuseTogether(invocation.values);
  if (invocation.values.flag("check")) return (await import("./check.ts")).runCheckCommand(invocation);
  const identity = (await import("./unchanged/identity.ts")).identifyBuild(invocation);
  if (identity !== undefined) {
    const { repeatBuild } = await import("./unchanged/repeat-build.ts");
    if (await repeatBuild(identity, invocation)) return 0;
  }
  return (await import("./run-build.ts")).runBuildCommand(invocation, { identity });
}
