import { quote } from "../../programs/quote.ts";

/** Returns bough's counterpart of a docker command that bough lacks; `undefined` if docker lacks the command, too. */
export function hintForDockerCommand([name = "", ...words]: readonly string[]): string | undefined {
  const hint = Object.hasOwn(dockerHints, name) ? dockerHints[name] : undefined;
  if (typeof hint === "string" || hint === undefined) return hint;
  return hint({
    // Docker's -o and -i take a value.
    argument: words.find(
      (word, index) => !word.startsWith("-") && !/^-(o|i|-output|-input)$/.test(words[index - 1] ?? ""),
    ),
    valueOf: (...options) => words[words.findIndex((word) => options.includes(word)) + 1 || words.length],
    words,
  });
}

interface DockerCommand {
  /** The first word that is not an option. */
  argument: string | undefined;
  /** Returns the word after one of these options. */
  valueOf(...options: string[]): string | undefined;
  words: readonly string[];
}

type DockerHint = string | ((given: DockerCommand) => string | undefined);

const commandText = (...words: (string | undefined)[]) =>
  `\`bough ${words.flatMap((word) => (word === undefined ? [] : /^[A-Z]+$/.test(word) ? word : quote(word))).join(" ")}\``;

const noContainers = "bough has no containers: each `bough run` starts from an image.";
const engineDisk =
  "`bough engine df` shows what the embedded engine stores, `bough engine prune` frees space.";
const noVolumes =
  "`bough run -v DIR:PATH` mounts a directory of this machine, RUN --mount=type=cache keeps a directory.";

const noServices =
  "bough is no runtime for services: it builds images, and runs one command at a time (`bough build`, `bough run`).";
const operations = "`bough ps` lists operations, with the time that each has taken.";
const severalPlatforms =
  "`bough index create` writes a manifest list, `bough index inspect` shows one; `bough build --platform linux/amd64,linux/arm64 --push` makes one.";
const bakes = "`bough bake` builds the targets of bake files and compose files.";

/** Returns bough's counterpart of a subcommand of `docker buildx`. */
function buildxHint({ words: [name = ""] }: DockerCommand): string {
  if (["du", "prune"].includes(name)) return engineDisk;
  if (name === "bake") return bakes;
  if (name === "imagetools") return severalPlatforms;
  if (["create", "inspect", "ls", "rm", "stop", "use"].includes(name))
    return "bough has no builders: `bough build --docker` builds on its own engine, or on the service of --url.";
  return "`bough build --docker` builds as docker buildx build does, with --output and --push.";
}

/** Returns bough's counterpart of a subcommand of `docker image`. */
function imageHint({ words: [name = "", ...words] }: DockerCommand): string | undefined {
  if (["ls", "list"].includes(name)) return "`bough images` lists them.";
  if (["rm", "remove"].includes(name)) return `${commandText("images", "remove", ...words)} removes it.`;
  if (["inspect", "push", "tag"].includes(name)) return `Write ${commandText(name, ...words)}.`;
  return name === "prune" ? engineDisk : hintForDockerCommand([name, ...words]);
}

const dockerHints: Readonly<Record<string, DockerHint>> = {
  pull: ({ argument: place = "REFERENCE" }) =>
    `${commandText("images", "import", place)} imports an image from a registry; FROM does so automatically.`,
  login: () =>
    "bough uses the credentials of `docker login` or `skopeo login` for registries; `bough auth` is for an image service.",
  logout: () =>
    "`docker logout` or `skopeo logout` is for registries, `bough auth remove` for an image service.",
  exec: ({ argument: place = "IMAGE" }) =>
    `${noContainers} ${commandText("run", place, "COMMAND")} runs a command in an image, ${commandText("shell", place)} opens a shell; ${commandText("-S", "KEY", "run", "--", "COMMAND")} goes on with a session.`,
  save: ({ argument: place = "IMAGE", valueOf }) =>
    `${commandText("images", "export", place, `docker-archive:${valueOf("-o", "--output") ?? "image.tar"}`)} writes an archive for docker load.`,
  load: ({ valueOf }) =>
    `${commandText("images", "import", `docker-archive:${valueOf("-i", "--input") ?? "image.tar"}`)} reads an archive of docker save.`,
  export: ({ argument: place = "IMAGE", valueOf }) =>
    `${commandText("images", "export", place, `tar:${valueOf("-o", "--output") ?? "-"}`)} writes an image's files as an archive.`,
  import: ({ argument: place = "FILE" }) =>
    `FROM scratch and ADD ${place} / make an image of a packed root file system; ${commandText("images", "import", `docker-archive:${place}`)} reads an archive of docker save.`,
  history: ({ argument: place = "IMAGE" }) =>
    `${commandText("inspect", place)} shows its layers, and what made each.`,
  diff: ({ argument: place = "IMAGE" }) =>
    `${commandText("inspect", place, "--layer", "N")} shows what one of its layers has added, changed and deleted.`,
  image: imageHint,
  images: imageHint,
  container: () => `${noContainers} \`bough ps\` lists operations.`,
  create: noContainers,
  start: noContainers,
  restart: noContainers,
  rm: () => `${noContainers} \`bough session delete KEY\` deletes a session.`,
  rename: noContainers,
  stop: ({ argument: place = "OP" }) =>
    `${commandText("kill", place)} ends an operation; \`bough ps\` lists them.`,
  attach: ({ argument: place = "OP" }) =>
    `${commandText("logs", "--follow", place)} shows an operation's output as it comes.`,
  commit:
    "`bough -S KEY run IMAGE COMMAND` keeps what a command changes, and says the resulting image; `bough tag ID NAME` names it.",
  buildx: buildxHint,
  bake: bakes,
  bud: "`bough build --docker` builds as podman build and buildah bud do.",
  manifest: severalPlatforms,
  top: operations,
  stats: operations,
  events: "`bough build --progress json` prints the events of a build.",
  port: "No ports are published: with `bough run --network host` a command listens on this machine's network.",
  context: "--url URL and --token TOKEN name a service, `bough auth` keeps them as profiles.",
  scout:
    "bough looks for no vulnerabilities: `bough build --docker --sbom true` lists an image's packages for programs that do.",
  init: "bough writes no Dockerfile: `bough help dockerfile` says what each instruction does.",
  pause: noContainers,
  unpause: noContainers,
  update: noContainers,
  secret: "`bough build --docker --secret id=NAME,src=FILE` gives a build a secret.",
  config: noServices,
  service: noServices,
  stack: noServices,
  swarm: noServices,
  node: noServices,
  builder: engineDisk,
  system: engineDisk,
  df: engineDisk,
  prune: engineDisk,
  info: "`bough doctor` checks the service, the credentials, and what the engine needs.",
  volume: noVolumes,
  network:
    "bough creates no networks: --network of `bough run` and `bough build` takes default, none or host.",
  search: "bough cannot search a registry; `bough images` lists the stored images.",
  compose: ({ words: [name = ""], argument: place }) =>
    name === "build" || place === "build"
      ? "`bough bake` builds the services of a compose file."
      : `${noServices} \`bough bake\` builds the images of a compose file.`,
};
