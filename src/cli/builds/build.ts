import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { limitDefinitions } from "../run/limit-options.ts";
import { entitlements, networkDefinition } from "../run/network-option.ts";

const definitions: ArgumentDefinitions = {
  context: {
    type: "positional",
    completes: "directory",
    required: false,
    description: "Build context directory (default: .)",
  },
  dockerfile: {
    type: "string",
    completes: "file",
    valueHint: "PATH",
    description: "Dockerfile (default: CONTEXT/Dockerfile)",
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
    description: "For RUN --mount=type=ssh: an agent's socket (default: SSH_AUTH_SOCK)",
  },
  "no-cache": {
    type: "boolean",
    description: "Ignore existing layer:<hash> branches and rebuild everything",
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
    description: "The most that ADD may fetch from one URL, as in 500M (default: 16G; 0: no limit)",
  },
  timeout: {
    type: "string",
    alias: "t",
    valueHint: "SEC",
    description: "Seconds that each RUN may take (default: 600)",
  },
  network: networkDefinition("each RUN that names none itself"),
  allow: {
    type: "string",
    valueHint: "ENTITLEMENT",
    completes: entitlements,
    multiple: true,
    description: "What the Dockerfile may ask for: network.host is RUN --network=host",
  },
  ...limitDefinitions,
  progress: {
    type: "string",
    valueHint: "auto|tty|plain|json",
    description: "How to show the build: live on a terminal, log lines, or events as JSON (default: auto)",
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
      description:
        "Build an image from a Dockerfile: each instruction runs on the service, each RUN becomes a cached layer.",
    },
    args: definitions,
    run: ({ data }) => buildOrCheck(data),
  },
  examples: [
    ["build", "build ./Dockerfile with . as its context"],
    ["build . --tag app:dev", "and tag the result"],
    [
      "build app --dockerfile app/ci.Dockerfile --build-arg VERSION=1.2",
      "another Dockerfile, an ARG's value",
    ],
    ["build -q .", "print nothing but the image's UUID"],
    ["build --check", "look for mistakes and build nothing; -f json says what would be done"],
  ],
  agentNote: [
    "This command is mutating: it may start operations on the service, store images and move tags.",
    "The layer cache is per context directory; --no-cache bypasses cached layers.",
    "The build has a session of its own: -S KEY is harmless and does not move that key's image.",
    "See `bough agent` for the whole manual.",
  ].join("\n"),
  foreignOptions: {
    "--file": "A Dockerfile is named with --dockerfile PATH.",
    "--pull": "An image is imported anew with `bough images import REFERENCE`.",
    "--platform": "The service's own platform is built for; FROM --platform is checked against it.",
    "--load": "`-o type=docker,dest=FILE` writes what `docker load -i FILE` takes.",
    "--label": "An image has no labels here.",
    "--build-context": "FROM takes images of the service and the stages above.",
    "--cache-from": "The cache is the service's images; `bough session list` shows what there is.",
    "--cache-to": "The cache is the service's images; `bough session list` shows what there is.",
  },
};

/** Loaded where something is built only, as citty is: the help is to be there at once. */
async function buildOrCheck(invocation: Invocation): Promise<number> {
  if (invocation.values.flag("check")) return (await import("./check.ts")).runCheckCommand(invocation);
  return (await import("./run-build.ts")).runBuildCommand(invocation);
}
