import { usageError } from "../../errors.ts";
import { command, type Invocation, type Surroundings } from "../command-line/command.ts";
import { readOptions } from "../command-line/options.ts";
import { bakeDefinitions } from "./options/definitions.ts";
import type { BakeArguments } from "./remote/bake-arguments.ts";
import type { RemoteDefinition } from "./remote/definition.ts";

export const bake = command({
  name: "bake",
  description:
    "Build the targets of bake files, or the services of compose files, at the same time: as docker buildx bake does.",
  args: bakeDefinitions,
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

async function runBake({ values, ...surroundings }: Invocation): Promise<number> {
  const { bakeParsers } = await import("./options/bake-options.ts");
  const options = readOptions(values, bakeDefinitions, bakeParsers);
  const invocation = { ...surroundings, options };
  const { runtime } = surroundings;
  const { list, print = false } = options;
  const [first, second] = (["print", "print-keys", "list"] as const).filter(
    (name) => (options[name] ?? false) !== false,
  );
  if (second !== undefined) throw usageError(`--${first} and --${second} cannot be used together`);
  const { readDefinition, resolveTargets } = await import("./read-bake.ts");
  const { readEntitlements, requireEntitlements } = await import("./entitlements.ts");
  const { readBakeArguments } = await import("./remote/bake-arguments.ts");
  const positionals = readBakeArguments(values.positionals);
  // `docker compose` passes its user's own project in this way. As in buildx, such a build needs no --allow.
  const isFromCompose = options.file?.join() === "-" && options.progress === "rawjson";
  const given = isFromCompose ? ["network.host", "ssh", "fs=*"] : (options.allow ?? []);
  const allowed = readEntitlements(given, runtime.workingDirectory);
  const isRead = list !== undefined || print;
  using remote = await fetchRemote(positionals, isRead, invocation);
  const { definition, files } = await readDefinition(invocation, { positionals, remote, allowed });
  if (list !== undefined) {
    const { printList } = await import("./print-definition.ts");
    printList(list, definition, invocation);
    return 0;
  }
  const defined = await runtime.withDefaultSignals(() =>
    resolveTargets(invocation, definition, { positionals, remote }),
  );
  const resolved =
    options["tag-from"] === undefined
      ? defined
      : await (await import("./sets/tagged-targets.ts")).withTagsFrom(defined, invocation);
  if (!print) {
    requireEntitlements(resolved, allowed, runtime);
    // A pipe that a file of another author names might never end.
    const inputs = runtime.inputs.withoutPipes((path) => allowed.includesFile(path));
    const own = { ...invocation, runtime: { ...runtime, inputs } };
    if (options["print-keys"] === true)
      return (await import("./keys/print-keys.ts")).printKeys(resolved, own);
    return await (await import("./build-targets.ts")).buildTargets(resolved, files, own);
  }
  const { printBake } = await import("./resolve.ts");
  runtime.stdout.write(`${printBake(resolved)}\n`);
  return 0;
}

async function fetchRemote(
  { address }: BakeArguments,
  isRead: boolean,
  surroundings: Surroundings,
): Promise<RemoteDefinition | undefined> {
  if (address === undefined) return undefined;
  const { fetchDefinition } = await import("./remote/definition.ts");
  return fetchDefinition(address, { isRead }, surroundings);
}
