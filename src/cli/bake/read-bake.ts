import { usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { inHome } from "../../home-directory.ts";
import type { Runtime } from "../process/runtime.ts";
import { createReader, type FileKind, maxBytes, readFiles } from "./bake-files.ts";
import type { ComposeInput } from "./compose-file.ts";
import type { Entitlements } from "./entitlements.ts";
import type { BakeText, FileLocation } from "./file-location.ts";
import type { VariableInput } from "./hcl/variables.ts";
import type { BakeInvocation } from "./options/bake-options.ts";
import { readOverrides } from "./overrides.ts";
import type { BakeArguments } from "./remote/bake-arguments.ts";
import type { RemoteDefinition } from "./remote/definition.ts";
import { type RemoteTree, readInTree } from "./remote/tree.ts";
import { mergeDefinitions, type ResolvedBake, type ResolvedTarget, resolveBake } from "./resolve.ts";
import { readJsonLines } from "./sets/json-lines.ts";
import type { VariableFiles } from "./sets/variable-files.ts";
import type { BakeDefinition } from "./target.ts";
import { bakeCallOf } from "./target-call.ts";
import { attestationText } from "./target-names.ts";

/** The origin of the bake files: the positional arguments, and the files that an address has. */
interface BakeOrigin {
  positionals: BakeArguments;
  remote: RemoteDefinition | undefined;
}

interface ReadOptions extends BakeOrigin {
  allowed: Entitlements;
}

/**
 * Reads the files that `-f` names, or those with a default name. Also returns the names of all files of this machine that were read,
 * included ones too. Throws a usage BoughError if there is none.
 */
export async function readDefinition(
  invocation: BakeInvocation,
  { positionals, remote, allowed }: ReadOptions,
): Promise<{ definition: BakeDefinition; files: ReadonlySet<string> }> {
  const { options, runtime, log } = invocation;
  const { environment } = runtime;
  const { var: given, "var-file": variableFiles = [] } = options;
  const isShared = parseGoBoolean(environment.BUILDX_BAKE_DISABLE_VARS_ENV_LOOKUP ?? "") !== true;
  const valueOf = (name: string) => given?.get(name) ?? (isShared ? environment[name] : undefined);
  const readFile = createReader(allowed);
  const files = await readFiles(invocation, remote, readFile);
  const tree = treeOf(remote);
  const read = new Set(files.flatMap(({ file, isLocal }) => (isLocal ? [file] : [])));
  const composeFiles = files.filter(({ kind }) => kind === "compose");
  const lines = files.filter(({ kind }) => kind === "json lines");
  const bakeFiles = files.filter(({ kind }) => kind === "json" || kind === "hcl");
  const variables = await readVariableFiles(variableFiles, runtime);
  for (const file of variables.files) read.add(file);
  if (variables.files.length > 0 && bakeFiles.length === 0)
    throw usageError("--var-file is for variables of bake files in HCL or JSON, and there is none");
  const warned = new Set<string>();
  const input = {
    readFile(path: string, at: FileLocation | undefined) {
      if (tree !== undefined) return readInTree(tree, path, maxBytes);
      const text = readFile(path, at);
      if (text !== undefined) read.add(path);
      return text;
    },
    environment: valueOf,
    warn(message: string) {
      if (!warned.has(message)) log.warn(message);
      warned.add(message);
    },
  };
  const definition = await runtime.withDefaultSignals(async () =>
    mergeDefinitions([
      ...(composeFiles.length === 0 ? [] : [await readCompose(composeFiles, input)]),
      ...(bakeFiles.length === 0
        ? []
        : [
            await readBake(
              bakeFiles,
              { ...input, ...positionals, valueOf, tables: variables.values },
              runtime,
            ),
          ]),
      // Last, so that their group `default` is the one that is built.
      ...(lines.length === 0 ? [] : [readJsonLines(lines, input.warn)]),
    ]),
  );
  return { definition, files: read };
}

// The modules for a kind of file are loaded only if there is such a file.

async function readVariableFiles(given: readonly string[], runtime: Runtime): Promise<VariableFiles> {
  if (given.length === 0) return { values: new Map(), files: [] };
  return (await import("./sets/variable-files.ts")).readVariableFiles(given, runtime);
}

async function readCompose(files: readonly BakeText[], input: ComposeInput): Promise<BakeDefinition> {
  const { readProject } = await import("./compose-file.ts");
  const { composeTargets } = await import("./compose-target.ts");
  return composeTargets(readProject(files, input), input);
}

/** Reads bake files in HCL and JSON. */
async function readBake(
  files: readonly (BakeText & { kind: FileKind })[],
  {
    commandContext,
    ...input
  }: Pick<BakeArguments, "commandContext"> & Pick<VariableInput, "valueOf" | "tables" | "warn">,
  { environment, clock }: Runtime,
): Promise<BakeDefinition> {
  const { readBakeSources } = await import("./hcl/read-files.ts");
  return readBakeSources(
    files.map(({ file, text, kind }) => ({ name: file, text, isJson: kind === "json" })),
    {
      ...input,
      builtIn: {
        BAKE_CMD_CONTEXT: commandContext,
        BAKE_LOCAL_PLATFORM: `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
      },
      now: () => new Date(clock.now()),
      homeDirectory: inHome(environment) ?? "",
    },
  );
}

/** Returns the targets that the command line asks for, with inherited fields and overrides. */
export function resolveTargets(
  { options, runtime }: BakeInvocation,
  definition: BakeDefinition,
  { positionals: { targets }, remote }: BakeOrigin,
): ResolvedBake {
  const wanted = targets.length === 0 ? ["default"] : targets;
  const { method } = bakeCallOf(options);
  const sets = [
    ...(options.set ?? []),
    ...(options.push === true ? ["*.push=true"] : []),
    ...(options.load === true ? ["*.load=true"] : []),
    ...(method === undefined ? [] : [`*.call=${method}`]),
    // Given as false, one counts for targets that have true.
    ...(["no-cache", "pull"] as const).flatMap((flag) =>
      options[flag] === undefined ? [] : [`*.${flag}=${options[flag]}`],
    ),
    ...(["sbom", "provenance"] as const).flatMap((type) => {
      const text = options[type];
      return text === undefined ? [] : [`*.attest=${attestationText(type, text)}`];
    }),
  ];
  const overrides = readOverrides(sets, definition.targets, (name) => runtime.environment[name]);
  const resolved = resolveBake(definition, wanted, overrides, {
    tree: treeOf(remote),
    shard: options.shard,
  });
  const { SOURCE_DATE_EPOCH: epoch } = runtime.environment;
  return epoch ? withEpoch(resolved, epoch) : resolved;
}

/** Adds SOURCE_DATE_EPOCH, as buildx does, to the arguments of targets that don't set it. */
function withEpoch({ groups, targets }: ResolvedBake, epoch: string): ResolvedBake {
  const dated = [...targets].map(([name, target]): [string, ResolvedTarget] => {
    const args = { SOURCE_DATE_EPOCH: epoch, ...target.fields.args };
    return [name, { ...target, fields: { ...target.fields, args } }];
  });
  return { groups, targets: new Map(dated) };
}

function treeOf(remote: RemoteDefinition | undefined): RemoteTree | undefined {
  return remote !== undefined && "tree" in remote ? remote.tree : undefined;
}
