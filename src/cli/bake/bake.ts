import { usageError } from "../../errors.ts";
import { inputDefinitions } from "../builds/options/input-definitions.ts";
import { resultDefinitions } from "../builds/options/result-definitions.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { provenanceValue, sbomValue } from "../export/attestation-options.ts";
import { registryOptions } from "../service/registry-definitions.ts";
import { signDefinition } from "../signing/sign-definition.ts";
import type { RemoteDefinition } from "./remote/definition.ts";
import type { BakeWords } from "./remote/words.ts";

export const bake = command({
  name: "bake",
  description:
    "Build the targets of bake files, or the services of compose files, at the same time: as docker buildx bake does.",
  args: {
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
  },
  examples: [
    ["bake", "all services of compose.yaml, or the default group of docker-bake.json"],
    ["bake api web --push", "two of them, to the registries of their tags"],
    [
      "bake -f docker-bake.json --set *.args.VERSION=1.2 --print",
      "what would be built with another argument",
    ],
    ["bake --list targets", "the targets and groups of the files here"],
  ],
  agentNote: [
    "Targets mean what docker buildx bake means by them: they are built as with --docker.",
    "This command is mutating, as build is; --print and --list read files, and change nothing.",
  ].join("\n"),
  needs(values) {
    const [call = ""] = (values.text("call") ?? "").split(",", 1);
    const isCalled = values.flag("check") || !["", "build"].includes(call);
    return isCalled || values.flag("print") || values.text("list") !== undefined ? undefined : "service";
  },
  run: runBake,
});

async function runBake(invocation: Invocation): Promise<number> {
  const { values, runtime } = invocation;
  const list = values.text("list");
  const [first, second] = [
    ...["print", "print-keys"].filter(values.flag),
    ...(list === undefined ? [] : ["list"]),
  ];
  if (second !== undefined) throw usageError(`--${first} and --${second} cannot be used together`);
  const { readDefinition, resolveTargets } = await import("./read-bake.ts");
  const { readAllowed, requireAllowed } = await import("./entitlements.ts");
  const { readBakeWords } = await import("./remote/words.ts");
  const words = readBakeWords(values.positionals);
  // What `docker compose` hands over is its user's own; buildx, too, asks nobody whose program draws the build.
  const isHandedOver = values.list("file").join() === "-" && values.text("progress") === "rawjson";
  const given = isHandedOver ? ["network.host", "ssh", "fs=*"] : values.list("allow");
  const allowed = readAllowed(given, runtime.workingDirectory);
  const isRead = list !== undefined || values.flag("print");
  using remote = await readElsewhere(words, isRead, invocation);
  const { definition, files } = await readDefinition(invocation, { words, remote, allowed });
  if (list !== undefined) {
    const { printList } = await import("./list.ts");
    printList(list, definition, invocation);
    return 0;
  }
  const defined = await runtime.computeEndably(() =>
    resolveTargets(invocation, definition, { words, remote }),
  );
  const resolved =
    values.list("tag-from").length === 0
      ? defined
      : await (await import("./sets/tagged-targets.ts")).withTagsFrom(defined, invocation);
  if (!values.flag("print")) {
    requireAllowed(resolved, allowed, runtime);
    // Others may have made a pipe, which would never end.
    const inputs = runtime.inputs.withoutPipes((path) => allowed.names(path));
    const own = { ...invocation, runtime: { ...runtime, inputs } };
    if (values.flag("print-keys")) return (await import("./keys/print-keys.ts")).printKeys(resolved, own);
    return await (await import("./build-targets.ts")).buildTargets(resolved, files, own);
  }
  const { printBake } = await import("./resolve.ts");
  runtime.stdout.write(`${printBake(resolved)}\n`);
  return 0;
}

async function readElsewhere(
  { address }: BakeWords,
  isRead: boolean,
  invocation: Invocation,
): Promise<RemoteDefinition | undefined> {
  if (address === undefined) return undefined;
  const { fetchDefinition } = await import("./remote/definition.ts");
  return fetchDefinition(address, { isRead }, invocation);
}
